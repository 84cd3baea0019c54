package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// Target is what a schedule is carried out on.
type Target struct {
	Lab *lab.Lab
	// Launcher is the process of the launcher, or 0 if there is none to kill.
	Launcher int
	// ShmLimit is the most that FillShm writes to the /dev/shm of a host.
	ShmLimit int64
	// Log gets a line for each event, when it happens, from several goroutines.
	Log func(line string)
}

// change is the begin of an event, or its end.
type change struct {
	at    time.Duration
	event int
	end   bool
}

// Run carries out a schedule until it has ended or ctx is done, and then ends the faults
// that still last. An error means that a fault could not be injected or ended.
//
// Faults of processes are injected beside those of cables: changing a cable takes seconds on
// a busy machine, and a process must not be stopped longer than the schedule says.
func Run(ctx context.Context, target Target, events []Event) error {
	if target.Log == nil {
		target.Log = func(string) {}
	}
	var processes, cables []Event
	for _, e := range events {
		if e.Fault.Kills() || e.Fault == Stop || e.Fault == FillShm {
			processes = append(processes, e)
		} else {
			cables = append(cables, e)
		}
	}
	done := make(chan error, 1)
	start := time.Now()
	go func() { done <- target.run(ctx, start, processes) }()
	err := target.run(ctx, start, cables)
	return errors.Join(err, <-done)
}

// run carries out events one after the other.
func (target *Target) run(ctx context.Context, start time.Time, events []Event) error {
	var changes []change
	for i, e := range events {
		changes = append(changes, change{e.At, i, false})
		if e.For > 0 {
			changes = append(changes, change{e.At + e.For, i, true})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	undo := make([]func() error, len(events))
	var errs []error
	for _, c := range changes {
		if !sleep(ctx, c.at-time.Since(start)) {
			break
		}
		e := events[c.event]
		if c.end {
			if u := undo[c.event]; u != nil {
				undo[c.event] = nil
				errs = append(errs, u())
			}
			continue
		}
		u, note, err := target.begin(e)
		if err != nil {
			errs = append(errs, fmt.Errorf("chaos: %v: %w", e, err))
			continue
		}
		if u == nil && note == "" {
			note = ": nothing to do it to"
		}
		undo[c.event] = u
		target.Log(e.String() + note)
	}
	for _, u := range undo {
		if u != nil {
			errs = append(errs, u())
		}
	}
	return errors.Join(errs...)
}

// sleep waits, and reports whether ctx is not done.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// begin starts a fault and returns how to end it, and what to add to the log. Both are empty
// if there was nothing to do it to.
func (t *Target) begin(e Event) (undo func() error, note string, err error) {
	l, host := t.Lab, t.Lab.Hosts()[e.Host]
	switch e.Fault {
	case KillRank, Stop:
		return t.signal(e)
	case KillAgent:
		agents := find(l.Processes(host), isAgent)
		for _, p := range agents {
			kill(p.pid)
			note += fmt.Sprintf(": pid %d", p.pid)
		}
		return nil, note, nil
	case KillHost:
		return nil, ": all processes", l.Kill(host)
	case KillLauncher:
		if t.Launcher == 0 {
			return nil, "", nil
		}
		kill(t.Launcher)
		return nil, fmt.Sprintf(": pid %d", t.Launcher), nil
	case Cut:
		return func() error { return l.Mend(host, e.Rail) }, "", l.Cut(host, e.Rail)
	case Drop:
		was, err := t.cable(e)
		if err != nil {
			return nil, "", err
		}
		return func() error { return l.Loss(host, e.Rail, was.Loss) }, "", l.Loss(host, e.Rail, e.Amount)
	case Duplicate:
		return func() error { return l.Duplicate(host, e.Rail, 0) }, "", l.Duplicate(host, e.Rail, e.Amount)
	case Rate:
		was, err := t.cable(e)
		if err != nil {
			return nil, "", err
		}
		rate := ""
		if was.Rate > 0 {
			rate = lab.FormatRate(was.Rate)
		}
		return func() error { return l.Rate(host, e.Rail, rate) }, "", l.Rate(host, e.Rail, lab.FormatRate(int64(e.Amount)))
	case Corrupt:
		undo, err = l.Relay(host, e.Rail, lab.Relay{Share: e.Amount, Corrupt: true, Seed: e.Pick})
		return undo, "", err
	case Delay:
		undo, err = l.Relay(host, e.Rail, lab.Relay{Share: e.Amount, Delay: time.Duration(e.Pick%20+1) * time.Millisecond, Seed: e.Pick})
		return undo, "", err
	case FillShm:
		return t.fill(host)
	}
	return nil, "", fmt.Errorf("there is no fault %q", e.Fault)
}

// cable returns the state of a cable before an event.
func (t *Target) cable(e Event) (lab.LinkStatus, error) {
	s, err := t.Lab.Status()
	if err != nil {
		return lab.LinkStatus{}, err
	}
	return s.Hosts[e.Host].Links[e.Rail], nil
}

// signal kills or stops one of the ranks on all hosts.
func (t *Target) signal(e Event) (undo func() error, note string, err error) {
	var ranks []process
	for _, h := range t.Lab.Hosts() {
		ranks = append(ranks, find(t.Lab.Processes(h), isRank)...)
	}
	if len(ranks) < 2 {
		return nil, "", nil // the last one must stay, so that the job can have a result
	}
	slices.SortFunc(ranks, func(a, b process) int { return a.rank - b.rank })
	victim := ranks[e.Pick%uint64(len(ranks))]
	note = fmt.Sprintf(": rank %d, pid %d", victim.rank, victim.pid)
	if e.Fault == KillRank {
		kill(victim.pid)
		return nil, note, nil
	}
	stop(victim.pid)
	return func() error { resume(victim.pid); return nil }, note, nil
}

// fill writes a file to the /dev/shm that the agent of a host sees.
func (t *Target) fill(host string) (undo func() error, note string, err error) {
	agents := find(t.Lab.Processes(host), isAgent)
	if len(agents) == 0 || t.ShmLimit <= 0 {
		return nil, "", nil
	}
	undo, size, err := fillShm(agents[0].pid, t.ShmLimit)
	if err != nil {
		return nil, "", err
	}
	return undo, fmt.Sprintf(": %d KB", size>>10), nil
}

// Leftovers returns the processes on the hosts of a lab, once none is expected: it waits for
// them to end for up to a time.
func Leftovers(l *lab.Lab, limit time.Duration) []int {
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		var left []int
		for _, h := range l.Hosts() {
			left = append(left, l.Processes(h)...)
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
	}
}

// Stacks makes the ranks of Go programs on a lab print their stacks and exit.
func Stacks(l *lab.Lab) {
	for _, h := range l.Hosts() {
		for _, p := range find(l.Processes(h), isRank) {
			resume(p.pid)
			quit(p.pid)
		}
	}
}
