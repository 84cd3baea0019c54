package p2p

// A world of machines for tests: ranks, the links between them, and passive devices. The
// test decides when a device accepts a request, when a packet is delivered, and when a work
// request completes; scripts do so line by line, the explorer in every order.

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// world is a job.
type world struct {
	cfg   Config
	attr  rdma.Attr
	nodes []*node
	wires []wire // from × ranks + to
	// slow devices accept a request only on demand; others at once, if there is room.
	slow bool
	// depth bounds the RDMA requests that a device holds, and the packets in flight to
	// one peer; 0: no limit.
	depth int
	// pushDepth makes the device incorrect: an OpPush counts against the depth.
	pushDepth bool
	// done, if not nil, is called with completed operations.
	done func(rank int, x *Xfer)
	// log, if not nil, is called with every action.
	log func(format string, args ...any)
	// fault is the first violation that a device detected.
	fault string
	heap  []byte // packets are cut from it
}

// node is a rank.
type node struct {
	rank  int
	m     *Machine
	mem   *memory
	links []*Link
	work  []work // RDMA requests that have not completed
}

// wire is one direction between two ranks.
type wire struct {
	wait     []rdma.SendWR // not accepted by the device yet
	inFlight [][]byte      // packets in flight
}

// work is a request that the device has accepted.
type work struct {
	wr     rdma.SendWR
	to     int
	copied bool // the other side of a cooperative copy has copied the bytes
}

// testAttr returns the attributes of a device that supports everything. Its costs make eager
// the choice up to the limit, and the rendezvous protocols equal.
func testAttr(segment int) rdma.Attr {
	return rdma.Attr{Name: "test", Transports: rdma.RD,
		Ops:     rdma.Ops(rdma.OpSend, rdma.OpRead, rdma.OpWrite, rdma.OpPull, rdma.OpPush),
		MaxSend: 1 << 20, MaxInline: 1 << 20, MaxPush: 1 << 20, SegmentHint: segment,
		SendCost: rdma.Cost{Fixed: 100, PerByte: 0.01}, ReadCost: rdma.Cost{Fixed: 1000, PerByte: 1},
		PutCost: rdma.Cost{Fixed: 1000, PerByte: 1}, PullCost: rdma.Cost{Fixed: 5000, PerByte: 1},
		RegCost: rdma.Cost{Fixed: 10}}
}

func newWorld(ranks int, cfg Config, attr rdma.Attr, arena int) *world {
	if cfg.Speculate == "" {
		cfg.Speculate = "auto" // whatever the device
	}
	w := &world{cfg: cfg, attr: attr, wires: make([]wire, ranks*ranks)}
	for r := range ranks {
		n := &node{rank: r, mem: newMemory(r, arena), links: make([]*Link, ranks)}
		n.m = New(cfg, n.mem)
		for p := range ranks {
			n.links[p] = &Link{Rank: p, Host: "host", Peer: rdma.PeerID(p), Attr: &w.attr, Open: true}
			n.m.SetUp(n.links[p])
			n.links[p].recent = new(recent) // as after an offer: otherwise the first one that crosses a message is stale
		}
		w.nodes = append(w.nodes, n)
	}
	return w
}

func (w *world) wire(from, to int) *wire { return &w.wires[from*len(w.nodes)+to] }

// settle executes the actions of a rank's machine, as the engine does after every call.
func (w *world) settle(r int) {
	n := w.nodes[r]
	o := &n.m.Out
	for i := range o.WR {
		wi := w.wire(r, o.Link[i].Rank)
		wi.wait = append(wi.wait, o.WR[i])
		if w.slow && w.log != nil {
			w.log("%d->%d waits: %s", r, o.Link[i].Rank, w.describe(&o.WR[i]))
		}
		o.WR[i] = rdma.SendWR{ID: ^uint64(0), Remote: ^uint64(0), RKey: ^uint64(0), LKey: ^uint32(0), Flags: 0xff,
			HeadLen: 0xffff, Op: 0xff} // so that a field that is not set is detected
	}
	o.WR, o.Link = o.WR[:0], o.Link[:0]
	if !w.slow {
		for p := range w.nodes {
			for w.takes(r, p) {
				w.take(r, p)
			}
		}
	}
	for i := 0; i < len(n.work); i++ { // a push ends with its region
		if wr := &n.work[i].wr; wr.Op == rdma.OpPush && !n.mem.registeredAs(wr.RKey) {
			w.failWork(r, i, rdma.StatusRemoteAccess)
			return // it has settled
		}
	}
	for i := 0; i < len(o.Done); i++ {
		if w.done != nil {
			w.done(r, o.Done[i])
		}
	}
	o.Done = o.Done[:0]
}

