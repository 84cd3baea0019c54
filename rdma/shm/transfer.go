package shm

import (
	"bytes"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Transfers are the requests that copy memory: OpRead and OpWrite, and the two halves of a
// cooperative copy (cooperative.go). A short one is completed when it is posted. Of the
// longer ones each poll copies one piece of one, round robin, so that neither PostSend nor
// Poll holds up the caller for long, except for a Write with rdma.Synchronous.

const (
	// postedCopy is the longest copy that is completed within PostSend: about the time of
	// a few system calls.
	postedCopy = 64 << 10
	// synchronousCopy is the same for a Write with rdma.Synchronous.
	synchronousCopy = 4 << 20
	// looks bounds how many transfers a poll checks.
	looks = 8
)

// transfer is an outstanding request.
type transfer struct {
	id     uint64
	body   rdma.Mem
	remote uint64
	key    uint64
	peer   *peer
	op     rdma.Op
	inline bool // a Write whose success generates no completion
	phase  phase
	status rdma.Status
	done   uint64 // bytes copied; by messages: bytes acknowledged
	sent   uint64 // by messages: bytes requested or sent
	number uint32 // in transferTable.all
	ticket uint32 // differs each time the transfer is used

	// Cooperative copies.
	slot   *slot
	epoch  uint64
	length uint64
	own    rdma.MR // of the destination, in heap mode
	left   leftToOwner
}

// phase is the next step of a transfer.
type phase uint8

const (
	phaseFree     phase = iota
	phaseCopy           // copy pieces ourselves
	phaseMessages       // by messages to the peer, see fallback.go
	phaseOpening        // OpPull: wait until the region has no other copy
	phaseShared         // OpPull, OpPush: claim pieces
	phaseOffered        // OpPush, opAssist: wait for the other side
)

// transferTable holds the transfers of a device.
type transferTable struct {
	active    []*transfer // every poll may advance one of these
	offered   []*transfer // OpPush without a puller, opAssist without a writer: checked when pullCount changes
	opened    []*transfer // OpPull that the current post has opened
	next      int         // index in active
	pullsSeen uint64      // pullCount when offered was last checked

	all       []*transfer
	free      []*transfer
	responses []service // pending responses to peers, see fallback.go
	kernel    bool      // process_vm is available
	beside    bool      // the caller of Poll is not the rank itself, see beside.go
}

func (t *transferTable) busy() bool {
	return len(t.active) != 0 || len(t.offered) != 0 || len(t.responses) != 0
}

// start begins a request for which a completion is reserved.
func (t *transferTable) start(d *Device, p *peer, wr *rdma.SendWR) error {
	x := t.take()
	x.id, x.body, x.remote, x.key, x.peer, x.op = wr.ID, wr.Body, wr.Remote, wr.RKey, p, wr.Op
	x.inline = wr.Flags&rdma.Inline != 0 && wr.Op == rdma.OpWrite
	switch wr.Op {
	case rdma.OpPull:
		t.startPull(d, x)
	case rdma.OpPush:
		t.startPush(d, x)
	default:
		limit := uint64(postedCopy)
		if wr.Flags&rdma.Synchronous != 0 {
			limit = synchronousCopy
		}
		t.startCopy(d, x, limit)
	}
	return nil
}

func (t *transferTable) take() *transfer {
	n := len(t.free)
	if n == 0 {
		x := &transfer{number: uint32(len(t.all))}
		t.all = append(t.all, x)
		return x
	}
	x := t.free[n-1]
	t.free = t.free[:n-1]
	return x
}

// finish completes a transfer that is in no list.
func (t *transferTable) finish(d *Device, x *transfer, s rdma.Status) {
	if x.op == opAssist {
		t.offerAgain(x)
		return
	}
	c := rdma.Completion{ID: x.id, Op: x.op, Peer: x.peer.id, Status: s}
	if s == rdma.StatusOK {
		c.Len = x.done
	}
	if x.inline && s == rdma.StatusOK {
		d.done.release(x.op)
	} else {
		d.done.add(c)
	}
	*x = transfer{number: x.number, ticket: x.ticket + 1}
	t.free = append(t.free, x)
}

func (x *transfer) need() rdma.Access {
	switch x.op {
	case rdma.OpWrite:
		return rdma.RemoteWrite
	case rdma.OpRead:
		return rdma.RemoteRead
	}
	return rdma.Cooperative
}

// startCopy begins a Read or Write, and completes it at once if it is no longer than
// limit.
func (t *transferTable) startCopy(d *Device, x *transfer, limit uint64) {
	n := uint64(x.body.Len())
	slot := x.peer.seg.access(x.key, x.remote, n, x.need())
	if slot == nil {
		t.finish(d, x, rdma.StatusRemoteAccess)
		return
	}
	x.phase = phaseCopy
	if x.peer.reach == reachMessages {
		x.phase = phaseMessages
	} else if n >= assistFrom && x.op == rdma.OpWrite && !x.inline && rdma.Access(slot.rights.Load())&rdma.Assisted != 0 {
		if x.slot = slot; t.startAssisted(d, x, limit) {
			return
		}
	}
	for n <= limit {
		if over, s := t.step(d, x); over {
			t.finish(d, x, s)
			return
		}
		if x.phase != phaseCopy {
			break // requires messages to the peer
		}
	}
	if x.inline {
		x.body = rdma.MemOf(bytes.Clone(x.body.Bytes())) // the caller may change its own
	}
	t.active = append(t.active, x)
}

// progress copies one piece, and checks a few other transfers.
func (t *transferTable) progress(d *Device) {
	if len(t.responses) != 0 {
		t.sendResponses(d)
	}
	if len(t.offered) != 0 {
		t.checkOffers(d)
	}
	for i := min(looks, len(t.active)); i > 0; i-- {
		if t.next >= len(t.active) {
			t.next = 0
		}
		x := t.active[t.next]
		before := x.done + x.sent
		over, s := t.step(d, x)
		moved := x.done+x.sent != before
		if moved {
			d.traffic.moved++
		}
		if over {
			t.active = slices.Delete(t.active, t.next, t.next+1)
			t.finish(d, x, s)
		} else {
			t.next++
		}
		if moved {
			return
		}
	}
}

// step copies at most one piece of a transfer, and returns whether it is finished and its
// status.
func (t *transferTable) step(d *Device, x *transfer) (bool, rdma.Status) {
	switch x.phase {
	case phaseCopy:
		n := uint64(x.body.Len())
		moved, s := d.move(x.peer, x.op == rdma.OpWrite, x.body.Bytes()[x.done:], x.remote+x.done, x.key, x.need())
		if s == statusRefused {
			x.phase, x.sent = phaseMessages, x.done
			return false, rdma.StatusOK
		}
		x.done += uint64(moved)
		return s != rdma.StatusOK || x.done == n, s
	case phaseMessages:
		return t.stepMessages(d, x)
	case phaseOpening:
		return t.stepOpening(d, x)
	}
	return t.stepShared(d, x)
}

// statusRefused is internal: the kernel does not permit access to the peer, so messages
// are required.
const statusRefused rdma.Status = 255

// move copies one piece between local memory and a peer's.
func (d *Device) move(p *peer, write bool, local []byte, remote, key uint64, need rdma.Access) (int, rdma.Status) {
	if len(local) == 0 {
		return 0, rdma.StatusOK
	}
	if len(local) > maxSyscallCopy {
		local = local[:maxSyscallCopy]
	}
	if p.reach == reachMessages {
		return 0, statusRefused
	}
	if p.reach == reachHeap {
		there, ok := p.seg.memory(key, remote, uint64(len(local)), need)
		switch {
		case !ok:
			return 0, rdma.StatusRemoteAccess
		case write:
			return copy(there, local), rdma.StatusOK
		default:
			return copy(local, there), rdma.StatusOK
		}
	}
	if key != 0 && p.seg.access(key, remote, uint64(len(local)), need) == nil {
		return 0, rdma.StatusRemoteAccess
	}
	return d.moveByKernel(p, write, local, remote)
}

// ready reports whether progress would find something to do.
func (t *transferTable) ready(d *Device) bool {
	if t.canRespond(d) || len(t.offered) != 0 && d.seg.head.pullCount.Load() != t.pullsSeen {
		return true
	}
	for _, x := range t.active {
		if x.ready(d) {
			return true
		}
	}
	return false
}

// ready reports whether step would do something.
func (x *transfer) ready(d *Device) bool {
	switch x.phase {
	case phaseMessages:
		return x.answered() || x.canSend(d)
	case phaseShared:
		return x.canMove(d)
	}
	return true
}

// peerGone ends all transfers with a peer.
func (t *transferTable) peerGone(d *Device, p *peer, status rdma.Status) {
	t.end(d, p, status)
	t.responses = slices.DeleteFunc(t.responses, func(s service) bool { return s.peer == p })
}

// flush ends everything.
func (t *transferTable) flush(d *Device) {
	t.end(d, nil, rdma.StatusFlushed)
	t.responses = nil
}

func (t *transferTable) end(d *Device, p *peer, s rdma.Status) {
	for _, list := range []*[]*transfer{&t.active, &t.offered} {
		*list = slices.DeleteFunc(*list, func(x *transfer) bool {
			if p != nil && x.peer != p {
				return false
			}
			d.detach(x)
			if x.op == opAssist {
				t.forget(x)
			} else {
				t.finish(d, x, s)
			}
			return true
		})
	}
}
