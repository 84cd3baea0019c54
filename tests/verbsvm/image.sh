# The guest's file system: one archive with the system, which changes rarely and is
# cached, and one with the binaries under test and the guest's scripts. The kernel
# unpacks the second over the first. Sourced by run.sh.
#
# Leaves behind in $cache: system.img, cargo.img and guest.img, which is both.

# The two NICs are kernel modules over a pair of virtual Ethernet interfaces.
guest_modules=(rdma_ucm ib_uverbs veth rdma_rxe crc32_generic crc32c_generic libcrc32c) # the sums are found by name
guest_programs=(
	/usr/bin/fi_info /usr/bin/fi_pingpong
	/usr/bin/ibv_devinfo /usr/bin/rping /usr/bin/rdma_client /usr/bin/rdma_server
	/usr/bin/rdma /bin/ip
)

pack_system() {
	[ "$cache/system.img" -nt "$here/image.sh" ] && [ "$cache/system.img" -nt "$cache/siw.ko" ] && return
	local root=$cache/system
	rm -rf "$root"
	mkdir -p "$root"/{bin,usr/bin,proc,sys,dev,tmp,run,etc/libibverbs.d,lib/modules,lib64,"$libraries","$libraries/libibverbs"}
	cp /bin/busybox "$root/bin/busybox"
	pack_modules "$root/lib/modules"
	local program driver
	for program in "${guest_programs[@]}"; do
		cp -L "$program" "$root/usr/bin/"
		pack_libraries "$root" "$program"
	done
	# Loaded at run time, so ldd does not list them: libfabric by our binaries, the
	# drivers by libibverbs, and libgcc_s by pthread_exit.
	cp -L "$libraries/libfabric.so.1" "$libraries/libgcc_s.so.1" "$root$libraries/"
	pack_libraries "$root" "$libraries/libfabric.so.1"
	for driver in siw rxe; do
		cp -L "$libraries"/libibverbs/lib$driver-rdmav*.so "$root$libraries/libibverbs/"
		echo "driver $driver" >"$root/etc/libibverbs.d/$driver.driver"
	done
	cp -L /lib64/ld-linux-x86-64.so.2 "$root/lib64/"
	printf 'root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nuser:x:1000:\n' >"$root/etc/group"
	printf '127.0.0.1 localhost guest\n' >"$root/etc/hosts"
	archive "$root" "$cache/system.img"
}

# pack_modules lists the modules in load order.
pack_modules() {
	local module file
	for module in "${guest_modules[@]}"; do
		modprobe -d "$cache/tree" -S "$(<"$cache/kver")" --show-depends "$module" | awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++' | while read -r file; do
		cp "$file" "$1/"
		basename "$file" >>"$1/order"
	done
	cp "$cache/siw.ko" "$1/"
	echo siw.ko >>"$1/order"
}

# pack_libraries copies the libraries that a program or library is linked against.
pack_libraries() {
	local library
	ldd "$2" | grep -o '/[^ ]*' | while read -r library; do
		[ -e "$1$libraries/${library##*/}" ] || cp -L "$library" "$1$libraries/"
	done
}

# build_cargo builds with cgo and the tag ofi, as a user on a cluster does.
build_cargo() {
	local root=$cache/cargo
	rm -rf "$root"
	mkdir -p "$root/usr/bin" "$root/muster"
	say "building muster and its tests with the tag ofi"
	with_ofi build -o "$root/usr/bin/muster" ./cmd/muster
	with_ofi test -c -o "$root/muster/mpi.test" ./mpi
	with_ofi test -c -o "$root/muster/ofi.test" ./rdma/ofi
	(cd "$source" && CGO_ENABLED=0 go test -c -ldflags '-s -w' -o "$root/muster/iwarp.test" ./rdma/iwarp) || die "the tests of iWARP do not build"
	install -m 755 "$here/guest/init.sh" "$root/init"
	install -m 644 "$here/guest/steps.sh" "$root/muster/steps.sh"
	archive "$root" "$cache/cargo.img"
	cat "$cache/system.img" "$cache/cargo.img" >"$cache/guest.img"
}

with_ofi() {
	local command=$1
	shift
	(cd "$source" && CGO_ENABLED=1 go "$command" -tags ofi -ldflags '-s -w' "$@") || die "the binaries for the guest do not build"
}

archive() {
	(cd "$1" && find . | cpio -o -H newc --quiet | gzip -1) >"$2.part"
	mv "$2.part" "$2"
	rm -rf "$1"
}
