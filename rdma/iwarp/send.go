package iwarp

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Sending: PostSend queues work, build cuts it into segments and frames them, and transmit
// passes the frames to the socket, without copying long bodies.
//
// A Send is complete when the socket has accepted its last byte. A Write is complete when
// it is in the peer's memory: an empty Read follows it, whose response cannot arrive
// before the Write is placed (RFC 5040 section 5.5). With a peer that answers no Reads at
// all, a Write completes like a Send, and a Read fails.

// work is one work request.
type work struct {
	id     uint64
	op     rdma.Op
	flags  rdma.Flags
	body   rdma.Mem
	remote uint64
	tag    ddp.Tag
	head   int    // length of the head, at the start of small
	done   bool   // it was completed
	kept   []byte // a copy of body: inline.go
	small  [rdma.HeadMax + smallInline]byte
}

// workRing holds work in the order of posting. Entries are numbered without limit.
type workRing struct {
	list  []work // allocated with the first entry
	depth int
	first uint64 // the oldest
	count int
}

func (r *workRing) at(i uint64) *work { return &r.list[i%uint64(r.depth)] }

// retire releases the oldest entries that are done.
func (r *workRing) retire(d *device) {
	for r.count > 0 && r.at(r.first).done {
		w := r.at(r.first)
		if w.body = (rdma.Mem{}); w.kept != nil {
			d.dropCopy(w)
		}
		r.first++
		r.count--
	}
}

// outbound is the sending side of a queue pair.
type outbound struct {
	mpa     framer
	segment int // the longest to be sent
	mute    bool
	ready   bool // the first message of a peer-to-peer connection is due
	blocked bool // the socket accepts no more for now
	ending  []byte

	next     uint64      // the next work to be sent, or being sent
	begun    bool        // message is being sent
	flushed  bool        // all bytes of the current Write are out, and its empty Read follows
	answered bool        // a response had the last turn, while some are pending
	deferred bool        // responses wait until the user has handled what came before them
	message  ddp.Message // the current one
	offset   uint32      // framed bytes of message

	// The frames waiting for the socket: pieces, made of copied bytes and of bodies in
	// place.
	copied []byte
	sealed int // bytes of copied that are in pieces
	pieces []piece
	at     int
	bodies int  // bytes of the pieces that were not copied
	most   int  // limit of them, in one system call
	borrow bool // some belong to responses to Reads
	msg    message
	batch
	given uint64 // bytes that the socket has accepted
	sent  uint64 // work before this one is sent when the pieces are
	freed uint64 // work before this one was sent
}

const mostPieces = 48

// mostSummed is how much is passed in one system call if it has a CRC or is encrypted: it
// should still be in the cache when the kernel copies it, and the peer should not wait for
// all of it.
const mostSummed = 256 << 10

func (o *outbound) start(t terms, segment, limit int) {
	o.mpa = framer{crc: t.crc, markers: t.markersOut}
	o.segment = segment
	o.most = math.MaxInt
	if t.crc {
		o.most = mostSummed
	}
	if limit > 0 {
		o.segment = max(min(limit, o.segment), segmentMin)
	}
	o.pieces = make([]piece, 0, mostPieces)
}

func (q *queuePair) PostRecv(wrs []rdma.RecvWR) (int, error) { return q.recvs.PostOwn(wrs) }

func (q *queuePair) PostSend(wrs []rdma.SendWR) (n int, err error) {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return q.postAllLocked(wrs)
}

func (q *queuePair) postAllLocked(wrs []rdma.SendWR) (n int, err error) {
	held := false
	for n < len(wrs) {
		var long bool
		if long, err = q.post(&wrs[n]); err != nil {
			break
		}
		n++
		if wrs[n-1].Flags&rdma.More != 0 && q.hold(&wrs[n-1]) {
			if held = !q.enoughHeld(); !held {
				q.transmit()
			}
			continue
		}
		if held = false; long {
			q.transmit()
			q.keepInline()
		}
	}
	if n > 0 && !held && q.state == connected {
		q.transmit()
		q.rewatch()
	}
	return n, err
}

