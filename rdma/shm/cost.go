package shm

import (
	"os"
	"runtime"

	"github.com/muster-mpi/muster/rdma"
)

// describe fills in Attr. The costs were measured together on machines with two cores,
// with data that is written before and read after: they are nanoseconds there, and only
// their ratios matter. They are not measured again at every start: a measurement short
// enough for a start is wrong by a factor of two whenever the machine is busy.
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
		Oversubscribed: max(d.cfg.Peers, d.cfg.RanksOnCores) > d.cores(),
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
		switch {
		case a.Oversubscribed: // usually one side copies
			a.PullCost.Fixed += 1000
		case d.copies.kernel: // both sides copy, each its half
			a.PullCost = rdma.Cost{Fixed: 2700, PerByte: 0.05}
		default:
			a.PullCost.Fixed += 1000
			a.PullCost.PerByte *= 0.6
		}
	}
}

// segmentHint is the segment size at which copying in and copying out overlap well.
const segmentHint = 8 << 10

// probeKernel reports whether process_vm_readv is available and permitted, on the own
// process. Resolve determines whether a peer can be reached.
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
