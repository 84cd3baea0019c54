# The steps that run on each device: step NAME is the function step_NAME, with _ for -,
# which fails by its exit status; the device's kind, name and address are in $kind,
# $device and $address. Every command has a timeout. Sourced by init.sh.

not_run=77 # the status of a step that cannot be run on the device
step() {
	local start=$(seconds) status
	echo "verbsvm: begin $1 $2"
	(
		set -e
		step_$(echo $2 | tr - _)
	) </dev/null 2>&1
	status=$?
	kill -9 -1 2>/dev/null # what a step has left behind; not this process
	if [ $status = 0 ]; then
		echo "verbsvm: ok $1 $2, $(($(seconds) - start)) s"
	elif [ $status = $not_run ]; then
		echo "verbsvm: skipped $1 $2"
	else
		echo "verbsvm: FAILED $1 $2, status $status, $(($(seconds) - start)) s"
		failed=1
	fi
}

# note adds a line to the summary.
note() {
	echo "verbsvm:    $*"
}

# The device exists, and the rdma stack works without Muster.
step_device() {
	rdma link show
	ibv_devinfo -d $device
	timeout 60 rping -s -a $address -p 7174 -C 4 -S 4000 &
	sleep 2
	timeout 60 rping -c -a $address -p 7174 -C 4 -S 4000
	wait $!
}

# Our own iWARP (rdma/iwarp), which is not a kernel device, is the peer of rping and of
# librdmacm's example, in both roles, with and without CRC.
step_iwarp() {
	if [ $kind != siw ]; then
		note "only siw implements iWARP"
		return $not_run
	fi
	cd /muster
	timeout 200 rping -s -P -a $address -p 7174 -S 65535 &
	twice timeout 100 rdma_server -s $address -p 7176 &
	when_listening 7175 twice timeout 60 rping -c -a $address -p 7175 -C 4 -S 4000 -v >>/tmp/clients 2>&1 &
	for port in 7178 7179; do
		when_listening $port timeout 60 rping -c -a $address -p $port -C 4 -S 4000 -v >>/tmp/clients 2>&1 &
	done
	when_listening 7177 twice timeout 60 rdma_client -s $address -p 7177 >>/tmp/asked 2>&1 &
	sleep 2
	timeout -k 5 200 ./iwarp.test -test.v -test.timeout 190s -test.run '^TestSiw|^TestMarkersAccepted' \
		-siw.server $address:7174 -siw.listen $address:7175 -siw.rounds 4 \
		-siw.answer $address:7176 -siw.ask $address:7177 -siw.device $address:7178 >/tmp/iwarp 2>&1 || {
		cat /tmp/iwarp
		tail -n 20 /tmp/clients /tmp/asked
		return 1
	}
	grep -E -- '--- ' /tmp/iwarp
	for _ in 1 2 3 4 5 6 7 8 9 10; do # the clients may still be leaving
		lines=$(grep -o 'ping data: rdma-ping-' /tmp/clients | wc -l) # two may write into one line
		ends=$(grep -c 'rdma_client: end 0' /tmp/asked)
		if [ $lines = 16 ] && [ $ends = 2 ]; then break; fi # each line came back, says rping itself
		sleep 1
	done
	if [ $lines != 16 ] || [ $ends != 2 ]; then
		note "rping reports $lines lines, want 16; rdma_client succeeded $ends times, want 2"
		tail -n 20 /tmp/clients /tmp/asked | cut -c 1-100
		return 1
	fi
	note "$(grep -c '^ *--- PASS' /tmp/iwarp) tests of iWARP passed against the kernel"
}

twice() {
	"$@"
	"$@"
}

# when_listening runs a client once a server listens on the port: the client does not retry.
when_listening() {
	local port=$1
	shift
	until netstat -ltn | grep -q ":$port "; do sleep 0.2; done
	"$@"
}

