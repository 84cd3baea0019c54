package shm

import (
	"encoding/binary"

	"github.com/muster-mpi/muster/rdma"
)

// Where the kernel does not let a rank reach into another, memory travels as
// messages through the same queues, and the target serves them when it polls:
//
//	origin                         target
//	kindHello (once: its address)  resolves the origin, to be able to answer
//	kindWrite, a piece each        copies it, owes kindAnswer with its length
//	kindReadRequest                owes kindReadReply, a piece each
//
// What a target owes is kept in a list and paid as room allows. It always takes
// a request out of its queue: two ranks that each wait for room at the other
// before they take anything would wait for ever.
//
// An OpPull is an OpRead here. The puller claims all pieces of the region at
// once, so the owner's OpPush waits and completes as it would otherwise.

// messagePiece is how much one message carries.
const messagePiece = 16 << 10

// request is the Head of these messages; an answer uses number, ticket, length,
// status.
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

func parseRequest(b []byte) (q request, body []byte) {
	q.number, q.ticket = binary.LittleEndian.Uint32(b[0:]), binary.LittleEndian.Uint32(b[4:])
	q.key, q.addr = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	q.length, q.offset = binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint64(b[32:])
	q.need, q.status = rdma.Access(b[40]), rdma.Status(b[41])
	return q, b[requestBytes:]
}

// stepMessages sends the next piece of a write or the request of a read, and
// tells whether all has been answered.
func (t *transferTable) stepMessages(d *Device, x *transfer) (bool, rdma.Status) {
	length := uint64(x.body.Len())
	if x.status == rdma.StatusOK && x.sent < length && d.introduce(x.peer) {
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
		if d.transmit(x.peer, k, &wr) {
			x.sent += q.length
		}
	}
	// After a refusal the answers that are still on their way are waited for:
	// they would write into memory that is the user's again.
	if x.status != rdma.StatusOK && (x.op != rdma.OpWrite || x.done == x.sent) || x.done == length {
		if x.slot != nil {
			return true, d.endPullByMessages(x)
		}
		return true, x.status
	}
	return false, rdma.StatusOK
}

// endPullByMessages tells the owner of the region that its bytes have arrived.
func (d *Device) endPullByMessages(x *transfer) rdma.Status {
	ps := &x.slot.pull
	if ps.state.load() == x.epoch<<epochShift|pullAborted {
		ps.recycle(x.epoch)
		return d.endPull(x)
	}
	if x.status != rdma.StatusOK {
		x.breakOff(x.length)
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

// service is something that a peer has asked for.
type service struct {
	peer    *peer
	request request
	read    bool   // send memory; otherwise only an answer
	sent    uint64 // bytes of it that have gone
}

// answer handles a message that is for the device.
func (d *Device) answer(k kind, source int, data []byte) {
	if k == kindHello {
		// If it fails the peer waits for an answer until it is told that we are
		// gone; there is no way to tell it more.
		d.Resolve(rdma.Addr(data))
		return
	}
	q, body := parseRequest(data)
	switch k {
	case kindWrite, kindReadRequest:
		p := d.peer(rdma.PeerID(source))
		if p == nil {
			return
		}
		s := service{peer: p, request: q, read: k == kindReadRequest}
		if there, ok := d.seg.memory(q.key, q.addr, q.length, q.need); !ok {
			s.request.status, s.read = rdma.StatusRemoteAccess, false
		} else if k == kindWrite {
			copy(there, body)
		}
		d.copies.owed = append(d.copies.owed, s)
	case kindReadReply, kindAnswer:
		if int(q.number) >= len(d.copies.all) {
			return
		}
		x := d.copies.all[q.number]
		if x.ticket != q.ticket || x.phase != phaseMessages {
			return
		}
		if q.status != rdma.StatusOK {
			x.status = q.status
		}
		if k == kindReadReply {
			copy(x.body.Bytes()[q.offset:], body)
		}
		x.done += q.length
	}
}

// payOwed answers as much as there is room for, a piece for each.
func (t *transferTable) payOwed(d *Device) {
	kept := t.owed[:0]
	for _, s := range t.owed {
		if !d.pay(&s) {
			kept = append(kept, s)
		}
	}
	clear(t.owed[len(kept):])
	t.owed = kept
}

// pay sends one message, and tells whether nothing more is owed.
func (d *Device) pay(s *service) bool {
	var wr rdma.SendWR
	q := s.request
	if s.read {
		q.length = min(s.request.length-s.sent, messagePiece)
		q.offset = s.request.offset + s.sent
		there, ok := d.seg.memory(q.key, q.addr+s.sent, q.length, q.need)
		if ok {
			wr.Body = rdma.MemOf(there)
			q.put(&wr)
			if d.transmit(s.peer, kindReadReply, &wr) {
				s.sent += q.length
			}
			return s.sent == s.request.length
		}
		// Deregistered meanwhile.
		s.read, s.request.status = false, rdma.StatusRemoteAccess
		q = s.request
	}
	q.put(&wr)
	return d.transmit(s.peer, kindAnswer, &wr)
}
