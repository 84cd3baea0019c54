package shm

import (
	"encoding/binary"

	"github.com/muster-mpi/muster/rdma"
)

// Where the kernel does not let a rank access the memory of another (a container without
// ptrace permission, a seccomp filter), memory is copied in and out through the same
// queues, one piece per message, and the target serves the requests when it polls:
//
//	origin                         target
//	kindHello (once: its address)  resolves the origin, to be able to answer
//	kindWrite, a piece each        copies it, queues kindAnswer with the sum of their lengths
//	kindReadRequest                queues kindReadReply, a piece each
//
// As many pieces are in flight as the ring holds, so that one side copies in while the
// other copies out. A side that finds the ring full sleeps until there is room (ring.go);
// a side that finds it empty sleeps until the next piece. While pieces are being copied,
// neither side sleeps, see Device.moved.
//
// A target queues its responses in a list and sends them as room allows. It always removes
// a request from its queue: two ranks that each wait for room at the other before they
// receive anything would deadlock.
//
// An OpPull is an OpRead here. The puller claims all pieces of the region at once, so the
// owner's OpPush waits and completes as it otherwise would.
//
// Nothing that a peer writes is trusted: a request is checked against the registrations of
// this rank, an answer against the outstanding requests of this rank.

const (
	// messagePiece is the number of bytes per message.
	messagePiece = 32 << 10
	// pieceBudget is how much one poll sends: about as much as one system call copies
	// where the kernel copies.
	pieceBudget = 256 << 10
)

// request is the Head of these messages; an answer uses number, ticket, length and status.
type request struct {
	number, ticket uint32 // of the origin's transfer
	key, addr      uint64
	length         uint64 // of the read, or of the piece
	offset         uint64 // of the piece in the read
	need           rdma.Access
	status         rdma.Status
}

const requestBytes = 48

func (q *request) put(wr *rdma.SendWR) {
	b := wr.Head[:requestBytes]
	binary.LittleEndian.PutUint32(b[0:], q.number)
	binary.LittleEndian.PutUint32(b[4:], q.ticket)
	binary.LittleEndian.PutUint64(b[8:], q.key)
	binary.LittleEndian.PutUint64(b[16:], q.addr)
	binary.LittleEndian.PutUint64(b[24:], q.length)
	binary.LittleEndian.PutUint64(b[32:], q.offset)
	b[40], b[41] = byte(q.need), byte(q.status)
	wr.HeadLen = requestBytes
}

// parseRequest returns ok = false for a message that is too short.
func parseRequest(b []byte) (q request, body []byte, ok bool) {
	if len(b) < requestBytes {
		return q, nil, false
	}
	q.number, q.ticket = binary.LittleEndian.Uint32(b[0:]), binary.LittleEndian.Uint32(b[4:])
	q.key, q.addr = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	q.length, q.offset = binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])
	q.need, q.status = rdma.Access(b[40]), rdma.Status(b[41])
	return q, b[requestBytes:], true
}

// stepMessages sends the next pieces of a write or the request of a read, and reports
// whether everything has been answered.
func (t *transferTable) stepMessages(d *Device, x *transfer) (bool, rdma.Status) {
	length := uint64(x.body.Len())
	for limit := x.sent + pieceBudget; x.sent < limit && x.canSend(d) && d.introduce(x.peer); {
		q := request{number: x.number, ticket: x.ticket, key: x.key, addr: x.remote + x.sent, need: x.need(), offset: x.sent}
		var wr rdma.SendWR
		k := kindReadRequest
		q.length = length - x.sent
		if x.op == rdma.OpWrite {
			k = kindWrite
			q.length = min(q.length, messagePiece)
			wr.Body = x.body.Slice(int(x.sent), int(x.sent+q.length))
		}
		q.put(&wr)
		if !d.transmit(x.peer, k, &wr) {
			break
		}
		x.sent += q.length
	}
	if !x.answered() {
		return false, rdma.StatusOK
	}
	if x.slot != nil {
		return true, d.endPullByMessages(x)
	}
	return true, x.status
}

// canSend reports whether there is something to send and room for it.
func (x *transfer) canSend(d *Device) bool {
	length := uint64(x.body.Len())
	if x.status != rdma.StatusOK || x.sent >= length {
		return false
	}
	if x.op == rdma.OpWrite {
		return d.room(x.peer, requestBytes+int(min(length-x.sent, messagePiece)))
	}
	return d.room(x.peer, requestBytes)
}

// answered reports whether no more answers are expected. After a refusal the answers still
// in flight are awaited: they would write into memory that belongs to the user again.
func (x *transfer) answered() bool {
	if x.status != rdma.StatusOK {
		return x.op != rdma.OpWrite || x.done == x.sent
	}
	return x.done == uint64(x.body.Len())
}

// room reports whether a message of n bytes to a peer fits. A ring's consumer announces
// room, the shared queue has to be polled.
func (d *Device) room(p *peer, n int) bool {
	if p.ring != nil {
		return p.ring.room(n)
	}
	if p.seg.roomShared(n) {
		return true
	}
	d.starved.Store(true)
	return false
}

// endPullByMessages notifies the owner of the region that its bytes have arrived.
func (d *Device) endPullByMessages(x *transfer) rdma.Status {
	ps := &x.slot.pull
	if ps.state.Load() == x.epoch<<epochShift|pullAborted {
		ps.recycle(x.epoch)
		return d.endPull(x)
	}
	if x.status != rdma.StatusOK {
		x.abort(x.length)
	} else {
		x.account(x.length, x.peer)
	}
	return d.endPull(x)
}

