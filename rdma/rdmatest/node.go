package rdmatest

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// A node is one device with the suite's record of its work: send, access and the like
// prepare work, offer posts it, and poll compares completions with the posted work. The
// first completion that breaks a rule is stored in wrong; rig.step and rig.parallel then
// fail the check.

type node struct {
	rig   *rig
	index int
	dev   rdma.Device
	attr  *rdma.Attr
	ports []*port
	peers []rdma.PeerID       // handle of each node
	names map[rdma.PeerID]int // and back

	works    map[uint64]*work // by ID, everything ever posted
	lastID   uint64
	open     int           // accepted by the device, completion pending
	posts    []rdma.SendWR // reused
	arrived  []arrival     // messages, copied, in order of arrival
	lowWater int           // OpLowWater completions
	ended    []rdma.Status // OpDisconnected completions
	records  []placed      // OpRecord completions
	// sink, if set, receives each message in place instead of arrived.
	sink  func(from int, c *rdma.Completion) error
	batch int // capacity passed to Poll; 0: 32
	wrong error

	arena    []byte // if Attr.LocalKeys: registered memory, not yet used
	arenaKey uint32
}

// work is one work request and its outcome.
type work struct {
	id           uint64
	op           rdma.Op
	to           int
	head, body   []byte
	remote, rkey uint64
	lkey         uint32
	inline       bool
	solicited    bool
	keep         bool // do not overwrite Body when it belongs to the node again

	posted bool
	done   bool
	status rdma.Status
	length uint64
	// refused is the Status of a later OpRefused for this request.
	refused rdma.Status
	text    []byte // OpSend: head and body as they were when posted
}

// arrival is a received message.
type arrival struct {
	from   int
	id     uint64
	data   []byte
	at     uint64 // address of Data
	status rdma.Status
}

// spoilt is written over memory that belongs to the caller again, to detect a device that
// still reads it.
const spoilt = 0xDD

// countArrivals makes the node count messages instead of keeping them.
func (n *node) countArrivals() *int {
	count := new(int)
	n.sink = func(int, *rdma.Completion) error { *count++; return nil }
	return count
}

func (n *node) portTo(to int) *port {
	if n.rig.kind == rdma.RC {
		return n.ports[to]
	}
	return n.ports[0]
}

// resolve resolves the address of another node.
func (n *node) resolve(j int) {
	n.rig.t.Helper()
	addr := n.rig.nodes[j].ports[0].qp.Addr()
	id, err := n.dev.Resolve(addr)
	if err != nil {
		n.rig.t.Fatalf("node %d resolves the address %q of node %d: %v", n.index, addr, j, err)
	}
	n.peers[j] = id
	n.names[id] = j
}

// memory returns size bytes that the device may access, with their local key.
func (n *node) memory(size int) (mem []byte, lkey uint32) {
	n.rig.t.Helper()
	// The odd address finds devices that rely on alignment.
	if !n.attr.LocalKeys {
		return make([]byte, size+1)[1:], 0
	}
	if len(n.arena) < size+1 {
		n.arena = make([]byte, max(size+1, 1<<20))
		n.arenaKey = n.register(n.arena, 0).LKey
	}
	mem, n.arena = n.arena[1:size+1:size+1], n.arena[size+1:]
	return mem, n.arenaKey
}

func (n *node) register(mem []byte, acc rdma.Access) rdma.MR {
	n.rig.t.Helper()
	mr, err := n.dev.Register(mem, acc)
	if err != nil {
		n.rig.t.Fatalf("node %d registers %d bytes: %v", n.index, len(mem), err)
	}
	return mr
}

func (n *node) deregister(mr rdma.MR) {
	n.rig.t.Helper()
	if err := n.dev.Deregister(mr); err != nil {
		n.rig.t.Fatalf("node %d deregisters key %#x: %v", n.index, mr.RKey, err)
	}
}

func (n *node) work(op rdma.Op, to int) *work {
	n.lastID++
	return &work{id: n.lastID, op: op, to: to}
}

// send prepares a message of head and body bytes with unique contents. The body is cut to
// what the device can send: most checks do not depend on it.
func (n *node) send(to, head, body int) *work {
	n.rig.t.Helper()
	return n.sendExactly(to, head, min(body, n.attr.MaxSend-head))
}

func (n *node) sendExactly(to, head, body int) *work {
	n.rig.t.Helper()
	w := n.work(rdma.OpSend, to)
	w.head = make([]byte, head)
	w.body, w.lkey = n.memory(body)
	fill(w.head, w.id)
	fill(w.body, ^w.id)
	return w
}

// sendInline is send with Inline.
func (n *node) sendInline(to, head, body int) *work {
	n.rig.t.Helper()
	w := n.send(to, head, min(body, n.attr.MaxInline))
	w.inline = true
	return w
}

// access prepares a Read, Write or Pull between a peer's memory and mem.
func (n *node) access(op rdma.Op, to int, mem []byte, lkey uint32, remote, rkey uint64) *work {
	w := n.work(op, to)
	w.body, w.lkey, w.remote, w.rkey, w.keep = mem, lkey, remote, rkey, true
	return w
}

