package p2p

// Registrations of messages' buffers. A device may have a table of them that can fill up
// (Attr.MaxRegions), and the same rule holds for it as for its queues (doc.go): what ends
// by progress alone must not wait for what waits for the peer's application.
//
//   - A send by rndv_get or rndv_coop registers its buffer before it is matched (expose),
//     and so does a receive that sends an RTR. These take half of the table. A send
//     beyond that goes by rndv_put, which registers nothing here until the receiver has
//     matched, and a receive sends no RTR. The same happens when the table is full.
//   - A receive that is matched and finds the table full waits for another one that is
//     matched too, and so will end (starved). Without such another it fails: then
//     somebody else has filled the table.

import (
	"errors"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// lease is what a registration is counted as.
type lease uint8

const (
	leaseNone    lease = iota
	leaseExposed       // of an operation that may wait for the peer's application
	leaseMatched       // of an operation that is matched
)

// mayExpose reports whether an operation that is not matched may register its buffer.
func (d *device) mayExpose() bool { return d.attr.MaxRegions == 0 || d.exposed < d.attr.MaxRegions/2 }

// exposed counts the registration of an operation that is not matched.
func (x *Xfer) exposed() {
	x.lease = leaseExposed
	x.Link.device.exposed++
}

// expose registers the buffer of a send that nobody has matched, or lets the send go by
// rndv_put.
func (m *Machine) expose(x *Xfer, acc rdma.Access) bool {
	d := x.Link.device
	put := d.attr.Ops.Has(rdma.OpWrite)
	if !put || d.mayExpose() {
		mr, err := m.mem.Register(x.Link, x.Buf, acc)
		if err == nil {
			x.mr, x.hasMR = mr, true
			x.exposed()
			return true
		}
		if !put || !errors.Is(err, rdma.ErrNoResources) {
			m.unregistered(x, len(x.Buf), err)
			return false
		}
	}
	x.proto = protoPut
	protocols[protoPut].Begin(m, x)
	return false
}

// register makes x's memory known to the device. If that fails the operation ends, and
// with matched the other side, which waits for something, is told: a sender that has
// asked, or a receiver that has said where the data should go.
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
		m.unregistered(x, len(mem), err)
		return false
	}
	x.mr, x.hasMR = mr, true
	if matched {
		x.lease = leaseMatched
		d.matched++
	}
	return true
}

// unregistered ends an operation whose memory could not be registered.
func (m *Machine) unregistered(x *Xfer, n int, err error) {
	m.fail(x, fmt.Errorf("%w: registering %d bytes for rank %d on %s: %w", ErrTransport, n, x.Link.Rank, x.Link.Host, err))
}

// release gives a registration back, and its place to a receive that waits for one.
func (m *Machine) release(x *Xfer) {
	if !x.hasMR {
		return
	}
	m.mem.Deregister(x.Link, x.mr)
	x.hasMR = false
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

// unstarve takes a receive off the list of those that wait for a registration.
func (m *Machine) unstarve(x *Xfer) {
	if i := slices.Index(m.starved, x); i >= 0 {
		m.starved = slices.Delete(m.starved, i, i+1)
	}
}
