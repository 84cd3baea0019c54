package rail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// A network in virtual time, of rails that are slow, late, cut and repaired. Each rail
// is reliable, like RD: while a link is cut its messages wait, and they arrive when it
// is repaired, however late. A rail may also declare its peers gone.

// world is the clock and the nodes.
type world struct {
	now   time.Duration
	nodes []*Device
}

// wire is one rail of the network, between all nodes.
type wire struct {
	w           *world
	latency     time.Duration
	speed       float64 // bytes per nanosecond
	cut         bool
	peerTimeout time.Duration // silence after which a peer is declared gone; 0: never
	ports       []*port
}

// port is the device of one node on a wire.
type port struct {
	rdma.Device // the other methods are not used
	wire        *wire
	number      int
	attr        rdma.Attr
	free        []time.Duration // when the link to a node is idle
	under       []*packet
	done        []rdma.Completion
	closed      bool
}

type packet struct {
	from, to *port
	id       uint64
	head     []byte
	body     rdma.Mem // read on arrival, like a device that retransmits
	posted   time.Duration
	at       time.Duration // arrival
	came     bool
	knownAt  time.Duration // when the sender gets the completion
	ended    bool
}

func newWorld(t *testing.T, nodes int, wires ...*wire) *world {
	t.Helper()
	w := &world{}
	for node := range nodes {
		c := Config{Name: uint32(node), NoThread: true}
		for i, wr := range wires {
			wr.w = w
			p := &port{wire: wr, number: node, free: make([]time.Duration, nodes)}
			p.attr = rdma.Attr{Name: "virtual", Transports: rdma.RD, Ops: rdma.Ops(rdma.OpSend), MaxSend: 60 << 10, SendCost: rdma.Cost{Fixed: 1000, PerByte: 1}}
			wr.ports = append(wr.ports, p)
			c.Rails = append(c.Rails, Rail{Name: fmt.Sprintf("wire%d", i), Device: p})
		}
		d, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		d.clock = func() time.Duration { return w.now }
		w.nodes = append(w.nodes, d)
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return w
}

// step lets time pass until something may happen.
func (w *world) step(cqs []*queue, wires []*wire) {
	next := w.now + 5*time.Millisecond
	for _, c := range cqs {
		due := time.Duration(0)
		if c.Len() == 0 {
			due = c.dev.untilDue(c.pairs, time.Hour)
		}
		next = min(next, w.now+max(due, time.Microsecond))
	}
	for _, wr := range wires {
		for _, p := range wr.ports {
			for _, k := range p.under {
				if at := k.next(); at > w.now {
					next = min(next, at)
				}
			}
		}
	}
	w.now = next
}

func (k *packet) next() time.Duration {
	if k.came {
		return k.knownAt
	}
	return k.at
}

func (p *port) Attr() *rdma.Attr                         { return &p.attr }
func (p *port) NewCQ(int) (rdma.CQ, error)               { return p, nil }
func (p *port) NewSRQ(rdma.SRQConfig) (rdma.SRQ, error)  { return lender{}, nil }
func (p *port) NewQP(rdma.QPConfig) (rdma.QP, error)     { return p, nil }
func (p *port) Addr() rdma.Addr                          { return rdma.Addr(fmt.Sprint(p.number)) }
func (p *port) Connect(context.Context, rdma.Addr) error { return errors.ErrUnsupported }
func (p *port) PostRecv([]rdma.RecvWR) (int, error)      { return 0, errors.ErrUnsupported }
func (p *port) Wait(time.Duration) error                 { return nil }
func (p *port) Wake()                                    {}
func (p *port) Resolve(a rdma.Addr) (id rdma.PeerID, e error) {
	_, e = fmt.Sscan(string(a), &id)
	return id, e
}
func (p *port) Close() error { p.closed = true; return nil }

type lender struct{ rdma.SRQ }

func (lender) Close() error { return nil }

// PostSend puts a message on the wire, unless that is full.
func (p *port) PostSend(wrs []rdma.SendWR) (int, error) {
	wr := &wrs[0]
	if len(p.under) > 40 {
		return 0, rdma.ErrAgain
	}
	size := int(wr.HeadLen) + wr.Body.Len()
	w := p.wire
	start := max(w.w.now, p.free[wr.Peer])
	p.free[wr.Peer] = start + time.Duration(float64(size)/w.speed)
	p.under = append(p.under, &packet{
		from: p, to: w.ports[wr.Peer], id: wr.ID, head: append([]byte{}, wr.Head[:wr.HeadLen]...), body: wr.Body, posted: w.w.now, at: p.free[wr.Peer] + w.latency,
	})
	return 1, nil
}

// Keep copies what is in flight to a peer.
func (p *port) Keep(peer rdma.PeerID) {
	for _, k := range p.under {
		if k.to.number == int(peer) {
			k.body = rdma.MemOf(slices.Clone(k.body.Bytes()))
		}
	}
}

// reads reports whether something in flight may still be read from this memory.
func (p *port) reads(mem rdma.Mem) bool {
	return slices.ContainsFunc(p.under, func(k *packet) bool {
		return k.body.Len() > 0 && k.body.Addr()-mem.Addr() < uint64(mem.Len())
	})
}

// Poll returns arrivals, in order, and completions of sends.
func (p *port) Poll(out []rdma.Completion) (n int) {
	w := p.wire
	now := w.w.now
	for _, from := range w.ports {
		for _, k := range from.under {
			if k.to != p || k.came || k.ended {
				continue
			}
			if w.cut || k.at > now || n == len(out) {
				break // later ones must not overtake
			}
			k.came, k.knownAt = true, now+w.latency
			text := append(k.head, k.body.Bytes()...)
			out[n] = rdma.Completion{Op: rdma.OpRecv, Peer: rdma.PeerID(from.number), Len: uint64(len(text)), Data: rdma.MemOf(text)}
			n++
		}
	}
	for _, k := range p.under {
		status := rdma.StatusOK
		switch {
		case w.peerTimeout > 0 && now-k.posted > w.peerTimeout && (w.cut || !k.came):
			status = rdma.StatusPeerGone
		case w.cut || !k.came || k.knownAt > now:
			continue
		}
		k.ended = true
		p.done = append(p.done, rdma.Completion{Op: rdma.OpSend, ID: k.id, Peer: rdma.PeerID(k.to.number), Status: status})
	}
	p.under = slices.DeleteFunc(p.under, func(k *packet) bool { return k.ended })
	m := copy(out[n:], p.done)
	p.done = p.done[:copy(p.done, p.done[m:])]
	return n + m
}
