package bench

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestFirstMessageTimeAndCards(t *testing.T) {
	for _, ranks := range []int{1, 2, 5} {
		mpitest.Run(t, ranks, func(t *testing.T, c *mpi.Comm) {
			var got []Result
			if err := firstMessage(c, &Params{}, func(r Result) { got = append(got, r) }); err != nil {
				t.Fatal(err)
			}
			if c.Rank() != 0 {
				if len(got) != 0 {
					t.Errorf("rank %d of %d printed %v", c.Rank(), ranks, got)
				}
				return
			}
			if len(got) != 2 || got[0].Value <= 0 || got[0].Value > 60 || got[0].Min > got[0].Value {
				t.Fatalf("%d ranks: got %+v, want a time and a number of cards", ranks, got)
			}
			if cards := got[1]; cards.Metric != "cards" || cards.Value != 1 || cards.Min != 1 {
				t.Errorf("%d ranks: each sent to one other, and the cards fetched are %+v", ranks, cards)
			}
		})
	}
}

func TestFirstMessageSince(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		err := firstMessage(c, &Params{Since: 1}, func(r Result) {
			if r.Metric == "" && r.Value < 50*365*24*3600 {
				t.Errorf("%v s have passed since one second after 1970 began", r.Value)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