// post accepts one work request. long reports that its body was not copied.
func (q *queuePair) post(wr *rdma.SendWR) (long bool, err error) {
	switch {
	case q.state == closed:
		return false, rdma.ErrClosed
	case q.state == unconnected && !q.early:
		return false, errors.New("iwarp: the queue pair is not connected: call Connect first")
	}
	if err := q.dev.CheckSend(wr, &q.dev.attr); err != nil {
		return false, err
	}
	if q.works.count == q.works.depth || q.out.blocked && wr.Flags&rdma.Inline != 0 && wr.Op != rdma.OpRead && wr.Body.Len() > smallInline {
		return false, rdma.ErrAgain
	}
	if q.works.list == nil {
		q.works.list = make([]work, q.works.depth)
	}
	w := q.works.at(q.works.first + uint64(q.works.count))
	w.id, w.op, w.flags, w.body, w.remote, w.done = wr.ID, wr.Op, wr.Flags, wr.Body, wr.Remote, false
	w.head, w.tag = 0, ddp.Tag(wr.RKey)
	if w.op == rdma.OpSend {
		w.head = copy(w.small[:], wr.Head[:wr.HeadLen])
	}
	if w.flags&rdma.Inline != 0 && w.op != rdma.OpRead {
		long = w.takeInline(wr.Body)
	}
	q.works.count++
	switch {
	case q.retained(): // it is repeated over another path
	case q.state > connected:
		q.complete(w, q.workStatus(w.op), 0)
		q.works.retire(q.dev)
	case w.op != rdma.OpSend && uint64(w.tag) != wr.RKey:
		// Our keys have 32 bits. The others must be 0, which only we can check.
		q.complete(w, rdma.StatusRemoteAccess, 0)
	case q.state == unconnected: // it waits for the connection
	}
	return long, nil
}

// transmit passes to the socket as much as it accepts.
func (q *queuePair) transmit() {
	o := &q.out
	q.release()
	for !q.fd.none() && q.state <= terminating {
		if o.at == len(o.pieces) {
			if q.quiet() {
				o.blocked = false
				return
			}
			if o.copied == nil {
				o.copied = q.dev.takeBuffer()
			}
			o.clear()
			if q.build(); len(o.pieces) == 0 {
				q.dev.giveBuffer(o.copied)
				o.copied, o.blocked = nil, false
				return
			}
		}
		n, err := q.give(o.pieces[o.at:])
		if notNow(err) {
			o.blocked = true
			q.dev.borrowing = q.dev.borrowing || o.borrow
			return
		}
		if err != nil {
			// The peer's last messages may still be unread, so the receiving side detects
			// the end, unless it waits itself.
			o.blocked = false
			// The user of Retain needs all of it, however long it takes.
			if q.in.starved && !q.dev.cfg.Retain {
				q.cause = q.explain(err)
				q.lose(rdma.StatusPeerGone)
			}
			return
		}
		o.given += uint64(n)
		o.burst += n
		for n > 0 {
			piece := &o.pieces[o.at]
			k := min(n, lengthOf(piece))
			skip(piece, k)
			if n -= k; lengthOf(piece) == 0 {
				o.at++
			}
		}
		if o.at == len(o.pieces) {
			q.completeWritten()
		}
	}
}

// clear prepares for further frames, when the socket has accepted all.
func (o *outbound) clear() {
	o.copied, o.sealed, o.pieces, o.at, o.bodies, o.borrow = o.copied[:0], 0, o.pieces[:0], 0, 0, false
}

// give is gather for this connection.
func (q *queuePair) give(pieces []piece) (int, error) {
	if q.secret != nil {
		return q.secret.gather(pieces)
	}
	return gather(q.fd, &q.out.msg, pieces)
}

// quiet reports whether there is certainly nothing to send: the common case during
// polling.
func (q *queuePair) quiet() bool {
	o := &q.out
	return q.state == connected && !o.ready && o.copied == nil && q.allFramed() && !q.stream.ResponsesPending()
}

