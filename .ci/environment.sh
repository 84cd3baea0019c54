# What .ci/run and .ci/nightly need of a Debian 12 machine with Go.

export PATH="$PATH:/usr/local/go/bin"
# The checkout may belong to another user. Programs and tests are linked faster without the
# tables for debuggers.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false -ldflags=-w"
export DEBIAN_FRONTEND=noninteractive

# mpich provides mpiexec.hydra for the tests on processes. MPICH and Open MPI are also the
# libraries to compare with. The race detector needs gcc. Slurm, the headers of PMIx and
# libfabric and the tools for network namespaces are for the launcher tests, which start and
# stop the servers that they need. dpkg-dev is for the source package of MPICH, whose test
# suite runs on our libmpich.so.12. mpi4py is built for Open MPI. tshark checks the wire formats of the devices, and rpm the packages of a release; debootstrap is for the night. Tests skip
# what is missing, so a machine without a package archive can still run the rest.
install_packages() {
	local missing=() p
	for p in make gcc libc6-dev mpich libmpich-dev openmpi-bin libopenmpi-dev g++ gfortran python3-mpi4py \
		slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge libpmix-dev libfabric-dev pkg-config iproute2 iptables ethtool openssh-client openssh-server tshark dpkg-dev xz-utils rpm debootstrap; do
		dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
	done
	if [ ${#missing[@]} -eq 0 ]; then
		echo "all packages are installed"
		return
	fi
	echo "installing: ${missing[*]}"
	local apt=(apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3) log=bin/apt.log
	[ "$(id -u)" = 0 ] || apt=(sudo -n -E "${apt[@]}")
	mkdir -p bin
	"${apt[@]}" update -qq >"$log" 2>&1 || echo "warning: the lists of packages are not up to date"
	local install=("${apt[@]}" install -y -qq --no-install-recommends)
	if ! "${install[@]}" "${missing[@]}" >>"$log" 2>&1; then # perhaps because of one of them
		for p in "${missing[@]}"; do
			"${install[@]}" "$p" >>"$log" 2>&1 || echo "warning: $p is not installed; the tests that need it are skipped"
		done
		tail -n 20 "$log"
	fi
	command -v make >/dev/null && command -v gcc >/dev/null || { echo "make and gcc are needed"; return 1; }
}
export -f install_packages
