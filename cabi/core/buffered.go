package core

// Buffered sends (MPI-4.1 section 3.6). The messages are copied to memory of Go; the buffer
// that the program attaches says how much may be under way.

import (
	"slices"
	"sync"

	"github.com/muster-mpi/muster/mpi"
)

func bufferedSends() map[string]handler {
	return map[string]handler{
		"Buffer_attach":         attachBuffer(0, (*args).processBuffer),
		"Buffer_detach":         detachBuffer(0, (*args).processBuffer),
		"Buffer_flush":          flushBuffer((*args).processBuffer),
		"Buffer_iflush":         startFlush(0, (*args).processBuffer),
		"Comm_attach_buffer":    attachBuffer(1, (*args).commBuffer),
		"Comm_detach_buffer":    detachBuffer(1, (*args).commBuffer),
		"Comm_flush_buffer":     flushBuffer((*args).commBuffer),
		"Comm_iflush_buffer":    startFlush(1, (*args).commBuffer),
		"Session_attach_buffer": attachBuffer(1, (*args).sessionBuffer),
		"Session_detach_buffer": detachBuffer(1, (*args).sessionBuffer),
		"Session_flush_buffer":  flushBuffer((*args).sessionBuffer),
		"Session_iflush_buffer": startFlush(1, (*args).sessionBuffer),
		"Bsend":                 (*Process).bsend,
		"Ibsend":                (*Process).ibsend,
		"Bsend_init":            (*Process).bsendInit,
	}
}

// sendBuffer is the attached buffer.
type sendBuffer struct {
	mu       sync.Mutex
	attached bool
	addr     uintptr
	size     int
	used     int
	sends    []bufferedSend
}

type bufferedSend struct {
	mpi.Request
	size int
}

func (a *args) processBuffer() *sendBuffer { return &a.p.buffer }
func (a *args) commBuffer() *sendBuffer    { return &a.comm(0).buffer }

func (a *args) sessionBuffer() *sendBuffer {
	if s := a.session(0); s != nil {
		return &s.buffer
	}
	return new(sendBuffer) // the call fails
}

// bufferFor returns the buffer of a message: that of its communicator, of its session or of the
// process, the first that is attached.
func (p *Process) bufferFor(m *message) *sendBuffer {
	if m.comm.buffer.isAttached() {
		return &m.comm.buffer
	}
	if s := m.comm.session; s != nil && s.buffer.isAttached() {
		return &s.buffer
	}
	return &p.buffer
}

func (k *sendBuffer) isAttached() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.attached
}

// automatic is MPI_BUFFER_AUTOMATIC, with which a buffer has any size.
const automatic = 2

// attachBuffer is the handler of a function that attaches a buffer: its address is parameter i,
// its size follows.
func attachBuffer(i int, find func(*args) *sendBuffer) handler {
	return func(p *Process, a *args) error {
		k, size := find(a), a.int(i+1)
		k.mu.Lock()
		defer k.mu.Unlock()
		switch {
		case k.attached:
			return errorf(errBuffer, "a buffer is attached already")
		case size < 0:
			return errorf(errArg, "the size of the buffer is %d", size)
		case size > 0 && a.addr(i) == 0:
			return errorf(errBuffer, "the buffer is NULL")
		}
		k.attached, k.addr, k.size = true, a.addr(i), size
		return nil
	}
}

// detachBuffer waits until all messages in the buffer are sent.
func detachBuffer(i int, find func(*args) *sendBuffer) handler {
	return func(p *Process, a *args) error {
		k := find(a)
		k.flush()
		k.mu.Lock()
		defer k.mu.Unlock()
		set(a.addr(i), uint64(k.addr))
		a.setCount(i+1, k.size)
		k.attached, k.addr, k.size = false, 0, 0
		return nil
	}
}

func flushBuffer(find func(*args) *sendBuffer) handler {
	return func(p *Process, a *args) error {
		find(a).flush()
		return nil
	}
}

// startFlush is the handler of a function whose request, parameter i, is complete when all messages
// that are in the buffer now are sent.
func startFlush(i int, find func(*args) *sendBuffer) handler {
	return func(p *Process, a *args) error {
		k := find(a)
		k.mu.Lock()
		defer k.mu.Unlock()
		p.addRequest(a, i, &request{op: &flushed{slices.Clone(k.sends)}, send: true})
		return nil
	}
}

// flushed is complete when sends are.
type flushed struct{ sends []bufferedSend }

func (f *flushed) ready() bool {
	f.sends = slices.DeleteFunc(f.sends, func(s bufferedSend) bool {
		_, done, _ := s.Test()
		return done
	})
	return len(f.sends) == 0
}

func (f *flushed) result() (mpi.Status, error) { return mpi.Status{}, nil }

// flush waits until all messages in the buffer are sent.
func (k *sendBuffer) flush() {
	k.mu.Lock()
	sends := k.sends
	k.sends = nil
	k.mu.Unlock()
	for _, s := range sends {
		_, _ = s.Wait() // Bsend has already returned success
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range sends {
		k.used -= s.size
	}
}

// send sends a copy of a message.
func (k *sendBuffer) send(m *message, overhead int) error {
	b, err := m.typ.outgoing(m.addr, m.count)
	if err != nil || m.peer == mpi.ProcNull {
		return err
	}
	size := len(b) + overhead
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.attached {
		return errorf(errBuffer, "no buffer is attached")
	}
	k.reap()
	if k.addr != automatic && k.used+size > k.size {
		return errorf(errBuffer, "the message needs %d bytes and %d of the %d bytes of the buffer are in use", size, k.used, k.size)
	}
	k.used += size
	k.sends = append(k.sends, bufferedSend{mpi.Isend(m.comm.Comm, slices.Clone(b), m.peer, m.tag), size})
	return nil
}

// reap removes messages that are sent.
func (k *sendBuffer) reap() {
	k.sends = slices.DeleteFunc(k.sends, func(s bufferedSend) bool {
		_, done, _ := s.Test()
		if done {
			k.used -= s.size
		}
		return done
	})
}

func (p *Process) bsend(a *args) error {
	m := a.outgoing()
	if a.err != nil {
		return a.err
	}
	return p.bufferFor(&m).send(&m, p.abi.limits.bsendOverhead)
}

func (p *Process) ibsend(a *args) error {
	m := a.outgoing()
	if a.err != nil {
		return a.err
	}
	if err := p.bufferFor(&m).send(&m, p.abi.limits.bsendOverhead); err != nil {
		return err
	}
	p.addRequest(a, 6, &request{comm: m.comm, send: true})
	return nil
}

func (p *Process) bsendInit(a *args) error {
	m := a.outgoing()
	if a.err != nil {
		return a.err
	}
	p.addRequest(a, 6, &request{comm: m.comm, send: true, start: func(*request) error { return p.bufferFor(&m).send(&m, p.abi.limits.bsendOverhead) }})
	return nil
}
