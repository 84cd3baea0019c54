package rail

import "github.com/muster-mpi/muster/rdma"

// An operation is a request of the user, or a response to a peer. It exists until its
// completion is queued and none of its pieces is in flight.

type operation struct {
	following *operation // in the queue of its flow, or in the free list
	body      rdma.Mem
	buffer    []byte // of the device, if it holds body
	id        uint64
	key       uint64 // of the region at the peer; of a result: here
	address   uint64
	cut       int // bytes of body cut into pieces
	left      int // of a Read: bytes not received
	refs      int // the queue, the request table, and each piece in flight
	request   uint32
	kind      kind
	what      rdma.Op
	status    rdma.Status // of an answer; of an ended operation: its result
	ours      bool        // a request of the user, which gets a completion
	reported  bool        // the completion is queued, or none is needed
	ended     bool        // the peer has responded; the completion waits for pieces in flight
	inline    bool
	solicited bool
	headLen   uint8
	head      [headRoom]byte
}

// newOperation returns a free operation with one reference, that of the queue.
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

// release drops one reference to an operation.
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

// complete queues the completion of an operation. A successful inline one makes none.
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
	q.sendCQ.Push(c)
}

// header returns the header of a piece and the body that it carries. It looks up the
// source of a result for every piece, also when the piece is sent again: after
// Deregister a refusal is sent instead (RFC 5042 section 6.3.3).
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
		mem, ok := q.dev.reachMemory(op.key, op.address, uint64(op.left), uint64(p.offset), p.length, rdma.RemoteRead)
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

// keepResults lets the rails copy what is being read from a region that is
// deregistered: they may have to retransmit it, and its memory may be gone by then.
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

// size returns the number of bytes to cut into pieces.
func (op *operation) size() int {
	switch op.kind {
	case kindMessage, kindData:
		return op.body.Len()
	case kindResult:
		return op.left
	}
	return 0
}

// maxRequests is how many Writes and Reads may be in flight to a peer.
const maxRequests = 64

// requests holds those to which the peer has not responded.
type requests struct {
	list [maxRequests]*operation
	n    int
}

// findRequest returns the operation of a request number, nil if it has ended.
func (f *flow) findRequest(number uint32) *operation {
	if f.requests == nil {
		return nil
	}
	if op := f.requests.list[number%maxRequests]; op != nil && op.request == number {
		return op
	}
	return nil
}

// hasRequestSlot reports whether another request may be sent.
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

// completeRequest ends a request. The completion of a Write waits until none of its
// pieces is in flight: a rail that has not received the ack of a piece may retransmit
// it, from memory that belongs to the user again or no longer exists. The acks arrive
// with the answer, or soon after it over the other rails.
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

// unref drops one reference to an operation. With the last one the completion is
// queued.
func (f *flow) unref(op *operation) {
	if op.ended && op.refs == 1 {
		f.q.complete(f, op, op.status)
	}
	f.q.release(op)
}
