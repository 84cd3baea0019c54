package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// A process that cannot be reached because it has just ended is reported as dead, by what the
// launcher knows a moment later.
func TestUnreachableProcessHasDied(t *testing.T) {
	unreachable := errors.New("shm: cannot open the segment of peer 1")
	w := startWorld(t, 2, nil, nil)
	defer w.close()
	e := w.ranks[0]
	e.lock()
	defer e.held.unlock()
	e.held.board = pmi.NewBoard(2)
	if err := e.held.deathOr(unreachable); err != unreachable {
		t.Errorf("without a death the error is %v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() {
		e.held.board.MarkDead(pmi.Death{Rank: 1, Host: "a", Status: "exit status 3"})
	})
	var dead *PeerDeadError
	if err := e.held.deathOr(unreachable); !errors.As(err, &dead) || dead.Rank != 1 {
		t.Errorf("the error is %v, and must be that of the death", err)
	}
}
