package core

// Sessions (MPI-4.1 section 11.3), and when the process joins and leaves the job: it joins for
// the first session or in MPI_Init. It leaves in MPI_Finalize, unless a session is open, and
// else when the program exits, because it may open another session.

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/mpi"
)

// session is a session.
type session struct {
	handle  handle
	handler *errhandler
	hints   *info
}

func (s *session) errhandler() *errhandler    { return s.handler }
func (s *session) self() (handle, uintptr)    { return s.handle, 0 }
func (s *session) title() string              { return "session" }
func (s *session) handlerField() **errhandler { return &s.handler }

const sessionNull handle = kindSession

// membership is the part of Process that says whether it is in the job.
type membership struct {
	mu    sync.Mutex
	users int  // sessions, and one from MPI_Init to MPI_Finalize
	left  bool // the process has left the job
}

func sessionCalls() map[string]handler {
	return map[string]handler{
		"Session_init":            (*Process).sessionInit,
		"Session_finalize":        (*Process).sessionFinalize,
		"Session_get_info":        (*Process).sessionGetInfo,
		"Session_get_num_psets":   (*Process).sessionPsets,
		"Session_get_nth_pset":    (*Process).sessionPset,
		"Session_get_pset_info":   (*Process).sessionPsetInfo,
		"Group_from_session_pset": (*Process).groupFromPset,
	}
}

// join counts a user of the job, and joins it if this is the first.
func (p *Process) join() error {
	m := &p.membership
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return errorf(errOther, "the process has left the job")
	}
	if p.world == nil {
		cfg, err := mpi.ConfigFromEnv(os.Environ())
		if err != nil {
			return err
		}
		cfg.Advanced.TolerateLengths = true
		w, err := mpi.Init(context.Background(), cfg)
		if err != nil {
			return err
		}
		if p.empty, err = w.Comm().Group().Include(); err != nil {
			return err
		}
		p.world, p.enter, p.checks = w, cbinding.Get().Profile(w), cbinding.Get().Checks(w)
		p.openWorld()
	}
	m.users++
	set(p.atExit, int32(0))
	return nil
}

// leave counts a user less. The process leaves the job after the last, if that is final.
func (p *Process) leave(final bool) error {
	m := &p.membership
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users--
	if m.users > 0 {
		return nil
	}
	if !final {
		set(p.atExit, int32(1))
		return nil
	}
	return p.leaveNow()
}

// leaveNow leaves the job. The lock is held.
func (p *Process) leaveNow() error {
	p.membership.left = true
	p.front.close()
	p.settle()
	return p.world.Finalize()
}

// exit leaves the job when the program exits, if all sessions have ended. A program that exits
// within a session or without MPI_Finalize has failed, which the launcher reports.
func (p *Process) exit() error {
	m := &p.membership
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.world == nil || m.users > 0 || m.left {
		return nil
	}
	return p.leaveNow()
}

// active reports whether functions that need the job may be called.
func (p *Process) active() bool {
	if p.state.Load() == running {
		return true
	}
	p.membership.mu.Lock()
	defer p.membership.mu.Unlock()
	return p.membership.users > 0
}

func (p *Process) sessionInit(a *args) error {
	hints, h := a.hints(0), a.errhandler(1)
	a.results(2)
	if a.err != nil {
		return nil
	}
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
	if a.results(0); a.err != nil {
		return nil
	}
	at := at[handle](a.addr(0))
	s := p.sessions.remove(*at)
	if s == nil {
		return errorf(errSession, "%#x is not a session", uint32(*at))
	}
	*at = sessionNull
	a.owner = s
	p.release(s.handler)
	return p.leave(p.state.Load() == finalized)
}

func (p *Process) sessionGetInfo(a *args) error {
	s := a.session(0)
	a.results(1)
	if a.err == nil {
		a.setHandle(1, p.infos.add(s.hints.clone()))
	}
	return nil
}

// psets are the names of the process sets.
var psets = [...]string{"mpi://WORLD", "mpi://SELF"}

func (p *Process) sessionPsets(a *args) error {
	a.session(0)
	a.results(2)
	if a.err == nil {
		a.setInt(2, len(psets))
	}
	return nil
}

// sessionPset is MPI_Session_get_nth_pset. A length of 0 asks for the length, which includes the
// NUL.
func (p *Process) sessionPset(a *args) error {
	a.session(0)
	a.results(3)
	if a.err != nil {
		return nil
	}
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
	a.results(2)
	if a.err != nil {
		return nil
	}
	f := &info{}
	f.set("mpi_size", strconv.Itoa(c.Size()))
	a.setHandle(2, p.infos.add(f))
	return nil
}

func (p *Process) groupFromPset(a *args) error {
	a.session(0)
	c := a.pset(1)
	a.results(2)
	if a.err == nil {
		a.setGroup(2, c.Group())
	}
	return nil
}
