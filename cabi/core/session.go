package core

// Sessions (MPI-4.1 section 11.3).

import (
	"strconv"
	"strings"
)

// session is a session.
type session struct {
	handle  handle
	handler *errhandler
	hints   *info
	buffer  sendBuffer
}

func (s *session) errhandler() *errhandler    { return s.handler }
func (s *session) self() (handle, uintptr)    { return s.handle, 0 }
func (s *session) handlerField() **errhandler { return &s.handler }

const sessionNull handle = kindSession

func sessionCalls() map[string]handler {
	return map[string]handler{
		"Session_init":            (*Process).sessionInit,
		"Session_finalize":        (*Process).sessionFinalize,
		"Session_get_info":        copyInfo((*args).session, func(s *session) *info { return s.hints }),
		"Session_get_num_psets":   (*Process).sessionPsets,
		"Session_get_nth_pset":    (*Process).sessionPset,
		"Session_get_pset_info":   (*Process).sessionPsetInfo,
		"Group_from_session_pset": (*Process).groupFromPset,
	}
}

func (p *Process) sessionInit(a *args) error {
	hints, h := a.hints(0), a.errhandler(1)
	s := &session{handler: p.retain(h), hints: hints.clone()}
	a.owner = s
	level := threadLevels[threadMultiple]
	if asked, ok := s.hints.get("thread_level"); ok {
		level = asked
	}
	s.hints.set("thread_level", level)
	if err := p.join(); err != nil {
		p.release(h)
		return err
	}
	s.handle = p.sessions.add(s)
	a.setHandle(2, s.handle)
	return nil
}

// session returns the session of a handle, and makes it the owner of errors.
func (a *args) session(i int) *session {
	s := a.p.sessions.get(a.handle(i))
	if s == nil {
		a.fail(errorf(errSession, "%#x is not a session", uint32(a.handle(i))))
		return nil
	}
	if a.owner == nil {
		a.owner = s
	}
	return s
}

func (a *args) sessionOwner(i int) handled {
	if s := a.session(i); s != nil {
		return s
	}
	return nil
}

func (p *Process) sessionFinalize(a *args) error {
	at := a.handleAt(0)
	s := p.sessions.remove(at.get())
	if s == nil {
		return errorf(errSession, "%#x is not a session", uint32(at.get()))
	}
	at.set(sessionNull)
	a.owner = s
	s.buffer.flush() // it is detached (MPI-4.1 section 3.6)
	p.release(s.handler)
	return p.leave(p.state.Load() == finalized)
}

// psets are the names of the process sets.
var psets = [...]string{"mpi://WORLD", "mpi://SELF"}

func (p *Process) sessionPsets(a *args) error {
	a.setInt(2, len(psets))
	return nil
}

// sessionPset is MPI_Session_get_nth_pset. A length of 0 asks for the length, which includes the
// NUL.
func (p *Process) sessionPset(a *args) error {
	n := a.int(2)
	if n < 0 || n >= len(psets) {
		return errorf(errArg, "there is no process set %d: there are %d", n, len(psets))
	}
	if room := int(*at[int32](a.addr(3))); room > 0 {
		if a.results(4); a.err != nil {
			return nil
		}
		a.setText(4, psets[n], room)
	}
	a.setInt(3, len(psets[n])+1)
	return nil
}

// pset returns the communicator of the process set with a name. Names are URIs, whose first
// parts have no case; MPICH compares the last one in this way too.
func (a *args) pset(i int) *comm {
	if a.results(i); a.err != nil {
		return nil
	}
	for k, c := range []*comm{a.p.all, a.p.self} {
		if strings.EqualFold(a.text(i), psets[k]) {
			return c
		}
	}
	a.fail(errorf(errArg, "there is no process set %q", clip(a.text(i), 256)))
	return nil
}

func (p *Process) sessionPsetInfo(a *args) error {
	a.session(0)
	c := a.pset(1)
	if a.err != nil {
		return nil
	}
	f := &info{}
	f.set("mpi_size", strconv.Itoa(c.Size()))
	a.setHandle(2, p.infos.add(f))
	return nil
}

func (p *Process) groupFromPset(a *args) error {
	s := a.session(0)
	c := a.pset(1)
	if a.err == nil {
		a.setGroup(2, c.Group().Union(p.empty), s) // a group of its own: the session is that of this one
	}
	return nil
}
