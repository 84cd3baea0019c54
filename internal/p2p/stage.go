package p2p

// Bounce buffers of puts and gets (T1 5.3.2). On a device that needs local memory
// registered, the program's buffer is registered if it is used so often that it pays; else
// the bytes go through permanently registered memory of the library:
//
//	Transfer    calls Sources, which counts the use
//	   frequent the request carries the buffer's key: zero copy
//	   rare     a Stage: a put copies into it before the Write, a get out of it at the end
//	   neither  the buffer is registered like that of a long message: it is too long, or
//	            no Stage is free
//
// A Stage is released when the device has finished with it, and not before. If the
// operation fails while its request is pending, the Stage becomes an orphan: a late Read
// response would otherwise be written into a buffer that another operation uses by then.
// HandleCompletion finds it by the handle of the failed operation.

import "github.com/muster-mpi/muster/rdma"

// Stage is a block of permanently registered memory. The engine allocates it.
type Stage struct {
	Mem  []byte
	LKey uint32
	// Class and Next are the engine's: the free list it belongs to.
	Class int
	Next  *Stage
}

// orphan is a Stage whose request outlives its operation.
type orphan struct {
	handle uint64
	link   *Link
	via    *Stage
}

// StageUpTo sets the greatest length of puts and gets on a link for which Sources is used.
func (m *Machine) StageUpTo(l *Link, most int) { l.stageMax = most }

// transferBuffer returns memory that the device may access for x. It returns nil if there
// is none, and x has failed.
func (m *Machine) transferBuffer(x *Xfer) []byte {
	l := x.Link
	if !l.Attr.LocalKeys {
		return x.Buf
	}
	if len(x.Buf) <= l.stageMax {
		mr, direct, via := m.sources.TransferBuffer(l, x.Buf)
		switch {
		case direct:
			x.mr, x.lease = mr, leaseUncounted
			return x.Buf
		case via != nil:
			x.via, x.mr.LKey = via, via.LKey
			mem := via.Mem[:len(x.Buf)]
			if x.Send {
				copy(mem, x.Buf)
			}
			return mem
		}
	}
	if !m.register(x, x.Buf, 0, false) {
		return nil
	}
	return x.Buf
}

// releaseBuffer releases the memory of transferBuffer. The device has finished with it.
func (m *Machine) releaseBuffer(x *Xfer) {
	if x.via != nil {
		m.sources.ReleaseStage(x.Link, x.via)
		x.via = nil
	}
	m.release(x)
}

// orphanStage keeps the Stage of an operation that ends before its request, until the
// request has completed.
func (m *Machine) orphanStage(x *Xfer) {
	m.orphans = append(m.orphans, orphan{x.handle, x.Link, x.via})
	x.via = nil
}

// reclaimOrphan releases the Stage of a request that has completed after its operation.
func (m *Machine) reclaimOrphan(handle uint64) {
	for i, o := range m.orphans {
		if o.handle == handle {
			m.sources.ReleaseStage(o.link, o.via)
			last := len(m.orphans) - 1
			m.orphans[i] = m.orphans[last]
			m.orphans[last] = orphan{}
			m.orphans = m.orphans[:last]
			return
		}
	}
}

// HandleDropped is called with requests that were never posted because their link has failed.
func (m *Machine) HandleDropped(wrs []rdma.SendWR) {
	for i := 0; i < len(wrs) && len(m.orphans) > 0; i++ {
		m.reclaimOrphan(wrs[i].ID)
	}
}
