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
		"Buffer_attach": (*Process).bufferAttach,
		"Buffer_detach": (*Process).bufferDetach,
		"Bsend":         (*Process).bsend,
		"Ibsend":        (*Process).ibsend,
		"Bsend_init":    (*Process).bsendInit,
	}
}

// bsendOverhead is MPI_BSEND_OVERHEAD.
const bsendOverhead = 96

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

func (p *Process) bufferAttach(a *args) error {
	k := &p.buffer
	k.mu.Lock()
	defer k.mu.Unlock()
	size := a.int(1)
	switch {
	case k.attached:
		return errorf(errBuffer, "a buffer is attached already")
	case size < 0:
		return errorf(errArg, "the size of the buffer is %d", size)
	case size > 0 && a.addr(0) == 0:
		return errorf(errBuffer, "the buffer is NULL")
	}
	k.attached, k.addr, k.size = true, a.addr(0), size
	return nil
}

// bufferDetach waits until all messages in the buffer are sent.
func (p *Process) bufferDetach(a *args) error {
	k := &p.buffer
	k.flush()
	k.mu.Lock()
	defer k.mu.Unlock()
	set(a.addr(0), uint64(k.addr))
	a.setCount(1, k.size)
	k.attached, k.addr, k.size = false, 0, 0
	return nil
}

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
func (k *sendBuffer) send(m *message) error {
	b, err := m.typ.outgoing(m.addr, m.count)
	if err != nil || m.peer == mpi.ProcNull {
		return err
	}
	size := len(b) + bsendOverhead
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.attached {
		return errorf(errBuffer, "no buffer is attached")
	}
	k.reap()
	if k.used+size > k.size {
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
	return p.buffer.send(&m)
}

func (p *Process) ibsend(a *args) error {
	m := a.outgoing()
	if a.err != nil {
		return a.err
	}
	if err := p.buffer.send(&m); err != nil {
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
	p.addRequest(a, 6, &request{comm: m.comm, send: true, start: func(*request) error { return p.buffer.send(&m) }})
	return nil
}
