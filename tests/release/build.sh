#!/usr/bin/env bash
# build.sh DIRECTORY OS/ARCH...: builds a release into a directory: for each system an archive of
# what "make install" installs; for Linux also a static binary muster-ARCH, an .rpm package, an
# OCI image and, where dpkg-deb is installed, a Debian package; then what tests/release/pack derives
# from them, and the checksums of all. The output depends on the source, VERSION and the versions of
# Go and of the C compiler only.
#
# An earlier release in the directory is replaced when the new one is complete. A directory
# with anything else in it is refused, and nothing in it is changed.
set -euo pipefail
if [ $# -lt 2 ]; then
	echo "usage: $0 DIRECTORY OS/ARCH..." >&2
	exit 2
fi
target=$(mkdir -p "$1" && cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
go=${GO:-go}
version=$(cat VERSION)
# The threads of xz change its output.
export CGO_ENABLED=0 GOFLAGS=-trimpath SOURCE_DATE_EPOCH=0 DPKG_DEB_THREADS_MAX=1
umask 022

ldflags="-s -w -buildid= -X github.com/muster-mpi/muster/mpi.release=v$version"

build() { # FILE: for GOOS and GOARCH
	$go build -buildvcs=false -ldflags "$ldflags" -o "$1" ./cmd/muster
}

compiler() { # ARCH: of C
	local name
	if [ "$1" = "$($go env GOHOSTARCH)" ]; then
		name=cc
	else
		case $1 in amd64) name=x86_64-linux-gnu-gcc ;; arm64) name=aarch64-linux-gnu-gcc ;; *) return 1 ;; esac
	fi
	command -v "$name"
}

stage() { # OS ARCH: the tree that is installed, below usr
	local os=$1 arch=$2 bin=$out/bin cc suffix=
	if [ "$os" = windows ]; then suffix=.exe; fi
	mkdir "$bin"
	GOOS=$os GOARCH=$arch build "$bin/muster$suffix"
	if [ "$os" != linux ]; then
		:
	elif cc=$(compiler "$arch"); then
		GOOS=linux GOARCH=$arch GOFLAGS="$GOFLAGS -buildvcs=false" make --no-print-directory -s cabi GO="$go" CC="$cc" BIN="$bin" CABI_LDFLAGS="$ldflags" >/dev/null
	else
		echo "$0: no C compiler for $arch: its packages have no libraries for C programs" >&2
	fi
	./tests/release/install.sh "$bin" "$out/tree-$os-$arch/usr" "$out/native"
	chmod -R u=rwX,go=rX "$out/tree-$os-$arch"
	rm -r "$bin"
}

tarball() { # OS ARCH
	tar -C "$out/tree-$1-$2" --transform="s,^usr,muster-$version," --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - usr |
		gzip -9n >"$out/muster-$version-$1-$2.tar.gz"
}

package() { # ARCH
	local arch=$1 root=$out/tree-linux-$1
	mkdir "$root/DEBIAN"
	cat >"$root/DEBIAN/control" <<-END
		Package: muster
		Version: $version
		Architecture: $arch
		Maintainer: The Muster authors <security@muster-mpi.invalid>
		Section: devel
		Priority: optional
		Depends: libc6 (>= 2.34)
		Suggests: gcc, libmpich-dev
		Description: Message passing for Go, and for programs built for MPICH and Open MPI
	END
	find "$root" -exec touch -h -d @0 {} +
	dpkg-deb --root-owner-group -Zxz --build "$root" "$out/muster_${version}_$arch.deb" >/dev/null
}

finished=0 steps=$(($# + 2))
report() { # WHAT: has been finished
	finished=$((finished + 1))
	echo "$1: done after $SECONDS s, $finished of $steps steps, about $((SECONDS * (steps - finished) / finished)) s left" >&2
}

ours() { # NAME: whether a release makes a file of this name
	[[ $1 =~ ^(muster-[a-z0-9]+|muster[-_][0-9][^/]*\.(tar\.gz|zip|deb|rpm|tar|cdx\.json)|muster\.rb|package\.py|SHA256SUMS)$ ]]
}

replaced=()
for path in "$target"/* "$target"/.[!.]*; do
	name=${path##*/}
	if [ ! -e "$path" ] && [ ! -L "$path" ]; then
		continue # the pattern itself: nothing matches it
	fi
	if [ ! -f "$path" ] || ! ours "$name"; then
		echo "$0: $target contains $name, which is not part of a release: give an empty directory, or that of an earlier release" >&2
		exit 1
	fi
	replaced+=("$path")
done

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
build "$out/native" # of this machine: writes the manual pages
report "muster of this machine"
for system in "$@"; do
	os=${system%/*} arch=${system#*/}
	stage "$os" "$arch"
	if [ "$os" != windows ]; then
		tarball "$os" "$arch"
	fi
	if [ "$os" = linux ]; then
		cp "$out/tree-$os-$arch/usr/bin/muster" "$out/muster-$arch"
	fi
	report "$system"
done
$go run -buildvcs=false ./tests/release/pack -dir "$out" -version "$version"
for system in "$@"; do
	if [ "${system%/*}" = linux ] && command -v dpkg-deb >/dev/null; then
		package "${system#*/}" # changes the tree
	fi
done
report "packages"
rm -r "$out/native" "$out"/tree-*
(cd "$out" && sha256sum muster* package.py | tee SHA256SUMS)
if [ ${#replaced[@]} -gt 0 ]; then
	rm "${replaced[@]}"
fi
mv "$out"/* "$target"/
