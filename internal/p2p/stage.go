package p2p

// Memory that puts and gets are copied through (T1 5.3.2). On a device that wants local memory
// registered, the program's buffer is registered if it is used so often that it pays; else
// the bytes go through memory of the library's own that is registered for good:
//
//	Move        asks Sources, which counts the use
//	   often    the buffer's key goes with the request: zero copy
//	   rarely   a Stage: a put copies into it before the Write, a get out of it at the end
//	   neither  the buffer is registered as long messages are: too long, or no Stage left
//
// A Stage goes back when the device is done with it, and not before. If the operation ends
// badly while its request is under way, the Stage is an orphan: a late answer to a Read would
// be written into what another operation uses by then. Completed finds it by the handle of
// the operation that is no more.

import "github.com/muster-mpi/muster/rdma"

// Stage is a block of memory that is registered for good. The shell makes it.
type Stage struct {
	Mem  []byte
	LKey uint32
	// Class and Next are the shell's: which list it belongs to.
	Class int
	Next  *Stage
}

// orphan is a Stage whose request outlives its operation.
type orphan struct {
	handle uint64
	link   *Link
	via    *Stage
}

// StageUpTo says that Sources is asked for puts and gets of so many bytes and fewer on a link.
func (m *Machine) StageUpTo(l *Link, most int) { l.stageMax = most }

// place finds memory that the device may move the bytes of x from or to. It is nil if there
// is none, and x has ended.
func (m *Machine) transferBuffer(x *Xfer) []byte {
	l := x.Link
	if !l.Attr.LocalKeys {
		return x.Buf
	}
	if len(x.Buf) <= l.stageMax {
		mr, direct, via := m.sources.TransferBuffer(l, x.Buf)
		switch {
		case direct:
			x.mr, x.hasMR = mr, true
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

// releaseBuffer gives back what place took. The device is done with it.
func (m *Machine) releaseBuffer(x *Xfer) {
	if x.via != nil {
		m.sources.ReleaseStage(x.Link, x.via)
		x.via = nil
	}
	m.release(x)
}

// orphanStage keeps the Stage of an operation that ends before its request, until that has
// ended too.
func (m *Machine) orphanStage(x *Xfer) {
	m.orphans = append(m.orphans, orphan{x.handle, x.Link, x.via})
	x.via = nil
}

// reclaimOrphan gives the Stage of a request back that has ended after its operation.
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

// Dropped is called with requests that were never posted, since their link has failed.
func (m *Machine) Dropped(wrs []rdma.SendWR) {
	for i := 0; i < len(wrs) && len(m.orphans) > 0; i++ {
		m.reclaimOrphan(wrs[i].ID)
	}
}
