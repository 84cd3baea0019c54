package rail

import "github.com/muster-mpi/muster/rdma"

// An operation is a request of the user, or an answer that is owed to a peer. It lives
// until the user was told of its end and none of its pieces is under way.

type operation struct {
	following *operation // in the queue of its flow, or among the free ones
	body      rdma.Mem
	buffer    []byte // of the device, if body lies in it
	id        uint64
	key       uint64 // of the region at the peer; of a result: here
	address   uint64
	cut       int // bytes of body that were made pieces of
	left      int // of a Read: bytes that have not come
	refs      int // the queue, the table of asks, and each piece under way
	request   uint32
	kind      kind
	what      rdma.Op
	status    rdma.Status // of an answer; of one that has ended: how
	ours      bool        // the user's, so he is told
	reported  bool        // nobody need be told any more
	ended     bool        // the peer has answered; the user is told when no piece is under way
	inline    bool
	solicited bool
	headLen   uint8
	head      [headRoom]byte
}

// newOperation takes one that is free. It is held by the queue.
func (d *Device) newOperation(k kind) *operation {
	op := d.spare
	if op == nil {
		op = new(operation)
	} else {
		d.spare = op.following
	}
	op.following, op.kind, op.refs, op.reported = nil, k, 1, true
	return op
}

// release gives up one hold on an operation.
func (q *pair) release(op *operation) {
	if op.refs--; op.refs > 0 {
		return
	}
	if op.ours {
		q.pending--
	} else {
		q.pendingReplies--
	}
	d := q.dev
	d.giveBack(op.buffer)
	*op = operation{following: d.spare}
	d.spare = op
}

// complete tells the user of the end of an operation. A success of an inline one is
// silent.
func (q *pair) complete(f *flow, op *operation, status rdma.Status) {
	if op.reported {
		return
	}
	op.reported = true
	if op.inline && status == rdma.StatusOK {
		return
	}
	c := rdma.Completion{ID: op.id, Op: op.what, Peer: f.peer, Status: status}
	if status == rdma.StatusOK {
		c.Len = uint64(op.body.Len())
		if op.kind == kindMessage {
			c.Len += uint64(op.headLen)
		}
	}
	q.sendCQ.push(delivery{completion: c})
}

// header describes a piece of an operation to the peer, and body is what it carries.
// The source of a result is looked up for every piece, and again if it goes again: after
// Deregister a refusal goes in its place (RFC 5042 section 6.3.3).
func (q *pair) header(f *flow, number uint32, p *piece) (h header, body rdma.Mem) {
	op := p.op
	h = header{kind: op.kind, epoch: f.epoch, ack: f.in.takeAck(), number: number, request: op.request}
	switch op.kind {
	case kindMessage:
		body = op.body
		h.again = p.state == pieceWaiting || p.again
	case kindData:
		h.key, h.address, h.total, h.offset = op.key, op.address, uint64(op.body.Len()), uint64(p.offset)
		h.last = p.offset+p.length == op.body.Len()
		if p.length > 0 {
			body = op.body.Slice(p.offset, p.offset+p.length)
		}
	case kindRequest:
		h.key, h.address, h.total = op.key, op.address, uint64(op.body.Len())
	case kindResult:
		h.offset = uint64(p.offset)
		if p.length == 0 {
			break
		}
		mem, ok := q.dev.regions.reach(op.key, op.address, uint64(op.left), uint64(p.offset), p.length, rdma.RemoteRead)
		if !ok {
			h.kind, h.status = kindAnswer, rdma.StatusRemoteAccess
			break
		}
		body = rdma.MemOf(mem)
	case kindAnswer:
		h.status = op.status
	}
	return h, body
}

// keepResults lets the rails copy what is being read from a region that is given up: they
// may have to repeat it, and its memory may be gone by then.
func (d *Device) keepResults(key uint64) {
	for _, q := range d.pairs {
		for _, f := range q.busy {
			for n := f.out.first; n != f.out.next; n++ {
				if p := f.out.at(n); p.state == pieceSent && p.op.kind == kindResult && p.op.key == key {
					f.keep(int(p.rail))
				}
			}
		}
	}
}

// size is the number of bytes to make pieces of.
func (op *operation) size() int {
	switch op.kind {
	case kindMessage, kindData:
		return op.body.Len()
	case kindResult:
		return op.left
	}
	return 0
}

// maxRequests is how many Writes and Reads may be under way to a peer.
const maxRequests = 64

// asks are those whose end the peer has not told.
type requests struct {
	list [maxRequests]*operation
	n    int
}

// asked is the operation that an answer is for, nil if it has ended.
func (f *flow) findRequest(number uint32) *operation {
	if f.requests == nil {
		return nil
	}
	if op := f.requests.list[number%maxRequests]; op != nil && op.request == number {
		return op
	}
	return nil
}

// hasRequestSlot reports whether there is room for another ask.
func (f *flow) hasRequestSlot() bool {
	return f.requests == nil || f.requests.list[f.nextRequest%maxRequests] == nil
}

func (f *flow) addRequest(op *operation) {
	if f.requests == nil {
		f.requests = f.q.dev.takeRequests()
	}
	op.request = f.nextRequest
	f.nextRequest++
	op.refs++
	f.requests.list[op.request%maxRequests] = op
	f.requests.n++
}

// answered ends an ask. The user is told of a Write when none of its pieces is under way
// either: a rail that has not heard of the arrival of one may repeat it, from memory that
// is the user's again and may not even be there. The acks come with the answer, or
// soon after it over the other rails.
func (f *flow) completeRequest(op *operation, status rdma.Status) {
	op.ended, op.status = true, status
	if op.kind != kindData {
		f.q.complete(f, op, status)
	}
	f.requests.list[op.request%maxRequests] = nil
	if f.requests.n--; f.requests.n == 0 {
		f.q.dev.freeRequests = append(f.q.dev.freeRequests, f.requests)
		f.requests = nil
	}
	f.unref(op)
}

// unref gives up one hold on an operation. With the last one the user is told.
func (f *flow) unref(op *operation) {
	if op.ended && op.refs == 1 {
		f.q.complete(f, op, op.status)
	}
	f.q.release(op)
}
