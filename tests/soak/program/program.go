package program

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// Config describes a program.
type Config struct {
	// Seed determines the program, together with the ranks that are alive.
	Seed uint64
	// Time is how long rank 0 goes on.
	Time time.Duration
	// Steps is the number of steps after which the program ends in any case. Default: no
	// limit.
	Steps int
	// Largest is the length of the longest message in bytes. Default 1 MB.
	Largest int
	// Survive makes the program go on without failed ranks. It needs OnFailure "return".
	Survive bool
	// Die makes this rank leave before a step for which it returns true. Default: never.
	Die func(step int) bool
	// Blocking leaves out what polls instead of waiting, which would never end in virtual
	// time (testing/synctest).
	Blocking bool
	// Log gets a line at the start and at each recovery. Default: none.
	Log func(format string, args ...any)
}

// Violation is a value that must not occur, or an error that must not.
type Violation struct {
	Seed uint64
	At   string
	Err  error
}

func (v *Violation) Error() string {
	return fmt.Sprintf("VIOLATION seed %d: %s: %v", v.Seed, v.At, v.Err)
}

func (v *Violation) Unwrap() error { return v.Err }

// ErrDied is the error of a rank that Config.Die has made to leave.
var ErrDied = errors.New("the rank has died")

// errValue marks errors of the checker.
var errValue = errors.New("wrong value")

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errValue, fmt.Sprintf(format, args...))
}

// Result counts what a rank has done.
type Result struct {
	Steps, Recoveries int
	Kinds             map[string]int
}

// group is a communicator, and the ranks of the base communicator that are its members.
type group struct {
	comm    *mpi.Comm
	members []int
}

// run is the state of a program on a rank.
type run struct {
	cfg        Config
	base       *mpi.Comm // the ranks that are left
	groups     []*group  // base first; the others were derived from it
	generation int       // number of recoveries: equal on all ranks
	step       int
	begin      time.Time
	pending    []mpi.Request // to be completed although the step has failed
	drains     []func()      // the same, for what has no request
	windows    []*mpi.Win[int64]
	at         string
	on         *group // of the current call
	result     Result
}

// checkEvery is the number of steps after which the ranks learn whether to go on.
const checkEvery = 8

// Run executes the program as a rank of world.
func Run(world *mpi.Comm, cfg Config) (Result, error) {
	if cfg.Largest == 0 {
		cfg.Largest = 1 << 20
	}
	if cfg.Log == nil {
		cfg.Log = func(string, ...any) {}
	}
	r := &run{cfg: cfg, begin: time.Now(), result: Result{Kinds: map[string]int{}}}
	r.rebase(world)
	for {
		err := r.steps()
		if errors.Is(err, ErrDied) {
			return r.result, err
		}
		var v *Violation
		if errors.As(err, &v) || err != nil && !cfg.Survive {
			return r.result, r.violation(err)
		}
		if !cfg.Survive {
			return r.result, nil
		}
		if !errors.Is(err, errRecover) {
			done, err := r.agree(err)
			if err != nil {
				return r.result, r.violation(err)
			}
			if done {
				return r.result, nil
			}
		}
		if err := r.recover(); err != nil {
			return r.result, r.violation(err)
		}
	}
}

func (r *run) violation(err error) error {
	var v *Violation
	if errors.As(err, &v) {
		return err
	}
	return &Violation{Seed: r.cfg.Seed, At: fmt.Sprintf("generation %d, step %d, %s", r.generation, r.step, r.at), Err: err}
}

func (r *run) rebase(c *mpi.Comm) {
	all := make([]int, c.Size())
	for i := range all {
		all[i] = i
	}
	r.base, r.groups = c, []*group{{c, all}}
}

// random returns random numbers that are equal on all ranks of the base communicator.
func (r *run) random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.cfg.Seed^uint64(r.generation)<<48, uint64(r.step)<<16|purpose))
}

// steps runs until the program ends or a call fails.
func (r *run) steps() error {
	for {
		if r.step%checkEvery == 0 {
			if err := r.freeWindows(); err != nil {
				return err
			}
			more, err := r.more()
			if err != nil || !more {
				return err
			}
		}
		if r.cfg.Die != nil && r.cfg.Die(r.step) {
			return ErrDied
		}
		random := r.random(0)
		kind := kinds[random.IntN(len(kinds))]
		// A window that a failure has broken is not freed, which tests in one process notice.
		for r.cfg.Blocking && (kind.name == "partitioned" || kind.name == "window" && r.cfg.Survive) {
			kind = kinds[random.IntN(len(kinds))]
		}
		g := r.groups[random.IntN(len(r.groups))]
		r.at = fmt.Sprintf("%s on %s", kind.name, g.comm.Name())
		r.on = g
		if err := kind.run(r, random, g); err != nil {
			if err := r.checkError(r.on, err); err != nil {
				return err
			}
			return fmt.Errorf("%s: %w", r.at, err)
		}
		r.pending, r.drains = r.pending[:0], r.drains[:0]
		r.result.Kinds[kind.name]++
		r.result.Steps++
		r.step++
	}
}

