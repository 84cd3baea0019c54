#!/usr/bin/env bash
# install.sh BIN ROOT [MUSTER]: installs what "make build cabi" has put into BIN below ROOT, which
# is DESTDIR and PREFIX. MUSTER is a muster of this machine, if that in BIN is for another. Without
# the libraries for C programs (no compiler for that machine), only muster is installed. Nothing
# that is installed contains ROOT, so the tree can be moved.
set -euo pipefail
if [ $# -lt 2 ]; then
	echo "usage: $0 BIN ROOT [MUSTER]" >&2
	exit 2
fi
bin=$1 root=$2 muster=${3:-$1/muster}
here=$(dirname "$0")
umask 022

install -d "$root/bin" "$root/share/man" "$root/share/bash-completion/completions"
suffix=
if [ ! -e "$bin/muster" ]; then suffix=.exe; fi # for Windows
install -m 755 "$bin/muster$suffix" "$root/bin/muster$suffix"
"$muster" man "$root/share/man/man1"
gzip -9nf "$root"/share/man/man1/muster*.1
"$muster" completion bash >"$root/share/bash-completion/completions/muster"
[ -e "$bin/cabi/libmuster_core.so" ] || exit 0

lib=$root/lib/muster
install -d "$lib/bin" "$lib/pkgconfig" "$root/share/modulefiles"
rm -rf "$lib/include" # of an earlier version
cp -P "$bin"/cabi/lib*.so* "$lib/"
cp -r "$bin/cabi/include" "$lib/include"
for name in mpicc mpicxx mpic++ mpifort mpif77 mpif90 mpicc_abi mpicxx_abi mpiexec mpirun; do
	ln -sf muster "$root/bin/muster-$name"
	ln -sf ../../../bin/muster "$lib/bin/$name"
done
sed "s/@VERSION@/$(cat "$here/../../VERSION")/" "$here/mpi.pc.in" >"$lib/pkgconfig/mpi.pc"
install -m 644 "$here/modulefile" "$root/share/modulefiles/muster"
