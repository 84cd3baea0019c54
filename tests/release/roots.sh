#!/usr/bin/env bash
# roots.sh RELEASE [WAY...]: installs Muster in clean Debian root directories, one for each way, by the
# commands of docs/guide/install.md: from a release of build.sh (deb, tarball, rpm), or from the
# source (checkout). There it builds and runs the program of README.md, then a C program. It prints
# the seconds to the installation, to the output of README.md and to that of the C program, and
# fails if the second takes more than LIMIT (60). Nothing is compiled before, and download is not
# counted: the roots are made first, with the archive of packages and the Go of this machine. The
# root that the others are copied from is kept in bin/roots/base. Needs root and debootstrap.
set -euo pipefail
if [ $# -lt 1 ]; then
	echo "usage: $0 RELEASE [WAY...]" >&2
	exit 2
fi
release=$(cd "$1" && pwd)
shift
if [ $# -eq 0 ]; then set -- deb tarball rpm checkout; fi
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
	checkout) commands="cd /source; $(page 'a checkout' | grep build)" ;;
	tarball) commands="cd /opt; ln -s /release/*.tar.gz .; $(page 'an archive' | grep tar)" ;;
	*) echo "$0: no way $1" >&2 && return 2 ;;
	esac
	enter "$2" sh -exc "$commands" >"$work/log" 2>&1
}

run_go_program() { # ROOT
	enter "$1" sh -ec 'cd /hello
		go mod init hello
		go mod edit -require=github.com/muster-mpi/muster@v0.0.0 -replace=github.com/muster-mpi/muster=/source
		go mod tidy
		go build -o hello .
		muster run -n 4 ./hello' >"$work/log" 2>&1 &&
		[ "$(grep -c 'rank [0-3] of 4: the sum of all ranks is 6' "$work/log")" = 4 ]
}

run_c_program() { # WAY ROOT
	local library=:
	if [ "$1" = checkout ]; then library="$(page 'a checkout' | grep cabi)"; fi
	enter "$2" sh -exc "cd /source; $library; cd /hello
		muster-mpicc -o sum /download/sum.c
		muster run -n 3 ./sum" >"$work/log" 2>&1 && grep -q 'C: sum 3' "$work/log"
}

seconds() { # SINCE
	local tenths=$((($(date +%s%N) - $1) / 100000000))
	echo "$((tenths / 10)).$((tenths % 10))"
}

failed=0
for way in "$@"; do
	case $way in
	tarball) path=/opt/muster-$version/bin ;;
	checkout) path=/source/bin ;;
	*) path=/usr/bin ;;
	esac
	make_root "$way"
	began=$(date +%s%N)
	if install_way "$way" "$work/$way" && installed=$(seconds "$began") && run_go_program "$work/$way" && readme=$(seconds "$began") && run_c_program "$way" "$work/$way"; then
		echo "$way: installed after $installed s, output of README.md after $readme s, of the C program after $(seconds "$began") s"
		if [ "${readme%.*}" -ge "${LIMIT:-60}" ]; then
			echo "$way: more than ${LIMIT:-60} s to the output of README.md"
			failed=1
		fi
	else
		cat "$work/log"
		echo "$way: failed"
		failed=1
	fi
done
exit $failed
