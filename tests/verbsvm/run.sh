#!/usr/bin/env bash
# Runs Muster over libfabric's verbs provider on RDMA devices with memory
# registration: the kernel's soft-iWARP (siw) and soft-RoCE (rxe), in a virtual
# machine with Debian's kernel, because a container's kernel seldom has them. See
# README.md. The flow: packages, kernel, image, guest, result.
#
# Settings, from the environment:
#   VERBSVM_DIR       the cache, default muster/verbsvm in the user's cache directory
#   VERBSVM_DEVICES   which devices, default "siw rxe"
#   VERBSVM_STEPS     which steps of guest/steps.sh, default all
#   VERBSVM_TIMEOUT   seconds that the guest may take, default 1500
#   VERBSVM_CPUS      processors of the guest, default 2
#   VERBSVM_MEMORY    its memory in MB, default 1024
#   VERBSVM_ACCEL     tcg (default: works everywhere) or kvm
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "$here/../.." && pwd)
cache=${VERBSVM_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/muster/verbsvm}
libraries=/usr/lib/x86_64-linux-gnu
all_steps="device iwarp provider explain conformance p2p communicators collectives buffers bench verbs pinning limit"

say() { printf 'verbsvm: %s\n' "$*"; }
die() {
	printf 'verbsvm: %s\n' "$*" >&2
	exit 1
}

. "$here/kernel.sh"
. "$here/image.sh"

# Packages to build with, to run in the guest, and to run the guest.
packages=(
	gcc-12 make binutils xz-utils kmod cpio busybox-static libfabric-dev pkg-config
	libfabric-bin libfabric1 ibverbs-providers ibverbs-utils rdmacm-utils iproute2
	qemu-system-x86
)

need_packages() {
	[ "$(uname -m)" = x86_64 ] && command -v apt-get >/dev/null || die "this needs an amd64 machine with Debian's packages"
	local missing=() package
	for package in "${packages[@]}"; do
		dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] && return
	[ "$(id -u)" = 0 ] || die "packages are missing: sudo apt-get install --no-install-recommends ${missing[*]}"
	say "installing ${missing[*]}"
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$cache/apt.log" 2>&1 ||
		die "cannot install ${missing[*]}: see $cache/apt.log"
}

# boot runs the guest until it powers off or times out, and shows the marked lines
# of its log as they appear.
boot() {
	local accel=${VERBSVM_ACCEL:-tcg} cpu=qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt settings qemu tail status=0
	[ "$accel" = kvm ] && cpu=host
	settings="verbsvm.devices=$(tr ' ' , <<<"${VERBSVM_DEVICES:-siw rxe}") verbsvm.steps=$(tr ' ' , <<<"${VERBSVM_STEPS:-$all_steps}")"
	: >"$log"
	timeout -k 5 "$limit" qemu-system-x86_64 \
		-M pc,usb=off -accel "$accel" -cpu "$cpu" -smp "${VERBSVM_CPUS:-2}" -m "${VERBSVM_MEMORY:-1024}" \
		-nodefaults -no-user-config -display none -no-reboot -serial "file:$log" \
		-kernel "$cache/vmlinux" -initrd "$cache/guest.img" \
		-append "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off random.trust_cpu=on $settings" &
	qemu=$!
	trap 'kill "$qemu" 2>/dev/null || true' EXIT INT TERM
	tail -n +1 -F --pid="$qemu" "$log" 2>/dev/null | grep -a --line-buffered '^verbsvm:' &
	tail=$!
	wait "$qemu" || status=$?
	wait "$tail" || true
	trap - EXIT INT TERM
	[ "$status" != 124 ] || say "the guest was stopped after $limit s"
}

# result: the guest must have ended with status 0.
result() {
	local passed skipped failed
	passed=$(grep -ac '^verbsvm: ok ' "$log" || true)
	skipped=$(grep -ac '^verbsvm: skipped ' "$log" || true)
	failed=$(grep -ac '^verbsvm: FAILED ' "$log" || true)
	say "$passed steps passed, $skipped skipped, $failed failed, in $SECONDS s; the log is $log"
	grep -aq '^verbsvm: end .*status 0' "$log" || die "FAILED: the guest did not end with status 0"
}

mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
log=$cache/guest.log
limit=${VERBSVM_TIMEOUT:-1500}
exec 9>"$cache/lock"
flock -n 9 || die "another run uses $cache"
need_packages
fetch_kernel
build_siw
pack_system
build_cargo
say "booting; stopped after $limit s at the latest"
boot 9>&-
result
