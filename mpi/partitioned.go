package mpi

// Partitioned messages (MPI-4.1 chapter 4). PsendInit tells the receiver how the message is
// divided, in a message that PrecvInit receives: so the two sides are paired in the order of
// these calls. Then each partition of the sender is a message of its own.

import (
	"encoding/binary"
	"sync"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// partitionedContext is the bit of the context ids of partitioned messages: no receive and no
// collective call matches them. That of point-to-point messages pairs the two sides, that of
// collectives has the partitions.
const partitionedContext = engine.PartitionedContext

// Partitioned is one side of a message whose parts several goroutines send or receive. It can
// be started many times. Its methods may be called by several goroutines at the same time.
type Partitioned struct {
	c         *Comm
	op        string
	err       error // why it could not be prepared
	buf       []byte
	parts     int // of this side
	peer, tag int
	send      bool
	data      engine.Comm
	mine      note // in check mode

	mu       sync.Mutex
	terms    []byte  // how the sender divides the message
	pairing  Request // sends or receives terms
	paired   bool
	firstTag uint32 // of the partitions of the sender
	chunks   int    // partitions of the sender
	size     int    // of each, in bytes
	requests []Request
	ended    []bool // partitions of the sender that are transferred
	left     int    // how many are not
	waiting  int    // partitions of the sender that are not ready
	posted   bool
	failed   error
	differ   error // in check mode: the element types of the sides
}

// termsBytes is the length of the message that pairs the sides: the first tag, the number of
// partitions and the length of all. In check mode a note of the sender follows.
const termsBytes = 16

// PsendInit prepares to send buf in partitions of equal length, each as soon as it is ready.
// The receiver calls [PrecvInit]; the number of its partitions may differ.
func PsendInit[T Elem](c *Comm, buf []T, partitions, dst, tag int) *Partitioned {
	h := c.begin("PsendInit", CallPrepare, dst, tag, len(buf)*sizeOf[T]())
	p := newPartitioned(c, "PsendInit", buf, partitions, dst, tag)
	_ = h.finish(p.err)
	p.send = true
	if p.err != nil || dst == ProcNull {
		return p
	}
	p.firstTag = c.w.partitions.Add(uint32(partitions)) - uint32(partitions)
	p.divide(partitions, len(p.buf))
	binary.LittleEndian.PutUint32(p.terms, p.firstTag)
	binary.LittleEndian.PutUint32(p.terms[4:], uint32(partitions))
	binary.LittleEndian.PutUint64(p.terms[8:], uint64(len(p.buf)))
	pair := c.pt
	pair.Ctx |= partitionedContext
	p.pairing = Request{c: c, op: c.e.Isend(&pair, c.world(dst), int32(tag), p.terms, p2p.Standard)}
	return p
}

// PrecvInit prepares to receive a message that [PsendInit] sends. Receives are paired with
// sends of the same ranks and tag in the order of the calls. Wildcards are not allowed.
func PrecvInit[T Elem](c *Comm, buf []T, partitions, src, tag int) *Partitioned {
	h := c.begin("PrecvInit", CallPrepare, src, tag, len(buf)*sizeOf[T]())
	p := newPartitioned(c, "PrecvInit", buf, partitions, src, tag)
	_ = h.finish(p.err)
	if p.err != nil || src == ProcNull {
		return p
	}
	pair := c.pt
	pair.Ctx |= partitionedContext
	p.pairing = Request{c: c, op: c.e.Irecv(&pair, c.world(src), int32(src), int32(tag), p.terms)}
	return p
}

func newPartitioned[T Elem](c *Comm, op string, buf []T, partitions, peer, tag int) *Partitioned {
	p := &Partitioned{c: c, op: op, parts: partitions, peer: peer, tag: tag, terms: make([]byte, termsBytes)}
	p.data = c.pt
	p.data.Ctx = c.co.Ctx | partitionedContext
	if c.w.cfg.Check {
		p.mine = noteOf[T](c, op)
		p.terms = append(p.terms, p.mine.stamp(nil)...)
	}
	b, err := bytesOf(&c.w.types, buf)
	switch {
	case err != nil:
		p.err = c.refuse(ErrType, op, "%w", err)
	case partitions < 0 || partitions > 0 && len(buf)%partitions != 0 || partitions == 0 && len(buf) > 0:
		p.err = c.refuse(ErrCount, op, "%d elements do not make %d partitions of equal length", len(buf), partitions)
	default:
		p.err = c.checkPeer(op, peer, tag)
	}
	p.buf = b
	return p
}

// divide sets how the sender divides the message.
func (p *Partitioned) divide(chunks, total int) {
	p.chunks, p.size, p.paired = chunks, 0, true
	if chunks > 0 {
		p.size = total / chunks
	}
	p.requests, p.ended = make([]Request, chunks), make([]bool, chunks)
}

// Start begins to transfer the message once. It must be complete before the next Start.
func (p *Partitioned) Start() error {
	h := p.c.begin("Start", CallPartitioned, p.peer, p.tag, len(p.buf))
	return h.finish(p.start())
}

func (p *Partitioned) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	clear(p.ended)
	p.left, p.waiting, p.posted, p.failed = p.chunks, p.chunks, false, nil
	if !p.send {
		p.post()
	}
	return nil
}

// Ready sends partitions, whose elements must not be changed until the message is complete.
func (p *Partitioned) Ready(partitions ...int) error {
	h := p.c.begin("Ready", CallPartitioned, p.peer, p.tag, len(partitions)*p.size)
	return h.finish(p.ready(partitions))
}

