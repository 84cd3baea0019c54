#!/usr/bin/env bash
# build.sh DIRECTORY ARCH...: builds a release into a directory: for each architecture a
# static binary muster-ARCH and, where dpkg-deb is installed, a Debian package with the
# binary, its manual pages and shell completion; and the checksums of all of them. The
# output depends on the source, VERSION and the version of Go only.
#
# An earlier release in the directory is replaced when the new one is complete. A directory
# with anything else in it is refused, and nothing in it is changed.
set -euo pipefail
if [ $# -lt 2 ]; then
	echo "usage: $0 DIRECTORY ARCH..." >&2
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

build() { # FILE: for GOOS and GOARCH
	$go build -buildvcs=false -ldflags "-s -w -buildid= -X github.com/muster-mpi/muster/mpi.release=v$version" -o "$1" ./cmd/muster
}

package() { # ARCH
	local arch=$1 root=$out/deb-$1
	mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/man" "$root/usr/share/bash-completion/completions"
	cp "$out/muster-$arch" "$root/usr/bin/muster"
	"$out/native" man "$root/usr/share/man/man1"
	gzip -9n "$root"/usr/share/man/man1/*.1
	"$out/native" completion bash >"$root/usr/share/bash-completion/completions/muster"
	cat >"$root/DEBIAN/control" <<-END
		Package: muster
		Version: $version
		Architecture: $arch
		Maintainer: The Muster authors <security@muster-mpi.invalid>
		Section: devel
		Priority: optional
		Description: Message passing for Go
	END
	chmod -R u=rwX,go=rX "$root"
	find "$root" -exec touch -h -d @0 {} +
	dpkg-deb --root-owner-group -Zxz --build "$root" "$out/muster_${version}_$arch.deb" >/dev/null
	rm -r "$root"
}

ours() { # NAME: whether a release makes a file of this name
	[[ $1 =~ ^(muster-[a-z0-9]+|muster_[^/]+\.deb|SHA256SUMS)$ ]]
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
for arch in "$@"; do
	GOOS=linux GOARCH=$arch build "$out/muster-$arch"
	if command -v dpkg-deb >/dev/null; then
		package "$arch"
	fi
done
rm "$out/native"
(cd "$out" && sha256sum muster* | tee SHA256SUMS)
if [ ${#replaced[@]} -gt 0 ]; then
	rm "${replaced[@]}"
fi
mv "$out"/* "$target"/
