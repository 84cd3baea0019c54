package core

// The job, and when the process joins and leaves it: it joins for the first session or in MPI_Init.
// It leaves in MPI_Finalize, unless a session is open, and else when the program exits, because it
// may open another session.

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/cbinding"
	"github.com/muster-mpi/muster/mpi"
)

// job is the part of Process that knows the job.
type job struct {
	state      atomic.Int32 // of MPI_Init and MPI_Finalize
	level      int          // of threads, as granted
	mainThread int          // that called MPI_Init

	world  *mpi.World
	all    *comm                           // MPI_COMM_WORLD
	self   *comm                           // MPI_COMM_SELF
	parent atomic.Pointer[comm]            // to the processes that have started this one; nil: none, or it was freed
	appNum func() int                      // MPI_APPNUM, for which the launcher is asked
	enter  func(name string, site uintptr) // tells the profile and check mode who calls; nil without
	checks bool                            // check mode

	mu    sync.Mutex
	users int  // sessions, and one from MPI_Init to MPI_Finalize
	left  bool // the process has left the job
}

const (
	notInitialized = iota
	running
	finalized
)

// open notes the job that the process has joined, and makes the predefined communicators.
func (j *job) open(w *mpi.World, unset *errhandler) {
	j.world, j.enter, j.checks = w, cbinding.Get().Profile(w), cbinding.Get().Checks(w)
	j.appNum = sync.OnceValue(func() int { return cbinding.Get().Program(w) })
	j.all = &comm{Comm: w.Comm(), handle: commWorld, handler: unset, label: "MPI_COMM_WORLD"}
	j.self = &comm{Comm: w.Comm().Self(), handle: commSelf, handler: unset, label: "MPI_COMM_SELF"}
}

// join counts a user of the job, and joins it if this is the first.
func (p *Process) join() error {
	m := &p.job
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
		p.job.open(w, p.standard.unset)
		p.abi.describeComm(commWorld, w.Comm())
		p.abi.describeComm(commSelf, p.self.Comm)
		p.openParent()
	}
	m.users++
	set(p.atExit, int32(0))
	return nil
}

// leave counts a user less. The process leaves the job after the last, if that is final.
func (p *Process) leave(final bool) error {
	m := &p.job
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
	p.left = true
	p.front.close()
	p.settle()
	return p.world.Finalize()
}

// exit leaves the job when the program exits, if all sessions have ended. A program that exits
// within a session or without MPI_Finalize has failed, which the launcher reports.
func (p *Process) exit() error {
	m := &p.job
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.world == nil || m.users > 0 || m.left {
		return nil
	}
	return p.leaveNow()
}

// active reports whether functions that need the job may be called.
func (j *job) active() bool {
	if j.state.Load() == running {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.users > 0
}

// Abort ends the job. It does not return. A code of 0 is the status of the job, too: Fortran's STOP
// in a coarray program ends it so.
func (j *job) Abort(code int, reason string) {
	if j.world == nil {
		os.Exit(code)
	}
	j.world.Abort(code, reason)
}

// whoami is how messages name the rank.
func (j *job) whoami() string {
	if j.world == nil {
		return ""
	}
	return fmt.Sprintf("rank %d: ", j.world.Comm().Rank())
}
