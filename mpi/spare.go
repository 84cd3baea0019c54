package mpi

// Spare processes ("muster run --spares"): the last processes of the job, which wait in
// Recover until they take the place of a failed rank. The program sees a world of the
// others.

import (
	"fmt"
	"os"
	"strconv"

	"github.com/muster-mpi/muster/internal/engine"
)

// noRecover is what a spare returns for calls on the world.
const noRecover = "this process is a spare of \"muster run --spares\", which can only call mpi.Recover; let the program do all its work there"

// reserveSpares makes the last processes of the job spares. Their number is the value of a
// variable, which the launcher sets; without it there are none.
func (w *World) reserveSpares(value string) error {
	if value == "" {
		return nil
	}
	k, err := strconv.Atoi(value)
	if err != nil || k < 0 || k >= w.comm.size || !w.e.Tolerates() {
		return fmt.Errorf("mpi: environment: a job of %d processes that survives failures (%v) cannot have %q spares", w.comm.size, w.e.Tolerates(), value)
	}
	w.makeSpares(k)
	return nil
}

// makeSpares makes the last k processes spares. All processes call it before they make
// communicators.
func (w *World) makeSpares(k int) {
	if k == 0 {
		return
	}
	w.spares = k
	n := w.comm.size - k
	w.ids.next = firstFreeContext + 2
	if w.comm.rank < n {
		w.user = w.comm.sub(firstFreeContext, listOf(sequence(0, n)), "world")
	} else {
		w.user = &Comm{w: w, e: w.e, ctx: firstFreeContext, rank: Undefined, name: engine.NewName("world"), freed: true}
	}
	w.comm.SetName("job")
}

// unused reports whether this process is a spare whose program has not called Recover.
func (w *World) unused() bool { return w.user.freed && w.recovered == nil }

// checkSpare ends the job if the program has returned without Recover: its spares are of no
// use.
func (w *World) checkSpare(err error) {
	if !w.unused() {
		return
	}
	reason := "the program does not call mpi.Recover, so that spares (muster run --spares) cannot replace its ranks"
	if err != nil {
		reason += fmt.Sprintf("; a spare has returned: %v", err)
	}
	fmt.Fprintln(os.Stderr, "muster:", reason)
	w.Abort(1, reason)
}
