package rdmatest

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/muster-mpi/muster/rdma"
)

// Wrap injects faults between a device and its user. faultyQP.PostSend decides the faults
// of a message and holds it (faults_send.go), deliverDue passes it to the device when it
// is due, and faultyCQ.Poll translates the device's completions into the user's
// (faults_poll.go). faultyCQ also discards messages and completions of peers that have
// disappeared.

// Faults configures the faults. The zero value changes nothing.
type Faults struct {
	// Seed seeds all random decisions. Each queue pair draws once for each message, so the
	// treatment of its k-th message depends only on the seed.
	Seed uint64
	// Drop is the share of messages that are lost, from 0 to 1. It applies only to UD
	// queue pairs, because the other transports are reliable.
	Drop float64
	// Duplicate is the share of messages that are delivered twice. UD only.
	Duplicate float64
	// Reorder is the share of messages that are overtaken by up to three others. UD only.
	Reorder float64
	// Delay holds every message back for 0 to Delay steps, on all transports. A step is a
	// Poll of the sending device or a message that it accepts. Time does not count, so
	// that the result does not depend on the speed of the machine. A sender that does not
	// poll therefore keeps its messages. Messages to the same peer stay in order unless
	// the queue pair is UD.
	Delay int
}

// Tally counts the messages and their faults.
type Tally struct{ Messages, Dropped, Duplicated, Reordered, Delayed int }

// Faulty is a device with faults. Calls must be serialized as for any device,
// except Kill and KillAfter.
type Faulty struct {
	rdma.Device
	attr   rdma.Attr
	faults Faults
	qps    []*faultyQP
	step   int
	lastID uint64
	works  map[uint64]*faultyWork // posted to the device under this ID
	left   map[rdma.PeerID]int    // messages remaining before a doomed peer is gone; 0: it is gone
	dying  []rdma.PeerID          // gone, but their work is not completed yet
	tally  Tally
	closed bool

	mu    sync.Mutex // guards what Kill modifies
	cqs   []*faultyCQ
	kills []kill
}

type kill struct {
	addr  rdma.Addr
	after int
}

// Wrap returns dev with faults injected. Write-Records are not supported: requests are
// posted to the device under other IDs, which the peer of a Write-Record would see.
func Wrap(dev rdma.Device, faults Faults) *Faulty {
	attr := *dev.Attr()
	attr.Ops &^= rdma.Ops(rdma.OpWriteRecord)
	return &Faulty{Device: dev, attr: attr, faults: faults, works: map[uint64]*faultyWork{}, left: map[rdma.PeerID]int{}}
}

// Attr returns the attributes of the device, without Write-Records.
func (f *Faulty) Attr() *rdma.Attr { return &f.attr }

// Caps returns nothing: no fault applies to it.
func (f *Faulty) Caps() rdma.Caps { return rdma.Caps{} }

// Tally returns the counts so far.
func (f *Faulty) Tally() Tally { return f.tally }

// Kill makes the peer with this address disappear, as seen by this device: all requests to
// it complete with StatusPeerGone, and nothing more arrives from it. To end a rank for a
// whole job, kill it on every other device; as in practice, these learn of it at different
// times. Kill is for RD and UD. Any goroutine may call it.
func (f *Faulty) Kill(addr rdma.Addr) { f.KillAfter(addr, 0) }

// KillAfter is Kill after the given number of further messages to or from the peer.
func (f *Faulty) KillAfter(addr rdma.Addr, messages int) {
	f.mu.Lock()
	f.kills = append(f.kills, kill{addr, messages})
	cqs := f.cqs
	f.mu.Unlock()
	for _, c := range cqs {
		c.Wake() // waiters must notice it
	}
}

// learn applies the kills requested since the last call.
func (f *Faulty) learn() {
	f.mu.Lock()
	kills := f.kills
	f.kills = nil
	f.mu.Unlock()
	for _, k := range kills {
		peer, err := f.Device.Resolve(k.addr)
		if err != nil {
			panic(fmt.Sprintf("rdmatest: Kill of %q, which the device cannot resolve: %v", k.addr, err))
		}
		f.left[peer] = k.after
		if k.after == 0 {
			f.dying = append(f.dying, peer)
		}
	}
	f.failPeers()
}

func (f *Faulty) gone(peer rdma.PeerID) bool {
	left, doomed := f.left[peer]
	return doomed && left == 0
}

// countMessage counts a message to or from a peer, which may have been its last.
func (f *Faulty) countMessage(peer rdma.PeerID) {
	if left := f.left[peer]; left > 0 {
		f.left[peer] = left - 1
		if left == 1 {
			f.dying = append(f.dying, peer)
		}
	}
}

// failPeers completes the requests to peers that are gone. A request for which the device
// writes into the user's memory waits for the device, which does not stop by itself; only
// requests that need the peer's CPU would never end.
func (f *Faulty) failPeers() {
	if len(f.dying) == 0 {
		return
	}
	f.dying = nil
	for _, id := range slices.Sorted(maps.Keys(f.works)) {
		w := f.works[id]
		writes := w.op == rdma.OpRead || w.op == rdma.OpPull
		if w.q.named() && f.gone(w.peer) && !w.silent && (!writes || f.Device.Attr().RemoteCPU) {
			w.fail(rdma.StatusPeerGone)
		}
	}
	for _, q := range f.qps {
		q.held = slices.DeleteFunc(q.held, func(h *heldMessage) bool {
			dead := q.named() && f.gone(h.wr.Peer)
			if dead {
				h.work.fail(rdma.StatusPeerGone)
			}
			return dead
		})
	}
}

func (f *Faulty) NewCQ(depth int) (rdma.CQ, error) {
	inner, err := f.Device.NewCQ(depth)
	if err != nil {
		return nil, err
	}
	c := &faultyCQ{f: f, CQ: inner}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cqs = append(f.cqs, c)
	return c, nil
}

func (f *Faulty) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	sendCQ, ok1 := cfg.SendCQ.(*faultyCQ)
	recvCQ, ok2 := cfg.RecvCQ.(*faultyCQ)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("new queue pair on a device with faults: its completion queues must be of the same device")
	}
	cfg.SendCQ, cfg.RecvCQ = sendCQ.CQ, recvCQ.CQ
	inner, err := f.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	q := &faultyQP{
		QP: inner, f: f, kind: cfg.Type, sendCQ: sendCQ, lastDue: map[rdma.PeerID]int{},
		random: generator(f.faults.Seed ^ uint64(len(f.qps))<<32),
	}
	f.qps = append(f.qps, q)
	return q, nil
}

// Close sends the held messages, as far as the device accepts them, and closes the device.
func (f *Faulty) Close() error {
	for _, q := range f.qps {
		q.flush()
	}
	f.closed = true
	return f.Device.Close()
}
