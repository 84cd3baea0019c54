# The guest's kernel: Debian's own, unpacked into the cache and not installed,
# and the module siw for it, which Debian leaves out and which is built from the
# source package. Sourced by run.sh; the order is that of its functions.
#
# Leaves behind in $cache: kver (the kernel's version), vmlinux, tree/ (modules
# and headers) and siw.ko.

fetch_kernel() {
	[ -s "$cache/kver" ] && return
	local image base headers
	image=$(newest_kernel)
	if [ -z "$image" ]; then # a machine that has never seen a package list
		apt-get update >"$cache/apt-update.log" 2>&1 || true
		image=$(newest_kernel)
	fi
	[ -n "$image" ] || die "apt does not find linux-image-amd64: is this Debian with a package archive?"
	local version=${image#linux-image-}
	base=$(sed -E 's/^([0-9]+\.[0-9]+).*/\1/' <<<"$version")
	headers=linux-headers-$version
	say "fetching kernel $version, its headers and its source"
	rm -rf "$cache/deb" "$cache/tree"
	mkdir -p "$cache/deb" "$cache/tree"
	download "$image" "$headers" "linux-headers-${version%-amd64}-common" "linux-kbuild-$base" "linux-source-$base"
	local package
	for package in "$cache"/deb/linux-{image,headers,kbuild}-*.deb; do
		dpkg -x "$package" "$cache/tree"
	done
	unpack_siw "$base"
	# The headers refer to their common part by its installed path.
	sed -i "s#^include /usr/src/#include $cache/tree/usr/src/#" "$cache/tree/usr/src/$headers/Makefile"
	depmod -b "$cache/tree" "$version"
	unpack_vmlinux "$cache/tree/boot/vmlinuz-$version"
	rm -rf "$cache/deb"
	echo "$version" >"$cache/kver" # last: with it the kernel is complete
}

newest_kernel() {
	apt-cache depends linux-image-amd64 2>/dev/null | sed -nE 's/.*Depends: (linux-image-[0-9].*)/\1/p' | head -n 1
}

download() {
	cd "$cache/deb"
	# root: apt's own user may not write into the cache
	if ! apt-get -o APT::Sandbox::User=root download "$@" >"$cache/download.log" 2>&1; then
		apt-get update >"$cache/apt-update.log" 2>&1 || true
		apt-get -o APT::Sandbox::User=root download "$@" >"$cache/download.log" 2>&1 ||
			die "cannot download $*: see $cache/download.log"
	fi
	cd - >/dev/null
}

# Only one folder of the kernel's source is needed.
unpack_siw() {
	rm -rf "$cache/siw"
	mkdir "$cache/siw"
	dpkg --fsys-tarfile "$cache"/deb/linux-source-"$1"_*.deb | tar -xO "./usr/src/linux-source-$1.tar.xz" |
		tar -xJ -C "$cache/siw" --strip-components=5 --wildcards '*/drivers/infiniband/sw/siw/*'
}

# In emulation the kernel takes long to decompress itself, so it is decompressed here.
unpack_vmlinux() {
	local offset
	offset=$(LC_ALL=C grep -abo -P '\xFD7zXZ\x00' "$1" | head -n 1 | cut -d: -f1)
	[ -n "$offset" ] || die "$1 is not packed by xz"
	tail -c "+$((offset + 1))" "$1" | xz -dc >"$cache/vmlinux" 2>/dev/null || true # xz complains about what follows
	[ -s "$cache/vmlinux" ] || die "$1 cannot be unpacked"
}

# Unmodified, siw may miss what the connecting side sends right after the handshake.
# The peer-to-peer mode of RFC 6581, which adapters use, orders that; it is a constant
# in the source.
build_siw() {
	[ "$cache/siw.ko" -nt "$here/kernel.sh" ] && return
	local version
	version=$(<"$cache/kver")
	say "building siw.ko"
	sed -i 's/^const bool peer_to_peer;/const bool peer_to_peer = true;/' "$cache/siw/siw_main.c"
	make -C "$cache/tree/usr/src/linux-headers-$version" M="$cache/siw" CONFIG_RDMA_SIW=m modules >"$cache/siw.log" 2>&1 ||
		die "siw.ko does not build: see $cache/siw.log"
	strip --strip-debug -o "$cache/siw.ko" "$cache/siw/siw.ko"
}
