package rma

import (
	"strings"
	"testing"
)

// Each script is a list of calls; one that ends in ! is refused. After each call follows the
// state of three targets: o is open, f can be flushed.
func TestEpochs(t *testing.T) {
	calls := map[string]func(e *Epochs) error{
		"fence":      func(e *Epochs) error { return e.Fence(false) },
		"fence-end":  func(e *Epochs) error { return e.Fence(true) },
		"start":      func(e *Epochs) error { return e.Start([]int{0, 2}) },
		"complete":   func(e *Epochs) error { _, err := e.Complete(); return err },
		"post":       func(e *Epochs) error { return e.Post([]int{1}) },
		"waited":     func(e *Epochs) error { e.EndExposure(); return nil },
		"lock":       func(e *Epochs) error { return e.Lock(1, Hold{Exclusive: true}) },
		"unlock":     func(e *Epochs) error { _, err := e.Unlock(1); return err },
		"lock-all":   func(e *Epochs) error { return e.LockAll() },
		"unlock-all": func(e *Epochs) error { return e.UnlockAll() },
		"idle":       func(e *Epochs) error { return e.Idle() },
	}
	var e *Epochs
	for _, script := range []string{
		"idle=... fence=ooo idle=ooo fence=ooo fence-end=... idle=...",
		"complete!=... start=o.o start!=o.o idle!=o.o fence!=o.o complete=... complete!=...",
		"post=... post!=... idle!=... fence!=... waited=... post=... waited=... idle=...",
		"unlock!=... lock=.f. lock!=.f. lock-all!=.f. fence!=.f. idle!=.f. unlock=... unlock!=...",
		"unlock-all!=... lock-all=fff lock!=fff lock-all!=fff idle!=fff unlock-all=... idle=...",
		"fence=ooo lock=.f. unlock=... fence=ooo lock-all=fff unlock-all=... fence-end=...",
		"start=o.o lock!=o.o complete=... lock=.f. start!=.f. unlock=... post=... lock=.f. unlock=... start=o.o complete=... waited=... idle=...",
		"fence=ooo start=o.o complete=... idle=...",
	} {
		for i, step := range strings.Fields(script + " | " + script) {
			if i == 0 {
				e = NewEpochs(3)
			} else if step == "|" {
				e = NewEpochs(1_000_000)
				continue
			}
			call, want, _ := strings.Cut(step, "=")
			call, refused := strings.CutSuffix(call, "!")
			if err := calls[call](e); (err != nil) != refused {
				t.Errorf("%s: %s returns %v", script, step, err)
			}
			got := ""
			for target := range 3 {
				switch {
				case e.Passive(target):
					got += "f"
				case e.Open(target):
					got += "o"
				default:
					got += "."
				}
			}
			if got != want {
				t.Errorf("%s: after %s the targets are %s", script, step, got)
			}
		}
	}
}

// A lock is released as it was acquired, in windows of few and of many ranks.
func TestHold(t *testing.T) {
	for _, n := range []int{4, 1_000_000} {
		e := NewEpochs(n)
		for target, how := range []Hold{{}, {Exclusive: true}, {None: true}} {
			if err := e.Lock(target, how); err != nil {
				t.Fatal(err)
			}
		}
		for target, how := range []Hold{{}, {Exclusive: true}, {None: true}} {
			if got, err := e.Unlock(target); got != how || err != nil {
				t.Errorf("rank %d of %d was held as %+v, want %+v; error %v", target, n, got, how, err)
			}
		}
		if err := e.Idle(); err != nil || len(e.sparse) != 0 {
			t.Errorf("after all locks are released, %d targets have a state, and the window is not idle: %v", len(e.sparse), err)
		}
	}
}
