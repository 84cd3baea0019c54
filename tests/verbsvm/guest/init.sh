#!/bin/busybox sh
# The first and only program of the guest: it creates a network interface and, for each
# kind of RDMA device, creates the device on it and runs the steps of steps.sh. Then it
# powers off the machine. Its output is the log; lines that begin with "verbsvm:" are
# for run.sh.

/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
export PATH=/usr/bin:/bin HOME=/tmp
hostname guest
ulimit -l unlimited

# The settings are on the kernel's command line: verbsvm.NAME=VALUE.
setting() {
	sed -nE "s/.*verbsvm\.$1=([^ ]*).*/\1/p" /proc/cmdline | tr , ' '
}
seconds() {
	cut -d. -f1 /proc/uptime
}
failed=0
. /muster/steps.sh

echo "verbsvm: kernel $(uname -r), $(nproc) processors, $(free -m | awk '/^Mem/ { print $2 }') MB"
for module in $(cat /lib/modules/order); do
	insmod "/lib/modules/$module" || echo "insmod $module failed"
done
# rdma_cm does not resolve loopback addresses, so the device is on an interface. The
# ip command built into this shell does not support veth.
address=10.97.0.1
/usr/bin/ip link set lo up
/usr/bin/ip link add v0 type veth peer name v1
/usr/bin/ip link set v0 up
/usr/bin/ip link set v1 up
/usr/bin/ip addr add $address/24 dev v0
echo "verbsvm: booted at $(seconds) s"

for kind in $(setting devices); do
	device=${kind}0
	if ! rdma link add $device type $kind netdev v0; then
		echo "verbsvm: FAILED $kind: rdma link add"
		failed=1
		continue
	fi
	sleep 1                          # until the port is up
	chmod 666 /dev/infiniband/*      # one step is not run by root
	for name in $(setting steps); do
		step $kind $name
	done
	rdma link delete $device
done
echo "verbsvm: end at $(seconds) s, status $failed"
sync
poweroff -f
