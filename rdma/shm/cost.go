package shm

import (
	"os"
	"runtime"

	"github.com/muster-mpi/muster/rdma"
)

// describe fills in Attr. The costs are proportions that were measured, side by
// side and with data that is written before and read after, on machines of two
// cores: nanoseconds there, and only ratios matter to those who use them. They are
// not measured anew at every start: what can be measured in the time that a start
// may take is wrong by a factor of two whenever the machine is busy.
func (d *Device) describe() {
	d.copies.kernel = d.cfg.Host == nil && !d.cfg.NoProcessVM && probeKernel()
	a := &d.attr
	*a = rdma.Attr{
		Name:           "shm",
		Transports:     rdma.RD,
		Ops:            rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		MaxSend:        maxSend,
		MaxInline:      maxSend,
		SegmentHint:    segmentHint,
		MaxRegions:     int(d.seg.geo.slots),
		Oversubscribed: d.cfg.Peers > d.cores(),
	}
	a.RegCost = rdma.Cost{Fixed: 40}
	// A message is copied in and out, which overlaps if both sides have a core.
	a.SendCost = rdma.Cost{Fixed: 300, PerByte: 0.13}
	if a.Oversubscribed {
		a.SendCost.PerByte = 0.16
	}
	switch {
	case d.cfg.Host != nil && !d.cfg.NoProcessVM: // a plain copy
		a.ReadCost = rdma.Cost{Fixed: 500, PerByte: 0.06}
	case d.copies.kernel: // a system call, and a copy by one side
		a.ReadCost = rdma.Cost{Fixed: 2000, PerByte: 0.1}
	default: // through the ring, with an answer
		a.RemoteCPU = true
		a.ReadCost = a.SendCost.Plus(rdma.Cost{Fixed: 1000, PerByte: 0.05})
	}
	a.PutCost, a.PullCost = a.ReadCost, a.ReadCost
	if !a.RemoteCPU {
		a.Ops |= rdma.Ops(rdma.OpPull, rdma.OpPush)
		a.MaxPush = maxPush
		a.PullCost.Fixed += 1000
		if !a.Oversubscribed {
			a.PullCost.PerByte *= 0.6 // two copy at once
		}
	}
}

// segmentHint is the piece size at which copying in and copying out overlap well.
const segmentHint = 8 << 10

// probeKernel reports whether the kernel has process_vm_readv and lets us use it,
// on ourselves. Whether a peer can be reached is found out when it is resolved.
func probeKernel() bool {
	from, to := []byte{42}, []byte{0}
	n, errno := processRead(os.Getpid(), to, rdma.MemOf(from).Addr())
	runtime.KeepAlive(from)
	return errno == 0 && n == 1 && to[0] == from[0]
}

// cores returns the number of cores that the ranks share.
func (d *Device) cores() int {
	switch {
	case d.cfg.Cores > 0:
		return d.cfg.Cores
	case d.cfg.Host != nil:
		return runtime.GOMAXPROCS(0)
	}
	return OnlineCores()
}