// introduce sends our address to a peer that is to answer us.
func (d *Device) introduce(p *peer) bool {
	if !p.introduced {
		wr := rdma.SendWR{Body: rdma.MemOf([]byte(d.addr))}
		p.introduced = d.transmit(p, kindHello, &wr)
	}
	return p.introduced
}

// service is a request of a peer.
type service struct {
	peer    *peer
	request request
	read    bool   // send memory; otherwise only an answer
	sent    uint64 // bytes of it that were sent
}

// answer handles a message for the device itself. It returns false for an invalid one.
func (d *Device) answer(k kind, source int, data []byte) bool {
	if k == kindHello {
		a, err := parseAddress(rdma.Addr(data))
		if err != nil || a.index != source {
			return false
		}
		// If it fails, the peer waits for an answer until it finds that we are gone; there
		// is no way to report more.
		d.Resolve(rdma.Addr(data))
		return true
	}
	q, body, ok := parseRequest(data)
	if !ok {
		return false
	}
	switch k {
	case kindWrite, kindReadRequest:
		return d.serve(k, source, q, body)
	case kindReadReply, kindAnswer:
		if int(q.number) >= len(d.copies.all) {
			return false
		}
		x := d.copies.all[q.number]
		if x.ticket != q.ticket || x.phase != phaseMessages {
			return true // late: the transfer was ended from here
		}
		return x.peer.id == rdma.PeerID(source) && d.arrive(x, k, q, body)
	}
	return false
}

// serve accepts a peer's request.
func (d *Device) serve(k kind, source int, q request, body []byte) bool {
	write := k == kindWrite
	if write && q.length != uint64(len(body)) {
		return false
	}
	p := d.peer(rdma.PeerID(source))
	if p == nil {
		return true
	}
	d.traffic.moved++
	q.status = rdma.StatusOK
	s := service{peer: p, request: q, read: !write}
	if there, ok := d.seg.memory(q.key, q.addr, q.length, q.need); !ok {
		s.request.status, s.read = rdma.StatusRemoteAccess, false
	} else if write {
		copy(there, body)
	}
	responses := d.copies.responses
	if n := len(responses); write && n > 0 && responses[n-1].continues(&s) {
		responses[n-1].request.length += q.length // one answer for both
		if responses[n-1].request.status == rdma.StatusOK {
			responses[n-1].request.status = s.request.status
		}
		return true
	}
	d.copies.responses = append(responses, s)
	return true
}

// continues reports whether both are answers to pieces of one write.
func (s *service) continues(next *service) bool {
	return !s.read && !next.read && s.peer == next.peer && s.request.need == next.request.need &&
		s.request.number == next.request.number && s.request.ticket == next.request.ticket
}

// arrive handles a piece of a read, or the answer to pieces of a write. Pieces arrive in
// order, since the queues preserve it.
func (d *Device) arrive(x *transfer, k kind, q request, body []byte) bool {
	if q.status > rdma.StatusFault || q.length > x.sent-x.done {
		return false
	}
	read := x.op != rdma.OpWrite
	switch {
	case k == kindReadReply:
		if !read || q.status != rdma.StatusOK || q.offset != x.done || q.length != uint64(len(body)) {
			return false
		}
		copy(x.body.Bytes()[q.offset:], body)
	case read && q.status == rdma.StatusOK:
		return false // a piece without bytes
	}
	if q.status != rdma.StatusOK {
		x.status = q.status
	}
	x.done += q.length
	d.traffic.moved++
	return true
}

// sendResponses sends as many responses as there is room for.
func (t *transferTable) sendResponses(d *Device) {
	kept := t.responses[:0]
	for _, s := range t.responses {
		if !d.sendResponse(&s) {
			kept = append(kept, s)
		}
	}
	clear(t.responses[len(kept):])
	t.responses = kept
}

// canRespond reports whether sendResponses would send something.
func (t *transferTable) canRespond(d *Device) bool {
	for i := range t.responses {
		if s := &t.responses[i]; d.room(s.peer, s.next()) {
			return true
		}
	}
	return false
}

// next returns the length of the next message of a service.
func (s *service) next() int {
	if !s.read {
		return requestBytes
	}
	return requestBytes + int(min(s.request.length-s.sent, messagePiece))
}

// sendResponse sends as much as there is room for, and reports whether the response is
// complete.
func (d *Device) sendResponse(s *service) bool {
	for limit := s.sent + pieceBudget; s.read && s.sent < limit && d.room(s.peer, s.next()); {
		var wr rdma.SendWR
		q := s.request
		q.length = min(s.request.length-s.sent, messagePiece)
		q.offset = s.request.offset + s.sent
		there, ok := d.seg.memory(q.key, q.addr+s.sent, q.length, q.need)
		if !ok { // deregistered meanwhile
			s.read, s.request.status = false, rdma.StatusRemoteAccess
			s.request.length -= s.sent
			break
		}
		wr.Body = rdma.MemOf(there)
		q.put(&wr)
		if !d.transmit(s.peer, kindReadReply, &wr) {
			return false
		}
		d.traffic.moved++
		if s.sent += q.length; s.sent == s.request.length {
			return true
		}
	}
	if s.read || !d.room(s.peer, requestBytes) {
		return false
	}
	var wr rdma.SendWR
	s.request.put(&wr)
	return d.transmit(s.peer, kindAnswer, &wr)
}