// sendNow sends a message that needs no state, as the engine does.
func (w *world) sendNow(r int, l *Link, tag int32, buf []byte) bool {
	m := w.nodes[r].m
	if wr := m.SendOne(l, 0, int32(r), tag, buf); wr != nil {
		wi := w.wire(r, l.Rank)
		wi.wait = append(wi.wait, wr[0])
	} else if !m.SendNow(l, 0, int32(r), tag, buf) {
		return false
	}
	w.settle(r)
	return true
}

// takes reports whether a request waits from one rank to another, and the device has room
// for it.
func (w *world) takes(from, to int) bool {
	wi := w.wire(from, to)
	return len(wi.wait) > 0 && (w.depth == 0 || w.hasRoom(from, to, wi.wait[0].Op))
}

func (w *world) hasRoom(from, to int, op rdma.Op) bool {
	if op == rdma.OpSend {
		return len(w.wire(from, to).inFlight) < w.depth
	}
	pushes, others := 0, 0
	for i := range w.nodes[from].work {
		if w.nodes[from].work[i].wr.Op == rdma.OpPush {
			pushes++
		} else {
			others++
		}
	}
	switch {
	case w.pushDepth:
		return pushes+others < w.depth
	case op == rdma.OpPush:
		return pushes < w.attr.MaxPush
	}
	return others < w.depth
}

// stranded finds a rank whose device has no room for a request because of an OpPush without
// a pull: it waits for the peer's application, and so would everything behind it.
func (w *world) stranded() (from, to int, op rdma.Op, found bool) {
	if w.depth == 0 {
		return
	}
	for i := range w.wires {
		from, to := i/len(w.nodes), i%len(w.nodes)
		if len(w.wires[i].wait) == 0 || w.takes(from, to) {
			continue
		}
		op := w.wires[i].wait[0].Op
		if op == rdma.OpSend {
			continue // packets leave by being delivered
		}
		ready := false
		for k := range w.nodes[from].work {
			// With separate room for OpPush, only requests of the same room count.
			if same := w.nodes[from].work[k].wr.Op == rdma.OpPush == (op == rdma.OpPush); same || w.pushDepth {
				ready = ready || w.ready(from, k)
			}
		}
		if !ready {
			return from, to, op, true
		}
	}
	return 0, 0, 0, false
}

// take makes the device accept the first request that waits from one rank to another.
func (w *world) take(from, to int) {
	wi, n := w.wire(from, to), w.nodes[from]
	wr := wi.wait[0]
	wi.wait = append(wi.wait[:0], wi.wait[1:]...)
	if wr.Peer != rdma.PeerID(to) {
		w.fail("a request from %d to %d names peer %d", from, to, wr.Peer)
	}
	if wr.Op != rdma.OpSend {
		if wr.Op > rdma.OpPush || !w.attr.Ops.Has(wr.Op) || wr.Flags&^rdma.Synchronous != 0 || wr.Flags != 0 && wr.Op != rdma.OpWrite || wr.HeadLen != 0 {
			w.fail("a bad request from %d to %d: %v, flags %d, head %d", from, to, wr.Op, wr.Flags, wr.HeadLen)
		}
		if most := w.attr.MaxTransfer; most > 0 && wr.Op <= rdma.OpRead && wr.Body.Len() > most {
			w.fail("a %v of %d bytes from %d to %d, where one request moves at most %d", wr.Op, wr.Body.Len(), from, to, most)
		}
		copied := wr.Op == rdma.OpPush && n.mem.pulled(wr.RKey)
		n.work = append(n.work, work{wr: wr, to: to, copied: copied})
		if w.log != nil {
			w.log("%d->%d %s", from, to, w.describe(&wr))
		}
		return
	}
	if wr.Flags != rdma.Inline || wr.HeadLen > rdma.HeadMax || wr.Remote != 0 || wr.RKey != 0 || wr.LKey != 0 ||
		wr.Body.Len() > w.attr.MaxInline || wr.Body.Len()+int(wr.HeadLen) > w.attr.MaxSend {
		w.fail("a bad packet from %d to %d: %+v", from, to, wr)
	}
	wi.inFlight = append(wi.inFlight, w.pack(&wr))
	if w.log != nil {
		w.log("%d->%d %s", from, to, w.describe(&wr))
	}
	if wr.ID != 0 {
		n.m.HandleTaken(wr.ID)
	}
}

// describe formats a request.
func (w *world) describe(wr *rdma.SendWR) string {
	if wr.Op == rdma.OpSend {
		return FormatPacket(w.pack(wr))
	}
	return fmt.Sprintf("%s of %d bytes", wr.Op, wr.Body.Len())
}

