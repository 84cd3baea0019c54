#!/usr/bin/env bash
# roots.sh RELEASE [WAY...]: installs a release of build.sh in clean Debian root directories, one for
# each way (deb, tarball, rpm), by the commands of docs/guide/install.md, and there builds
# and runs the program of README.md and a C program. It prints the seconds of each way, and fails if one takes more than LIMIT (60). Download is not
# counted: the roots are made before, with the archive of packages and the Go of this machine. The
# root that the others are copied from is kept in bin/roots/base. Needs root and debootstrap.
set -euo pipefail
if [ $# -lt 1 ]; then
	echo "usage: $0 RELEASE [WAY...]" >&2
	exit 2
fi
release=$(cd "$1" && pwd)
shift
if [ $# -eq 0 ]; then set -- deb tarball rpm; fi
cd "$(dirname "$0")/../.."
if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
	echo "skipped: needs root and debootstrap"
	exit 0
fi
if [ -z "${ROOTS_MOUNTS:-}" ]; then # mounts vanish with this process
	ROOTS_MOUNTS=1 exec unshare --mount --propagation private "$0" "$release" "$@"
fi
version=$(cat VERSION)
base=$PWD/bin/roots/base
work=$(mktemp -d)
clean() { # nothing is removed through a mount
	local root
	for root in "$work"/*/dev; do umount -R "${root%/dev}" 2>/dev/null || true; done
	grep -q " $work/" /proc/self/mounts || rm -rf "$work"
}
trap clean EXIT

if [ ! -e "$base/.complete" ]; then
	read -r mirror suite < <(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Component: main' | grep -v -e - -e security | head -n 1)
	echo "making a root directory of $suite"
	rm -rf "$base"
	mkdir -p "$base"
	debootstrap --variant=minbase --include=gcc,libc6-dev,make,rpm "$suite" "$base" "$mirror" >bin/roots/debootstrap.log
	touch "$base/.complete"
fi

# In the root: Go, the modules that it would download, and the source for programs of one's own.
enter() { # ROOT COMMAND...
	local root=$1
	shift
	chroot "$root" /usr/bin/env -i HOME=/root PATH="$path:/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
		GOPROXY=file:///modules GOSUMDB=off GOFLAGS=-buildvcs=false GOTOOLCHAIN=local "$@"
}

make_root() { # WAY
	local root=$work/$1
	mkdir -p "$root" "$work/upper-$1" "$work/work-$1"
	mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper-$1,workdir=$work/work-$1" "$root"
	mkdir -p "$root"/{usr/local/go,modules,source,release,download,hello,dev/shm}
	echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/yes"
	mount -o bind,ro "$(go env GOROOT)" "$root/usr/local/go"
	mount -o bind,ro "$(go env GOMODCACHE)/cache/download" "$root/modules"
	mount -o bind,ro "$release" "$root/release"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	git archive HEAD | tar -x -C "$root/source"
	awk '/^```go$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md >"$root/hello/main.go"
	cat >"$root/download/sum.c" <<-'END'
		#include <mpi.h>
		#include <stdio.h>
		int main(void) {
			int rank, sum;
			MPI_Init(0, 0);
			MPI_Comm_rank(MPI_COMM_WORLD, &rank);
			MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
			if (rank == 0)
				printf("C: sum %d\n", sum);
			return MPI_Finalize();
		}
	END
}

page() { # ROW: the commands of a row of the page, one in each line
	grep "^| $1" docs/guide/install.md | grep -o '`[^`]*`' | tr -d '`'
}

install_way() { # WAY ROOT
	local commands
	case $1 in
	deb) commands="cp /release/*.deb /download; cd /download; $(page Debian)" ;; # apt reads it as another user
	rpm) commands='rpm -i --nodeps --force-debian /release/muster-*.$(uname -m).rpm' ;; # rpm does not know Debian's libc
	tarball) commands="cd /opt; ln -s /release/*.tar.gz .; $(page 'an archive' | grep tar)" ;;
	*) echo "$0: no way $1" >&2 && return 2 ;;
	esac
	enter "$2" sh -exc "$commands" >"$work/log" 2>&1
}

run_programs() { # ROOT
	enter "$1" sh -ec 'cd /hello
		go mod init hello
		go mod edit -require=github.com/muster-mpi/muster@v0.0.0 -replace=github.com/muster-mpi/muster=/source
		go mod tidy
		go build -o hello .
		muster run -n 4 ./hello
		muster-mpicc -o sum /download/sum.c
		muster run -n 3 ./sum' >"$work/log" 2>&1 &&
		[ "$(grep -c 'rank [0-3] of 4: the sum of all ranks is 6' "$work/log")" = 4 ] && grep -q 'C: sum 3' "$work/log"
}

failed=0
for way in "$@"; do
	case $way in
	tarball) path=/opt/muster-$version/bin ;;
	*) path=/usr/bin ;;
	esac
	make_root "$way"
	began=$(date +%s%N)
	if ! install_way "$way" "$work/$way" || ! installed=$(date +%s%N) || ! run_programs "$work/$way"; then
		cat "$work/log"
		echo "$way: failed"
		failed=1
	else
		ended=$(date +%s%N)
		printf '%s: %d.%d s, of which %d.%d s to install\n' "$way" $(((ended - began) / 1000000000)) $(((ended - began) / 100000000 % 10)) \
			$(((installed - began) / 1000000000)) $(((installed - began) / 100000000 % 10))
		if [ $((ended - began)) -gt $((${LIMIT:-60} * 1000000000)) ]; then
			echo "$way: more than ${LIMIT:-60} s"
			failed=1
		fi
	fi
done
exit $failed