// errRecover reports that another rank had an error, and the ranks have agreed on that.
var errRecover = errors.New("another rank had an error")

// freeWindows frees the windows of the last steps if no rank had an error. Win.Free waits
// for all ranks that are alive, and a rank that had an error may not have the window.
func (r *run) freeWindows() error {
	if !r.cfg.Survive {
		return nil
	}
	r.at = "Agree on the last steps"
	agreed, _, err := r.base.Agree(1)
	if err != nil {
		return r.violation(err)
	}
	if agreed == 0 {
		return errRecover
	}
	for i, w := range r.windows {
		r.at = fmt.Sprintf("Win.Free of window %d", i)
		if err := w.Free(); err != nil {
			return r.violation(err)
		}
	}
	r.windows = nil
	return nil
}

// more lets rank 0 decide whether the program goes on.
func (r *run) more() (bool, error) {
	r.at = "Bcast of the decision to go on"
	more := []byte{0}
	if r.base.Rank() == 0 && time.Since(r.begin) < r.cfg.Time && (r.cfg.Steps == 0 || r.step < r.cfg.Steps) {
		more[0] = 1
	}
	if err := mpi.Bcast(r.base, more, 0); err != nil {
		if err := r.checkError(r.groups[0], err); err != nil {
			return false, err
		}
		return false, err
	}
	return more[0] == 1, nil
}

// kinds are the steps.
var kinds = []struct {
	name string
	run  func(r *run, random *rand.Rand, g *group) error
}{
	{"messages", (*run).messages},
	{"messages", (*run).messages},
	{"messages", (*run).messages},
	{"shift", (*run).shift},
	{"partitioned", (*run).sendParts},
	{"collectives", (*run).collectives},
	{"collectives", (*run).collectives},
	{"collectives", (*run).collectives},
	{"overlap", (*run).overlap},
	{"window", (*run).window},
	{"communicator", (*run).communicator},
	{"late", (*run).late},
}

// checkError returns a violation if an error of a call on a group must not occur.
func (r *run) checkError(g *group, err error) error {
	switch {
	case !r.cfg.Survive, errors.Is(err, errValue):
	case errors.Is(err, mpi.ErrRevoked):
		return nil
	case errors.Is(err, mpi.ErrProcFailed):
		// A device may notice the failure before the launcher does.
		for range 100 {
			if len(g.comm.Failed()) > 0 {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		err = fmt.Errorf("none of its ranks has failed: %w", err)
	}
	return r.violation(err)
}

// agree ends the pending operations after an error and returns whether no rank had one.
func (r *run) agree(err error) (done bool, _ error) {
	flag := uint64(1)
	if err != nil {
		flag = 0
		r.cfg.Log("generation %d, step %d: %v", r.generation, r.step, err)
		for _, g := range r.groups {
			if err := g.comm.Revoke(); err != nil {
				return false, fmt.Errorf("revoke %s: %w", g.comm.Name(), err)
			}
		}
		r.at += ", operations that are pending after it"
		for _, q := range r.pending {
			if q.Active() {
				_, _ = q.Wait() // it must end; whether well depends on when
			}
		}
		for _, drain := range r.drains {
			drain()
		}
		r.pending, r.drains = nil, nil
	}
	r.at = "Agree"
	agreed, failed, err := r.base.Agree(flag)
	if err != nil {
		return false, err
	}
	if agreed == 0 && len(failed) == 0 {
		return false, errors.New("calls have failed, and the ranks agree that no rank has")
	}
	return agreed == 1, nil
}

// recover replaces the base communicator by one without the failed ranks, until the ranks
// have agreed on the next step.
func (r *run) recover() error {
	for {
		r.at = "Shrink"
		c, err := r.base.Shrink()
		if err != nil {
			return err
		}
		if c.Size() > r.base.Size() || len(r.base.Failed()) == 0 {
			return fmt.Errorf("%d of %d ranks are left, and rank %d knows of the failures %v", c.Size(), r.base.Size(), r.base.Rank(), r.base.Failed())
		}
		for _, g := range slices.Backward(r.groups) {
			if g.comm == c.World().Comm() {
				continue // the world is not freed
			}
			if err := g.comm.Free(); err != nil {
				return fmt.Errorf("free %s: %w", g.comm.Name(), err)
			}
		}
		r.generation++
		r.windows = nil // other ranks may not have them
		r.result.Recoveries++
		r.rebase(c)
		r.at = "Allreduce after Shrink"
		next := []int{0}
		err = mpi.Allreduce(c, []int{r.step}, next, mpi.Max)
		if err == nil {
			r.step = (next[0] + checkEvery) / checkEvery * checkEvery
			r.cfg.Log("generation %d: %d ranks go on at step %d", r.generation, c.Size(), r.step)
			return nil
		}
		if err := r.checkError(r.groups[0], err); err != nil {
			return err
		}
		if done, err := r.agree(err); err != nil || done {
			return errors.Join(err, errors.New("the ranks agree on 1, although a rank passed 0"))
		}
	}
}
