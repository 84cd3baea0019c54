package mpi

// Spawn: ranks of a running job start another one (MPI-4.1 section 11.8).

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// SpawnCommand is a program that [Comm.Spawn] starts.
type SpawnCommand struct {
	Prog  string   // its path, or its name in PATH, where the launcher runs
	Args  []string // its arguments, without the program itself
	Ranks int      // the number of processes. Default: 1
	Dir   string   // its working directory. Default: that of the job
	Env   []string // additional variables, such as "NAME=value". Default: none
	// Hosts are those of the job on which all commands of the call run; only those of the
	// first command count. Default: all of them.
	Hosts []string
}

// Spawn starts a job of new processes, those of the first command first, and returns an
// inter-communicator whose remote group they are. The processes have a world of their own; in
// them, [Parent] returns the inter-communicator. All ranks of c call Spawn, and return when all
// new processes have called [Init] or [Main]. Only the commands of rank root count.
//
// The launcher must be muster run; it starts the processes, prints their output and waits for
// them. If a program cannot be started, or a process ends before it has joined, all ranks get an
// error of class ErrSpawn that says why. ctx bounds the time of the call: it should end on all
// ranks, or on none.
//
// A failure among the new processes ends their job, and makes calls on the inter-communicator
// fail. The job of c goes on, and its status reports the failure in the end.
func (c *Comm) Spawn(ctx context.Context, root int, commands ...SpawnCommand) (*Comm, error) {
	h := c.beginCreate("Spawn", CallCreate)
	d, err := c.spawn(ctx, root, commands)
	return d, h.finish(err)
}

func (c *Comm) spawn(ctx context.Context, root int, commands []SpawnCommand) (*Comm, error) {
	const op = "Spawn"
	if err := c.checkJoin(op, root); err != nil {
		return nil, err
	}
	return c.hostJoin(ctx, op, ErrSpawn, root, func(token string) (int, int, error) { return c.requestJob(ctx, commands, token) })
}

// requestJob asks the launcher to start the commands. It returns the number of the job and that
// of its ranks.
func (c *Comm) requestJob(ctx context.Context, commands []SpawnCommand, token string) (job, size int, err error) {
	if len(commands) == 0 {
		return 0, 0, errors.New("there is no command to start")
	}
	r := &pmi.SpawnRequest{Parent: strconv.Itoa(c.size) + ":" + token, Hosts: commands[0].Hosts}
	for _, s := range commands {
		if s.Prog == "" || s.Ranks < 0 {
			return 0, 0, fmt.Errorf("%d processes of the program %q cannot be started", s.Ranks, s.Prog)
		}
		n := max(1, s.Ranks)
		size += n
		r.Programs = append(r.Programs, pmi.SpawnProgram{Ranks: n, Prog: s.Prog, Args: s.Args, Dir: s.Dir, Env: s.Env})
	}
	a, err := c.w.requestLauncher(ctx, pmi.JobRequest{Spawn: r})
	if err != nil {
		return 0, 0, err
	}
	return a.Job, size, nil
}

func (w *World) requestLauncher(ctx context.Context, r pmi.JobRequest) (pmi.JobAnswer, error) {
	l, ok := w.base().client.(pmi.Launcher)
	if !ok {
		return pmi.JobAnswer{}, pmi.ErrNoLauncher
	}
	return l.Request(ctx, r)
}

// canSpawn reports whether the launcher starts programs for ranks of the job.
func (w *World) canSpawn() bool {
	l, ok := w.base().client.(pmi.Launcher)
	return ok && l.ServesRequests()
}

// programNumber returns the number of the program of this rank among those of its job, 0 if the
// launcher does not know it.
func (w *World) programNumber() int {
	l, ok := w.base().client.(pmi.Launcher)
	if !ok {
		return 0
	}
	n, err := l.Program(context.Background())
	if err != nil {
		return 0
	}
	return n
}

// errSpawnEnded reports that a spawned job has ended before all its ranks had joined.
var errSpawnEnded = errors.New("the spawned job ended before all of its processes had joined")

// watchJob cancels the rendezvous with a spawned job that has ended.
func (w *World) watchJob(ctx context.Context, job int, cancel context.CancelCauseFunc) {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		// Not with ctx: a request that is given up breaks the connection to the launcher.
		a, err := w.requestLauncher(context.Background(), pmi.JobRequest{State: job})
		if err != nil {
			cancel(fmt.Errorf("%w: %w", errSpawnEnded, err))
			return
		}
		if a.Ended {
			cancel(fmt.Errorf("%w: %s", errSpawnEnded, a.Why))
			return
		}
	}
}
