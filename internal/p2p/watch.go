package p2p

// The steps of a rendezvous, for a trace, and the ends of single operations, for a profile.
// Without a watcher they cost a comparison where a packet of the protocol is made, and where
// an operation completes. Messages that are sent eagerly have no steps.

// WatchedStep is a step of a message at this rank.
type WatchedStep uint8

const (
	StepRTS      WatchedStep = iota // send: RTS sent; waits for the receiver
	StepRTR                         // receive: RTR sent, before its message (speculative)
	StepTransfer                    // the data is being transferred
	StepUnused                      // the RTR was not used; ends
	StepEnd                         // ends
)

// Watch makes the machine call f before each step of a rendezvous. f must not change x.
func (m *Machine) Watch(f func(x *Xfer, step WatchedStep)) {
	m.watch = f
	m.observe = func(x *Xfer, ev Event) {
		if x.proto == protoEager || x.proto == protoOneSided {
			return
		}
		switch ev.Kind {
		case EvMatched, EvCTS:
			f(x, StepTransfer)
		case EvDone, EvFIN, evFailed:
			f(x, StepEnd)
		}
	}
}

// reportStep reports a step that begins with a packet of this rank.
func (m *Machine) reportStep(x *Xfer, step WatchedStep) {
	if m.watch != nil {
		m.watch(x, step)
	}
}

// EndWatcher is told that an operation has completed.
type EndWatcher interface{ OperationEnded() }

// watchedEnd is an operation whose end is watched.
type watchedEnd struct {
	handle uint64
	by     EndWatcher
}

// WatchEnd makes the machine call by when the operation completes, unless it has completed.
// The arrival of a message of one packet is not reported: its path is the shortest one.
func (m *Machine) WatchEnd(x *Xfer, by EndWatcher) {
	if x.Done() {
		return
	}
	if len(m.ends) < len(m.slab) {
		m.ends = append(m.ends, make([]watchedEnd, len(m.slab)-len(m.ends))...)
	}
	m.ends[x.handle&(1<<32-1)-1] = watchedEnd{x.handle, by}
}

// reportEnd reports the end of an operation that is watched.
func (m *Machine) reportEnd(x *Xfer) {
	i := x.handle&(1<<32-1) - 1
	if i >= uint64(len(m.ends)) || m.ends[i].handle != x.handle {
		return
	}
	by := m.ends[i].by
	m.ends[i] = watchedEnd{}
	by.OperationEnded()
}