// offer posts work, all of it to the same port, and checks the result of PostSend. It then
// overwrites the requests and the bodies that were sent inline.
func (n *node) offer(ws []*work) (int, error) {
	n.posts = n.posts[:0]
	for _, w := range ws {
		wr := rdma.SendWR{ID: w.id, Op: w.op, Body: rdma.MemOf(w.body), Remote: w.remote, RKey: w.rkey,
			LKey: w.lkey, Peer: n.peers[w.to], HeadLen: uint16(len(w.head))}
		copy(wr.Head[:], w.head)
		if w.inline {
			wr.Flags |= rdma.Inline
			if w.op == rdma.OpSend && w.id%4 > 0 && !w.solicited {
				wr.Flags |= rdma.More
			}
		}
		if w.solicited {
			wr.Flags |= rdma.Solicited
		}
		if w.op == rdma.OpSend && w.text == nil {
			w.text = append(append(make([]byte, 0, len(w.head)+len(w.body)), w.head...), w.body...)
		}
		n.posts = append(n.posts, wr)
		n.works[w.id] = w
	}
	k, err := n.portTo(ws[0].to).qp.PostSend(n.posts)
	switch {
	case k < 0 || k > len(ws):
		return 0, fmt.Errorf("PostSend of %d requests reports that it accepted %d", len(ws), k)
	case k == len(ws) && err != nil:
		return k, fmt.Errorf("PostSend accepted all %d requests but returned %w", len(ws), err)
	case k < len(ws) && err == nil:
		return k, fmt.Errorf("PostSend accepted %d of %d requests and returned no error", k, len(ws))
	}
	for i, w := range ws {
		n.posts[i] = rdma.SendWR{ID: ^w.id, Op: rdma.OpRecv, Body: rdma.Mem{}}
		spoil(n.posts[i].Head[:])
		if i < k {
			w.posted = true
			if !w.inline {
				n.open++
			}
			if w.inline && !w.keep {
				spoil(w.body)
			}
		}
	}
	return k, err
}

// poll polls every queue of the node once.
func (n *node) poll() {
	var out [64]rdma.Completion
	batch := n.batch
	if batch == 0 {
		batch = 32
	}
	for _, p := range n.ports {
		if p == nil {
			continue
		}
		n.pollQueue(p, p.recvCQ, out[:batch])
		if p.sendCQ != p.recvCQ {
			n.pollQueue(p, p.sendCQ, out[:batch])
		}
	}
}

// pollQueue polls one queue and returns the number of completions.
func (n *node) pollQueue(p *port, cq rdma.CQ, out []rdma.Completion) int {
	k := cq.Poll(out)
	if k < 0 || k > len(out) {
		n.fault("Poll with room for %d completions returned %d", len(out), k)
		return 0
	}
	for i := range out[:k] {
		if err := n.take(p, &out[i]); err != nil {
			n.fault("node %d: completion %+v: %w", n.index, out[i], err)
		}
	}
	return k
}

func (n *node) fault(format string, args ...any) {
	if n.wrong == nil {
		n.wrong = fmt.Errorf(format, args...)
	}
}

// take checks one completion and records it.
func (n *node) take(p *port, c *rdma.Completion) error {
	if c.Op == rdma.OpLowWater {
		n.lowWater++
		return nil
	}
	switch c.Op {
	case rdma.OpDisconnected:
		return n.takeEnd(p, c)
	case rdma.OpRecv:
		return n.takeMessage(p, c)
	case rdma.OpRecord:
		return n.takeRecord(c)
	case rdma.OpRefused:
		return n.takeRefusal(c)
	}
	w := n.works[c.ID]
	switch {
	case w == nil:
		return errors.New("no request was posted with this ID")
	case !w.posted:
		return errors.New("PostSend did not accept the request that this completes")
	case w.done:
		return errors.New("the request was completed before")
	case w.inline && c.Status == rdma.StatusOK:
		return errors.New("a successful inline send generates no completion")
	case c.Op != w.op:
		return fmt.Errorf("the request was a %v", w.op)
	case n.rig.kind != rdma.RC && c.Peer != n.peers[w.to]:
		return fmt.Errorf("the request was for node %d, whose handle is %d", w.to, n.peers[w.to])
	}
	w.done, w.status, w.length = true, c.Status, c.Len
	if !w.inline {
		n.open--
	}
	if w.op == rdma.OpSend && !w.keep {
		spoil(w.body)
	}
	return nil
}

// takeEnd checks an OpDisconnected completion.
func (n *node) takeEnd(p *port, c *rdma.Completion) error {
	switch _, known := n.names[c.Peer]; {
	case c.Status == rdma.StatusOK:
		return errors.New("a connection does not end with success")
	case n.rig.kind != rdma.RC && !known:
		return errors.New("Resolve never returned the handle of its peer")
	}
	n.ended = append(n.ended, c.Status)
	return nil
}

func (n *node) takeMessage(p *port, c *rdma.Completion) error {
	from, known := p.peer, true
	if n.rig.kind != rdma.RC {
		from, known = n.names[c.Peer]
	}
	lends := !n.rig.cfg.posted && !n.rig.cfg.ownQueue
	switch {
	case !known && !n.rig.cfg.unresolved:
		return errors.New("Resolve never returned the handle of its sender")
	case c.Status == rdma.StatusOK && c.Len != uint64(c.Data.Len()):
		return fmt.Errorf("its Data has %d bytes, unlike its Len", c.Data.Len())
	case lends && c.ID != 0:
		return errors.New("the completion of a lent message must have ID 0")
	}
	if n.sink != nil {
		return n.sink(from, c)
	}
	n.arrived = append(n.arrived, arrival{from, c.ID, append([]byte{}, c.Data.Bytes()...), c.Data.Addr(), c.Status})
	return nil
}

func (n *node) state() string {
	return fmt.Sprintf("%d messages have arrived, %d of %d requests are not complete", len(n.arrived), n.open, len(n.works))
}