// completeWritten completes work that needs no answer, when the socket has accepted it.
func (q *queuePair) completeWritten() {
	o := &q.out
	if q.state == terminating {
		if o.ending == nil {
			q.fd.shutdown()
			q.state = draining
		}
		return
	}
	// A Read may be answered, and its entry reused, before the rest of its batch is sent:
	// retired entries are skipped.
	for o.freed = max(o.freed, q.works.first); o.freed < o.sent; o.freed++ {
		if w := q.works.at(o.freed); !w.done && (w.op == rdma.OpSend || w.op == rdma.OpWrite && q.terms.ord == 0) {
			q.complete(w, rdma.StatusOK, w.head+w.body.Len())
		}
	}
	q.works.retire(q.dev)
	if q.dev.cfg.Retain {
		q.mark()
	}
}

// build frames as much as fits into one system call.
func (q *queuePair) build() {
	o := &q.out
	if o.mute {
		return
	}
	for o.room() {
		switch {
		case q.state == terminating:
			if o.ending == nil {
				o.seal()
				return
			}
			o.frame(o.ending, nil, nil)
			o.ending = nil
		case o.ready:
			o.ready = false
			m := q.stream.Write(0, 0, 0) // RFC 6581 section 6: the tag is ignored
			o.put(&m, nil, nil)
		case !o.begun && !o.deferred && q.stream.ResponsesPending():
			// Short messages and responses alternate: behind megabytes of responses our own
			// requests would wait while the connection to us is idle.
			if o.answered && q.shortNext() && q.advance() {
				o.answered = false
				continue
			}
			q.respond()
			o.answered = true
		case q.allFramed():
			o.seal()
			o.sent = o.next
			return
		case !q.advance():
			o.seal()
			o.sent = o.next
			return
		}
	}
	o.seal()
	o.sent = o.next
}

// allFramed reports whether no work is left to be framed.
func (q *queuePair) allFramed() bool { return q.out.next == q.works.first+uint64(q.works.count) }

// shortNext reports whether the next work begins with a message of one segment.
func (q *queuePair) shortNext() bool {
	if q.allFramed() {
		return false
	}
	o := &q.out
	w := q.works.at(o.next)
	return w.op == rdma.OpRead || o.flushed || w.head+w.body.Len() <= o.segment-ddp.UntaggedLen
}

// room reports whether another segment fits.
func (o *outbound) room() bool {
	return cap(o.copied)-len(o.copied) >= fpduMax && cap(o.pieces)-len(o.pieces) >= 4 && o.bodies < o.most
}

// respond frames a piece of the response to a Read. With a CRC it is copied: the program
// shares that memory, and a byte that changes under the CRC would end the stream. Without,
// it is sent in place; see settle.
func (q *queuePair) respond() {
	o := &q.out
	h, payload, f := q.stream.Respond(o.segment - ddp.TaggedLen)
	if f != ddp.NoFault {
		q.refuse(f)
		return
	}
	var head [ddp.UntaggedLen]byte
	if !o.mpa.crc && len(payload) >= zeroCopyAbove {
		o.borrow = true
		o.frame(head[:h.Put(head[:])], nil, payload)
		return
	}
	o.frame(head[:h.Put(head[:])], payload, nil)
}

// settle copies what the socket has not accepted, so that after Deregister only the
// previous contents of the region are sent (RFC 5042 section 6.2.1).
func (o *outbound) settle() {
	if !o.borrow || o.at == len(o.pieces) {
		return
	}
	var rest []byte
	for i := range o.pieces[o.at:] {
		rest = append(rest, bytesOf(&o.pieces[o.at+i])...)
	}
	clear(o.pieces)
	o.pieces, o.at, o.borrow = append(o.pieces[:0], pieceOf(rest)), 0, false
}

// refuse ends the stream because of the Read whose response is due.
func (q *queuePair) refuse(f ddp.Fault) {
	if m, t, ok := q.stream.Refuse(f); ok {
		if r, read := t.Request(); read {
			q.countRefusal(f, r.Source)
		}
		q.cause = explainFault(f)
		q.state, q.reason = terminating, rdma.StatusFault
		q.out.terminate(m, &t)
		q.flush(f)
	}
}