# libfabric's provider works without Muster: its capabilities, and its own ping-pong.
step_provider() {
	timeout 60 fi_info -p 'verbs;ofi_rxm' -v >/tmp/info
	grep -E 'prov_name|type: FI_EP|mr_mode|max_msg_size|inject_size|src_addr:' /tmp/info | sort -u
	note "$(grep -m 1 -o 'mr_mode.*' /tmp/info)"
	# The provider sizes completion queues for this many peers, 256 by default, which
	# exceeds the limit of rxe.
	export FI_UNIVERSE_SIZE=2
	timeout 120 fi_pingpong -p 'verbs;ofi_rxm' -e rdm -I 50 &
	sleep 3
	timeout 120 fi_pingpong -p 'verbs;ofi_rxm' -e rdm -I 50 $address
	wait $!
}

# The following steps test Muster. over_verbs runs a command on a number of ranks without
# shared memory.
export MUSTER_NETWORK='ofi:verbs;ofi_rxm' MUSTER_NO_SHARED_MEMORY=1

over_verbs() {
	local limit=$1 ranks=$2
	shift 2
	without_reads
	timeout -k 5 $limit muster run -n $ranks "$@"
}

# siw completes a send that was posted after a read before the read. Adapters complete in
# order, libfabric 1.17 relies on that, and it crashes when reads and sends are mixed. Long
# messages therefore use writes here.
without_reads() {
	[ $kind != siw ] || export MUSTER_RENDEZVOUS=put
}

# muster reports the devices that are available and in use.
step_explain() {
	timeout 60 muster explain network >/tmp/explain
	cat /tmp/explain
	grep -q '^taken: verbs' /tmp/explain
}

# The device conforms to package rdma.
step_conformance() {
	if [ $kind = siw ]; then
		note "the suite mixes reads with sends, and connects many at the same time; libfabric 1.17 fails with both on siw"
		return $not_run
	fi
	cd /muster
	# One check compares times, which are meaningless on an emulated machine.
	timeout -k 5 300 ./ofi.test -test.v -test.timeout 290s -test.run Verbs -test.skip '///wait-does-not-spin' >/tmp/conformance 2>&1 || {
		grep -vE '=== RUN|--- (PASS|SKIP)|the rule' /tmp/conformance
		return 1
	}
	grep -E '^ *--- ' /tmp/conformance
	grep -q '^--- PASS' /tmp/conformance
	note "$(grep -c '^            --- PASS' /tmp/conformance) checks passed, $(grep -c 'excluded:' /tmp/conformance) excluded, $(grep -c 'lacks operations' /tmp/conformance) about what it lacks; $(grep -c '^    --- PASS: TestVerbsReports' /tmp/conformance) forbidden accesses refused"
}

# The tests of package mpi are collective calls: every rank runs all of them. At their end a
# rank may use 100 ms of CPU time to wait for a second. A poll takes tens of microseconds in
# emulation, and 1500 polls before it sleeps take about that long; ranks that share cores poll
# less anyway.
mpi_tests() {
	local ranks=$1
	shift
	cd /muster
	unset MUSTER_SPIN MUSTER_YIELD
	[ $ranks -gt $(nproc) ] || export MUSTER_SPIN=200 MUSTER_YIELD=100
	over_verbs 300 $ranks ./mpi.test -test.v -test.timeout 290s "$@" >/tmp/tests 2>&1 || {
		grep -vE '=== |--- (PASS|SKIP)|out of step' /tmp/tests
		return 1
	}
	grep -q -- '--- PASS' /tmp/tests
	note "$ranks ranks: $(grep -c '^.0. --- PASS' /tmp/tests) tests passed, $(grep -c '^.0. --- SKIP' /tmp/tests) skipped"
}

