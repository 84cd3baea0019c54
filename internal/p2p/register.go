package p2p

// Registration of message buffers. A device may have a registration table of limited size
// (Attr.MaxRegions). The same rule applies to it as to the queues (doc.go): what completes
// by progress alone must not wait for what waits for the peer's application.
//
//   - A send by rndv_get or rndv_coop registers its buffer before it is matched (expose),
//     and so does a receive that sends an RTR. These use at most half of the table.
//     Beyond that, or when the table is full, a send uses rndv_put, which registers
//     nothing here until the receiver has matched, and a receive sends no RTR.
//   - A matched receive that finds the table full waits until another matched one, which
//     will complete, releases its registration (starved). Without such a one it fails:
//     then something else has filled the table.

import (
	"errors"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// lease is how a registration is counted.
type lease uint8

const (
	leaseNone      lease = iota // no registration
	leaseUncounted              // of a buffer that is registered anyway, or of a send with an offer
	leaseExposed                // operation may wait for the peer's application
	leaseMatched                // operation is matched
)

// mayExpose reports whether an unmatched operation may register its buffer.
func (d *device) mayExpose() bool { return d.attr.MaxRegions == 0 || d.exposed < d.attr.MaxRegions/2 }

// countExposed counts the registration of an unmatched operation.
func (x *Xfer) countExposed() {
	x.lease = leaseExposed
	x.Link.device.exposed++
}

// expose registers the buffer of an unmatched send, or switches the send to rndv_put.
func (m *Machine) expose(x *Xfer, acc rdma.Access) bool {
	d := x.Link.device
	put := d.attr.Ops.Has(rdma.OpWrite)
	if !put || d.mayExpose() {
		mr, err := m.mem.Register(x.Link, x.Buf, acc)
		if err == nil {
			x.mr = mr
			x.countExposed()
			return true
		}
		if !put || !errors.Is(err, rdma.ErrNoResources) {
			m.failRegistration(x, len(x.Buf), err)
			return false
		}
	}
	x.proto = protoPut
	protocols[protoPut].Begin(m, x)
	return false
}

// register registers x's memory. If that fails the operation fails, and with matched a FIN
// notifies the other side, which waits: a sender that has sent an RTS, or a receiver that
// has sent a CTS or RTR.
func (m *Machine) register(x *Xfer, mem []byte, acc rdma.Access, matched bool) bool {
	d := x.Link.device
	mr, err := m.mem.Register(x.Link, mem, acc)
	if err != nil {
		if x.stage == stageMatched && d.matched > 0 && errors.Is(err, rdma.ErrNoResources) {
			m.starved = append(m.starved, x)
			return false
		}
		if matched {
			m.emitFIN(x.Link, x.peer, 0, rdma.StatusFault)
		}
		m.failRegistration(x, len(mem), err)
		return false
	}
	x.mr, x.lease = mr, leaseUncounted
	if matched {
		x.lease = leaseMatched
		d.matched++
	}
	return true
}

// failRegistration fails an operation whose memory could not be registered.
func (m *Machine) failRegistration(x *Xfer, n int, err error) {
	m.fail(x, fmt.Errorf("%w: register %d bytes for rank %d on %s: %w", ErrTransport, n, x.Link.Rank, x.Link.Host, err))
}

// release ends a registration, and lets a receive that waits for one try again.
func (m *Machine) release(x *Xfer) {
	if x.lease == leaseNone {
		return
	}
	m.mem.Deregister(x.Link, x.mr)
	switch x.lease {
	case leaseExposed:
		x.Link.device.exposed--
	case leaseMatched:
		x.Link.device.matched--
	}
	x.lease = leaseNone
	if len(m.starved) > 0 {
		next := m.starved[0]
		m.unstarve(next)
		m.advance(next, Event{Kind: EvMatched})
	}
}

// unstarve removes a receive from the list of those that wait for a registration.
func (m *Machine) unstarve(x *Xfer) {
	if i := slices.Index(m.starved, x); i >= 0 {
		m.starved = slices.Delete(m.starved, i, i+1)
	}
}