// advance frames the next segment of the current work. It returns false if that work must
// wait for an answer.
func (q *queuePair) advance() bool {
	o := &q.out
	w := q.works.at(o.next)
	if w.done { // rejected when it was posted
		o.next++
		return true
	}
	switch {
	case w.op == rdma.OpRead:
		return q.ask(w, w.body)
	case o.flushed:
		return q.ask(w, rdma.Mem{})
	case !o.begun && w.op == rdma.OpSend:
		op := ddp.Send
		if w.flags&rdma.Solicited != 0 {
			op = ddp.SendSolicited
		}
		o.message, o.offset, o.begun = q.stream.Send(op, uint32(w.head+w.body.Len()), 0), 0, true
	case !o.begun:
		o.message, o.offset, o.begun = q.stream.Write(w.tag, w.remote, uint32(w.body.Len())), 0, true
	}
	if o.put(&o.message, w.small[:w.head], w.body.Bytes()) {
		o.begun = false
		if o.flushed = w.op == rdma.OpWrite && q.terms.ord > 0; !o.flushed {
			o.next++
		}
	}
	return true
}

// ask frames the request of a Read, or of the empty Read that follows a Write.
func (q *queuePair) ask(w *work, sink rdma.Mem) bool {
	m, r, err := q.stream.Read(q.out.next, sink, w.tag, w.remote)
	switch {
	case errors.Is(err, rdma.ErrAgain) && q.terms.ord > 0:
		return false
	case err != nil:
		q.complete(w, rdma.StatusFault, 0)
	default:
		var request [ddp.ReadRequestLen]byte
		r.Put(request[:])
		q.out.put(&m, request[:], nil)
	}
	q.out.flushed = false
	q.out.next++
	return true
}

// put frames the next segment of a message whose payload is head and body, and reports
// whether it was the last.
func (o *outbound) put(m *ddp.Message, head, body []byte) bool {
	h, n := m.Segment(o.offsetOf(m), o.segment-ddp.UntaggedLen)
	var raw [ddp.UntaggedLen]byte
	lo := int(o.offsetOf(m))
	hi := lo + n
	front := head[min(lo, len(head)):min(hi, len(head))]
	back := body[max(lo-len(head), 0):max(hi-len(head), 0)]
	o.frame(raw[:h.Put(raw[:])], front, back)
	if m == &o.message {
		o.offset += uint32(n)
	}
	return h.Last
}

// offsetOf returns how much of a message has been framed; short ones are framed at once.
func (o *outbound) offsetOf(m *ddp.Message) uint32 {
	if m == &o.message {
		return o.offset
	}
	return 0
}

// frame makes an FPDU. A long body without markers in it is sent in place.
func (o *outbound) frame(head, front, body []byte) {
	if o.mpa.markers || o.holding || len(body) < zeroCopyAbove {
		o.copied = o.mpa.append(o.copied, head, front, body)
		return
	}
	begin := len(o.copied)
	n := len(head) + len(front) + len(body)
	o.copied = binary.BigEndian.AppendUint16(o.copied, uint16(n))
	o.copied = append(append(o.copied, head...), front...)
	var crc uint32
	if o.mpa.crc {
		crc = crc32c.Update(crc32c.Checksum(o.copied[begin:]), body)
	}
	o.seal()
	o.pieces = append(o.pieces, pieceOf(body))
	o.bodies += len(body)
	begin = len(o.copied)
	var zeros [3]byte
	o.copied = append(o.copied, zeros[:padding(n)]...)
	if o.mpa.crc {
		crc = crc32c.Update(crc, o.copied[begin:])
	}
	o.copied = binary.LittleEndian.AppendUint32(o.copied, crc)
}

// seal makes a piece of the bytes copied since the last one.
func (o *outbound) seal() {
	if o.sealed < len(o.copied) {
		o.pieces = append(o.pieces, pieceOf(o.copied[o.sealed:]))
		o.sealed = len(o.copied)
	}
}

// terminate frames the last message.
func (o *outbound) terminate(m ddp.Message, t *ddp.Terminate) {
	h, _ := m.Segment(0, ddp.TerminateMax)
	b := make([]byte, ddp.UntaggedLen+ddp.TerminateMax)
	n := h.Put(b)
	o.ending = b[:n+t.Put(b[n:])]
	o.mute = false
}