communicators='Dup|Split|Create|Freed|Names|Group'
collectives='Barrier|Bcast|Reduce|Predefined|Gather|Alltoall|Collective|Counts|ManyRanks'
windows='FetchAndAdd|ExclusiveLock|ReadersShare|Accumulate|CompareAndSwap|PutInto|PutIsSeen|GetReads|OfWindows|Window|LockHolder'
reading='ExclusiveLock|ReadersShare|GetReads|OfWindows' # of these, they get
frequent='MessagesOfAJob|AJobSends|OfAJobUse'
# These count allocations and processor time over thousands of rounds.
measuring='AllocateNothing|WaitingUsesLittleCPU'
step_p2p() {
	mpi_tests 2 -test.skip "$communicators|$collectives|$windows|$frequent|$measuring"
}
step_communicators() {
	mpi_tests 2 -test.run "$communicators"
	mpi_tests 3 -test.run "$communicators"
}
step_collectives() {
	mpi_tests 2 -test.run "$collectives" -test.skip "$measuring"
	mpi_tests 3 -test.run "$collectives" -test.skip "$measuring"
}

# Short messages from frequently used buffers, and windows. The costs that decide about
# registration are measured in the guest; the tests read the counters and report for each call
# and length what was copied and what was sent without a copy.
step_buffers() {
	over_verbs 60 2 muster explain >/tmp/explain
	cat /tmp/explain
	grep -q 'Buffers of short messages, puts and gets are copied. Registration pays off' /tmp/explain
	awk '$2 == 1024 || $2 == 4096 || $2 == 8192 || $2 == 16384 || $2 == 32768 { print "from " $2 " bytes: R " $4 ", C " $5 ", V " $6 " / " $7 " ns; uses that pay: Send " $8 ", Isend " $9 ", put and get " $10 }' /tmp/explain |
		while read -r line; do note "$line"; done
	if [ $kind = siw ]; then # a get is a read: see without_reads
		note "gets are excluded: libfabric 1.17 fails with reads among sends on siw"
		measuring="$measuring|$reading"
	fi
	mpi_tests 2 -test.run "$windows|$frequent" -test.skip "$measuring"
	counted '^.0. .*: rank 0, .* uses pay; '
	counted '^.0. .*frequent=auto, collectives of '
	# Whether the gain is at least 2 % of a transfer is measured at each start, with either result
	# here; the tests have checked that the behavior follows the rule.
	grep -E '^.0. .*Isend of [0-9]+ bytes: [1-9][0-9]* uses pay; 40 used once: 40 copied; one used often: [1-9][0-9]* from where it is' /tmp/tests >/dev/null ||
		note "in this run registration pays off for no length of Isend"
	export MUSTER_FREQUENT=always
	mpi_tests 2 -test.run "$windows|$frequent" -test.skip "$measuring"
	counted '^.0. .*frequent=always: [1-9][0-9]* messages from where they are, 0 of them into a ring'
	counted '^.0. .*frequent=always, collectives of .*; [1-9][0-9]* messages from where they are'
	export MUSTER_EAGER=rings
	mpi_tests 2 -test.run "$frequent"
	counted '^.0. .*frequent=always: [1-9][0-9]* messages from where they are, [1-9][0-9]* of them into a ring'
	counted '^.0. .*frequent=always, collectives of 1000 bytes.*, [1-9][0-9]* of them into a ring'
	unset MUSTER_EAGER
	export MUSTER_FREQUENT=never
	mpi_tests 2 -test.run "$frequent"
	counted '^.0. .*frequent=never: 0 messages from where they are'
	counted '^.0. .*frequent=never, collectives of .*; 0 messages from where they are'
}

# counted notes what the tests reported about the counters, and fails if they reported nothing.
counted() {
	grep -E "$1" /tmp/tests >/tmp/counted
	while read -r line; do note "${line#*go:*: }"; done </tmp/counted
}

# Figures of an emulated machine: they show that all sizes work, not how fast.
step_bench() {
	over_verbs 120 2 muster bench latency -m 8,1K,8K,64K,1M,4M,16M -i 20
	over_verbs 120 2 muster bench bw -m 8K,1M -i 3 -W 16
}

