package p2p

// The steps of a rendezvous, for a trace. Without a watcher they cost a comparison where a
// packet of the protocol is made; messages that are sent eagerly have no steps.

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

// watched reports a step that begins with a packet of this rank.
func (m *Machine) watched(x *Xfer, step WatchedStep) {
	if m.watch != nil {
		m.watch(x, step)
	}
}
