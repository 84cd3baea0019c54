package pmi

import "testing"

func TestBoardMetrics(t *testing.T) {
	b := NewBoard(3)
	b.Waiting(2, WaitState{Op: "Recv"})
	want := Metrics{1, 2, 3, 4, 5, 6, 7}
	b.SetMetrics(1, want)
	if got, ok := b.Metrics(1); !ok || got != want {
		t.Errorf("rank 1 has %+v, got %+v, %v", want, got, ok)
	}
	for _, rank := range []int{0, 2, 3, -1} {
		if got, ok := b.Metrics(rank); ok || got != (Metrics{}) {
			t.Errorf("rank %d has recorded nothing, got %+v", rank, got)
		}
	}
	if r := b.Row(2); r.Wait.Op != "Recv" {
		t.Errorf("the counters must not overlap the rows: %+v", r)
	}
	b.SetMetrics(3, want) // there is no such rank
	var none *Board
	none.SetMetrics(0, want)
	if _, ok := none.Metrics(0); ok {
		t.Error("a missing board has no counters")
	}
}