# Our devices on sockets beside the kernel's soft-iWARP in the same machine: rping and
# libfabric's own ping-pong, then ours. Half a round of rping is a Send each way and a Read
# or a Write, so whole rounds are reported. Only ratios are meaningful on an emulated machine.
step_verbs() {
	if [ $kind != siw ]; then
		note "our devices are compared with iWARP"
		return $not_run
	fi
	local rounds=400 begin end
	timeout 60 rping -s -a $address -p 7174 -C $rounds -S 64 &
	sleep 2
	begin=$(centiseconds)
	timeout 60 rping -c -a $address -p 7174 -C $rounds -S 64
	end=$(centiseconds)
	wait $!
	note "rping, 64 bytes: $(((end - begin) * 10000 / rounds)) us a round (four Sends, a Read, a Write)"
	export FI_UNIVERSE_SIZE=2
	timeout 120 fi_pingpong -p verbs -e msg -I 200 -S 64 &
	sleep 3
	timeout 120 fi_pingpong -p verbs -e msg -I 200 -S 64 $address | tee /tmp/pingpong
	wait $!
	note "libfabric over verbs, 64 bytes: $(tail -n 1 /tmp/pingpong | awk '{ print $7 }') us half a round trip"
	timeout -k 5 200 muster bench verbs-latency --device tcp,rc,rc-nocrc,rd --address $address --rounds 3 --time 1s --sizes 64,8K >/tmp/verbs
	grep -v '^#' /tmp/verbs | while read -r line; do note "$line"; done
	grep -q '^64 .*rc .*latency' /tmp/verbs
}

# The gain of sending without a copy: registration and copying alone, then worlds that alternate
# with every message, next to the predicted gain. The time of a message is that of an emulated
# machine; the two of one run can be compared.
step_bench_buffers() {
	over_verbs 100 2 muster bench reg -m 1K,4K,8K -i 200 >/tmp/figures
	over_verbs 200 2 muster bench reuse -m 1K,4K,8K -i 1000 >>/tmp/figures
	over_verbs 200 2 muster bench reuse --op isend -m 1K,4K,8K -i 3000 >>/tmp/figures
	over_verbs 200 2 muster bench spectrum -m 1K,4K,8K -i 60 >>/tmp/figures
	sed 's/^.0. //' /tmp/figures | while read -r line; do note "$line"; done
	grep -q 'isend-reuse-100-reached' /tmp/figures
}

centiseconds() {
	tr -d . </proc/uptime | cut -d' ' -f1
}

# Registered memory is really pinned: while a job runs the kernel counts pinned pages for
# its ranks and lists their memory regions, and afterwards none is left.
step_pinning() {
	local before after pinned=0 most=0 regions=0 n pid
	before=$(regions_listed)
	over_verbs 120 2 muster bench latency -m 4M -i 30 >/tmp/bench 2>&1 &
	local job=$!
	while kill -0 $job 2>/dev/null; do
		n=$(regions_listed)
		[ $n -le $regions ] || { regions=$n; rdma resource show mr >/tmp/regions; }
		for pid in $(pidof muster); do
			grep -E '^Vm(Pin|Lck|RSS)' /proc/$pid/status >/tmp/now 2>/dev/null || continue # it has ended
			pinned=$(awk '/^VmPin/ { print $2 }' /tmp/now)
			[ ${pinned:-0} -le $most ] || { most=$pinned; cp /tmp/now /tmp/status; }
		done
		sleep 0.2
	done
	wait $job || n=failed
	cat /tmp/bench /tmp/status
	[ $n != failed ]
	cut -c 1-110 /tmp/regions
	after=$(regions_listed)
	note "a rank had $most kB locked (VmPin), the job $((regions - before)) memory regions, $((after - before)) left behind"
	[ $most -gt 4096 ]
	[ $regions -gt $before ]
	[ $after -eq $before ]
}

regions_listed() {
	rdma resource show mr | wc -l
}

# A user who may not lock enough memory gets an error, and the job does not hang.
step_limit() {
	local status=0
	chmod 1777 /tmp /dev/shm
	timeout -k 5 60 su user -c "ulimit -l 64; exec muster run -n 2 muster bench latency -m 8 -i 10" >/tmp/limit 2>&1 || status=$?
	cat /tmp/limit
	[ $status != 0 ]
	[ $status != 124 ]
	[ $status != 143 ]
	grep -q 'ulimit -l' /tmp/limit
}