// pack joins head and body to a packet.
func (w *world) pack(wr *rdma.SendWR) []byte {
	size := int(wr.HeadLen) + wr.Body.Len()
	if cap(w.heap)-len(w.heap) < size {
		w.heap = make([]byte, 0, max(size, 4096))
	}
	at := len(w.heap)
	w.heap = append(append(w.heap, wr.Head[:wr.HeadLen]...), wr.Body.Bytes()...)
	return w.heap[at:len(w.heap):len(w.heap)]
}

// deliver delivers packet i in flight between two ranks.
func (w *world) deliver(from, to, i int) {
	wi := w.wire(from, to)
	pkt := wi.inFlight[i]
	wi.inFlight = append(wi.inFlight[:i], wi.inFlight[i+1:]...)
	n := w.nodes[to]
	if w.log != nil {
		w.log("%d gets: %s", to, FormatPacket(pkt))
	}
	n.m.HandlePacket(n.links[from], pkt)
	w.settle(to)
}

// ready reports whether work i of a rank may complete: a push only when its pull has been
// posted or has copied everything.
func (w *world) ready(r, i int) bool {
	wk := &w.nodes[r].work[i]
	return wk.wr.Op != rdma.OpPush || wk.copied || w.partner(r, i) != nil
}

// partner finds the other half of a cooperative copy.
func (w *world) partner(r, i int) *work {
	wk := &w.nodes[r].work[i]
	other := rdma.OpPull + rdma.OpPush - wk.wr.Op
	peer := w.nodes[wk.to]
	for j := range peer.work {
		if o := &peer.work[j]; o.wr.Op == other && o.to == r && o.wr.RKey == wk.wr.RKey && !o.copied {
			return o
		}
	}
	return nil
}

// complete executes work i of a rank and reports its completion.
func (w *world) complete(r, i int) rdma.Status {
	n := w.nodes[r]
	status := w.perform(r, i)
	wr := n.work[i].wr
	if w.log != nil {
		w.log("%d completes: %s", r, w.describe(&wr))
	}
	n.work = append(n.work[:i], n.work[i+1:]...)
	n.m.HandleCompletion(wr.ID, status, wr.Body.Len())
	w.settle(r)
	return status
}

// failWork completes work i with an error, without transferring data.
func (w *world) failWork(r, i int, status rdma.Status) {
	n := w.nodes[r]
	id := n.work[i].wr.ID
	n.work = append(n.work[:i], n.work[i+1:]...)
	n.m.HandleCompletion(id, status, 0)
	w.settle(r)
}

func (w *world) perform(r, i int) rdma.Status {
	n := w.nodes[r]
	wk := &n.work[i]
	body := wk.wr.Body.Bytes()
	if w.attr.LocalKeys && wk.wr.Op != rdma.OpPush && len(body) > 0 && !n.mem.holds(body, wk.wr.LKey) {
		w.fail("rank %d posts %v of memory that is not registered under local key %d", r, wk.wr.Op, wk.wr.LKey)
	}
	peer := w.nodes[wk.to].mem
	switch wk.wr.Op {
	case rdma.OpRead:
		mem := peer.reach(wk.wr.RKey, wk.wr.Remote, len(body), rdma.RemoteRead)
		if mem == nil {
			return rdma.StatusRemoteAccess
		}
		copy(body, mem)
	case rdma.OpWrite:
		mem := peer.reach(wk.wr.RKey, wk.wr.Remote, len(body), rdma.RemoteWrite)
		if mem == nil {
			return rdma.StatusRemoteAccess
		}
		copy(mem, body)
	case rdma.OpPull, rdma.OpPush:
		if wk.copied {
			return rdma.StatusOK
		}
		pull, owner := wk, peer
		other := w.partner(r, i)
		if wk.wr.Op == rdma.OpPush {
			pull, owner = other, n.mem
		}
		body = pull.wr.Body.Bytes()
		mem := owner.reach(pull.wr.RKey, pull.wr.Remote, len(body), rdma.Cooperative)
		if mem == nil {
			return rdma.StatusRemoteAccess
		}
		copy(body, mem)
		if other != nil {
			other.copied = true
		} else {
			owner.finish(pull.wr.RKey) // its push is not posted yet
		}
	}
	return rdma.StatusOK
}

// fail records a violation.
func (w *world) fail(format string, args ...any) {
	if w.fault == "" {
		w.fault = fmt.Sprintf(format, args...)
	}
}

