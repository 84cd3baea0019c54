#!/bin/busybox sh
# The first and only program of the guest: it makes a network interface, gives
# it each kind of RDMA device in turn, runs the steps of steps.sh on it, and
# turns the machine off. What it prints is the log; lines that begin with
# "verbsvm:" are for run.sh.

/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
export PATH=/usr/bin:/bin HOME=/tmp
hostname guest
ulimit -l unlimited

# The kernel's command line carries the settings: verbsvm.NAME=VALUE.
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
# rdma_cm resolves no loopback address, so the device sits on an interface. This
# shell would take its own ip, which knows no veth.
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
