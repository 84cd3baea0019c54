package shm

import (
	"os"
	"runtime"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// measure fills in Attr. What a copy costs is measured here and now, in a few
// dozen microseconds: machines differ by a factor of ten. The costs of passing a
// cache line and of copying into and out of a ring are derived from it by the
// proportions that were found on several machines; only ratios matter to those
// who use them.
func (d *Device) measure() {
	const n = 16 << 10 // little, since Go keeps the garbage for a while
	from, to := make([]byte, n), make([]byte, n)
	perByte := perByteOf(n, func() { copy(to, from) })

	d.copies.kernel = d.cfg.Host == nil && !d.cfg.NoProcessVM && probeKernel()
	a := &d.attr
	*a = rdma.Attr{
		Name:        "shm",
		Transports:  rdma.RD,
		Ops:         rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		MaxSend:     maxSend,
		MaxInline:   maxSend,
		SegmentHint: segmentHint,
		Crowded:     d.cfg.Peers > d.cores(),
	}
	// A message is copied in and out, which overlaps in part; its lines then move
	// from one core to the other.
	a.SendCost = rdma.Cost{Fixed: 150, PerByte: 2.5 * perByte}
	a.RegCost = rdma.Cost{Fixed: 40}
	switch {
	case d.cfg.Host != nil && !d.cfg.NoProcessVM:
		a.ReadCost = rdma.Cost{Fixed: 200, PerByte: 2 * perByte}
	case d.copies.kernel:
		call := perByteOf(n, func() { processRead(os.Getpid(), to, rdma.MemOf(from).Addr()) })
		a.ReadCost = rdma.Cost{Fixed: 600, PerByte: max(call, 2*perByte)}
	default:
		a.RemoteCPU = true
		a.ReadCost = a.SendCost.Plus(rdma.Cost{Fixed: 1000, PerByte: perByte})
	}
	a.PutCost, a.PullCost = a.ReadCost, a.ReadCost
	if !a.RemoteCPU {
		a.Ops |= rdma.Ops(rdma.OpPull, rdma.OpPush)
		if !a.Crowded {
			a.PullCost.PerByte *= 0.55 // two copy at once
		}
		a.PullCost.Fixed += 500
	}
}

// segmentHint is the piece size at which copying in and copying out overlap well.
const segmentHint = 8 << 10

// perByteOf is the time of f, the best of a few, for each of n bytes, in ns.
func perByteOf(n int, f func()) float64 {
	f() // the first touches the pages
	best := time.Duration(1 << 62)
	for range 3 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return float64(best.Nanoseconds()) / float64(n)
}

// probeKernel tells whether the kernel has process_vm_readv and lets us use it,
// on ourselves. Whether a peer can be reached is found out when it is resolved.
func probeKernel() bool {
	from, to := []byte{42}, []byte{0}
	n, errno := processRead(os.Getpid(), to, rdma.MemOf(from).Addr())
	runtime.KeepAlive(from)
	return errno == 0 && n == 1 && to[0] == from[0]
}

// cores is the number of cores that the ranks share.
func (d *Device) cores() int {
	switch {
	case d.cfg.Cores > 0:
		return d.cfg.Cores
	case d.cfg.Host != nil:
		return runtime.GOMAXPROCS(0)
	}
	return onlineCores()
}