// drain executes all possible events, in some order.
func (w *world) drain() {
	for changed := true; changed; {
		changed = false
		for from := range w.nodes {
			for to := range w.nodes {
				for w.takes(from, to) {
					w.take(from, to)
					w.settle(from)
					changed = true
				}
				for len(w.wire(from, to).inFlight) > 0 {
					w.deliver(from, to, 0)
					changed = true
				}
			}
			for i := 0; i < len(w.nodes[from].work); i++ {
				if w.ready(from, i) {
					w.complete(from, i)
					changed = true
					break
				}
			}
		}
	}
}

// memory is the memory of a rank: an arena for buffers with guard bytes around them, and the
// registrations. Addresses and keys depend only on the offset in the arena, so that they are
// the same in every run.
type memory struct {
	rank         int
	arena, fresh []byte // fresh: the initial content
	used         int
	regs         []region
	registered   int
	deregistered int
	refuse       bool // fail Register
	limit        int  // most regions at a time; 0: any number
}

type region struct {
	off, n int
	acc    rdma.Access
	pulled bool // a cooperative copy has copied everything
}

const (
	guardLen  = 8
	guardByte = 0xEE
)

var errNoMemory = errors.New("no memory can be registered")

func newMemory(rank, size int) *memory {
	mem := &memory{rank: rank, arena: make([]byte, size)}
	mem.reset()
	return mem
}

func (mem *memory) reset() {
	if mem.fresh == nil {
		mem.fresh = bytes.Repeat([]byte{guardByte}, len(mem.arena))
	}
	copy(mem.arena, mem.fresh)
	mem.used, mem.regs, mem.registered, mem.deregistered = guardLen, mem.regs[:0], 0, 0
}

// buffer allocates a buffer in the arena.
func (mem *memory) buffer(n int) []byte {
	b := mem.arena[mem.used : mem.used+n]
	clear(b)
	mem.used += n + guardLen
	return b
}

func (mem *memory) offset(b []byte) int {
	return int(rdma.MemOf(b).Addr() - rdma.MemOf(mem.arena).Addr())
}

func (mem *memory) base() uint64 { return uint64(mem.rank+1) << 20 }

func (mem *memory) Register(_ *Link, b []byte, acc rdma.Access) (rdma.MR, error) {
	if mem.refuse {
		return rdma.MR{}, errNoMemory
	}
	if mem.limit > 0 && len(mem.regs) >= mem.limit {
		return rdma.MR{}, rdma.ErrNoResources
	}
	off := mem.offset(b)
	mem.regs = append(mem.regs, region{off: off, n: len(b), acc: acc})
	mem.registered++
	return rdma.MR{Base: mem.base() + uint64(off), Len: uint64(len(b)), RKey: uint64(off + 1), LKey: uint32(off + 1)}, nil
}

func (mem *memory) Deregister(_ *Link, mr rdma.MR) {
	for i, r := range mem.regs {
		if uint64(r.off+1) == mr.RKey {
			mem.regs = append(mem.regs[:i], mem.regs[i+1:]...)
			mem.deregistered++
			return
		}
	}
	panic(fmt.Sprintf("rank %d gives back a registration it does not have", mem.rank))
}

// reach returns remote memory as a device does, or nil if the access is refused.
func (mem *memory) reach(key, addr uint64, n int, acc rdma.Access) []byte {
	for _, r := range mem.regs {
		off := int(int64(addr) - int64(mem.base()))
		if uint64(r.off+1) == key && r.acc&acc != 0 && off >= r.off && off+n <= r.off+r.n {
			return mem.arena[off : off+n : off+n]
		}
	}
	return nil
}

// finish records, and pulled reports, that the peer alone has copied a region.
func (mem *memory) finish(key uint64) {
	for i := range mem.regs {
		if uint64(mem.regs[i].off+1) == key {
			mem.regs[i].pulled = true
		}
	}
}

func (mem *memory) registeredAs(key uint64) bool {
	for _, r := range mem.regs {
		if uint64(r.off+1) == key {
			return true
		}
	}
	return false
}

func (mem *memory) pulled(key uint64) bool {
	for _, r := range mem.regs {
		if uint64(r.off+1) == key {
			return r.pulled
		}
	}
	return false
}

func (mem *memory) holds(b []byte, lkey uint32) bool {
	off := mem.offset(b)
	for _, r := range mem.regs {
		if uint32(r.off+1) == lkey && off >= r.off && off+len(b) <= r.off+r.n {
			return true
		}
	}
	return false
}

// spoilt returns a guard byte that was overwritten.
func (mem *memory) spoilt(buffers []region) int {
	at := 0
	for _, b := range buffers {
		for ; at < b.off; at++ {
			if mem.arena[at] != guardByte {
				return at
			}
		}
		at = b.off + b.n
	}
	for ; at < len(mem.arena); at++ {
		if mem.arena[at] != guardByte {
			return at
		}
	}
	return -1
}