func (p *Partitioned) ready(partitions []int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.send {
		return p.c.refuse(ErrRequest, "Ready", "the message is received, not sent")
	}
	if p.peer == ProcNull {
		return nil
	}
	for _, i := range partitions {
		if i < 0 || i >= p.chunks || p.requests[i].Active() || p.ended[i] {
			return p.c.refuse(ErrArg, "Ready", "partition %d of %d does not exist or is ready already", i, p.chunks)
		}
		b := p.buf[i*p.size : (i+1)*p.size]
		p.requests[i] = Request{c: p.c, op: p.c.e.Isend(&p.data, p.c.world(p.peer), p.tagOf(i), b, p2p.Standard)}
		p.waiting--
	}
	return nil
}

// tagOf returns the tag of partition i of the sender. Tags are used again after 2³¹
// partitions.
func (p *Partitioned) tagOf(i int) int32 { return int32((p.firstTag + uint32(i)) & MaxTag) }

// post starts to receive the partitions if it is known how the sender divides the message.
func (p *Partitioned) post() {
	if p.posted || p.failed != nil || p.peer == ProcNull {
		return
	}
	if !p.paired {
		_, done, err := p.pairing.Test()
		if !done {
			return
		}
		p.pairing = Request{}
		if err != nil {
			p.failed = err
			return
		}
		p.firstTag = binary.LittleEndian.Uint32(p.terms)
		p.divide(int(binary.LittleEndian.Uint32(p.terms[4:])), int(binary.LittleEndian.Uint64(p.terms[8:])))
		p.left = p.chunks
		if p.c.w.cfg.Check {
			p.differ = p.mine.differs(p.c, readNote(p.terms[termsBytes:]), p.peer, p.tag)
		}
	}
	if total := p.chunks * p.size; total > len(p.buf) {
		p.failed = p.c.refuse(ErrTruncate, p.op, "the message has %d bytes and the buffer %d", total, len(p.buf))
		return
	}
	for i := range p.requests {
		b := p.buf[i*p.size : (i+1)*p.size]
		p.requests[i] = Request{c: p.c, op: p.c.e.Irecv(&p.data, p.c.world(p.peer), int32(p.peer), p.tagOf(i), b)}
	}
	p.posted, p.failed = true, p.differ
}

// Arrived reports whether a partition of the receiver has arrived.
func (p *Partitioned) Arrived(partition int) (bool, error) {
	h := p.c.begin("Arrived", CallPartitioned, p.peer, p.tag, 0)
	ok, err := p.testPartition(partition)
	return ok, h.finish(err)
}

func (p *Partitioned) testPartition(partition int) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.send:
		return false, p.c.refuse(ErrRequest, "Arrived", "the message is sent, not received")
	case partition < 0 || partition >= p.parts:
		return false, p.c.refuse(ErrArg, "Arrived", "there is no partition %d: the message has %d", partition, p.parts)
	case p.peer == ProcNull:
		return true, nil
	}
	if p.post(); !p.posted {
		return p.failed != nil, p.failed
	}
	if p.size == 0 {
		return p.transferred(), p.failed
	}
	n := len(p.buf) / p.parts
	last := min(((partition+1)*n-1)/p.size, p.chunks-1) // a short message leaves the end empty
	for i := partition * n / p.size; i <= last; i++ {
		if !p.end(i) {
			return false, p.failed
		}
	}
	return true, p.failed
}

// end completes partition i of the sender if it is transferred, and reports whether it is.
func (p *Partitioned) end(i int) bool {
	if p.ended[i] {
		return true
	}
	_, done, err := p.requests[i].Test()
	if !done {
		return false
	}
	if err != nil && p.failed == nil {
		p.failed = err
	}
	p.requests[i], p.ended[i] = Request{}, true
	p.left--
	return true
}

// transferred reports whether all partitions are.
func (p *Partitioned) transferred() bool {
	for i := p.chunks - 1; i >= 0 && p.left > 0; i-- { // the last is often the last to end
		if !p.end(i) {
			return false
		}
	}
	return true
}

// Test reports whether the whole message is sent or received, and returns the result if so.
func (p *Partitioned) Test() (st Status, done bool, err error) {
	h := p.c.begin("Test", CallPartitioned, p.peer, p.tag, 0)
	st, done, err = p.test()
	h.endProbe(done, st, err)
	return st, done, err
}

func (p *Partitioned) test() (st Status, done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil || p.peer == ProcNull:
		return noStatus, true, p.err
	case p.send:
		if p.pairing.Active() {
			_, done, err := p.pairing.Test()
			if !done {
				return Status{}, false, nil
			}
			p.pairing, p.failed = Request{}, err
		}
		if p.waiting > 0 {
			p.c.e.Progress()
			return Status{}, false, nil
		}
		return noStatus, p.transferred(), p.failed
	}
	if p.post(); p.failed != nil {
		return Status{}, true, p.failed
	}
	if !p.posted || !p.transferred() {
		return Status{}, false, nil
	}
	return Status{Source: p.peer, Tag: p.tag, Bytes: p.chunks * p.size}, true, p.failed
}

// Wait waits until the whole message is sent or received.
func (p *Partitioned) Wait() (Status, error) {
	h := p.c.begin("Wait", CallPartitioned, p.peer, p.tag, 0)
	for { // test yields after a few looks
		if st, done, err := p.test(); done {
			h.end(st, err)
			return st, err
		}
	}
}
