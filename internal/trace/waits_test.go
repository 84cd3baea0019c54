package trace

import (
	"reflect"
	"testing"
)

func TestTimesOfRanks(t *testing.T) {
	// Rank 1 receives from 40 on what rank 0 sends at 100; the trace ends at 120.
	tr := job(t, []Event{send(0, 20, 1, 3), send(100, 110, 1, 0)}, []Event{recv(10, 20, 0, 3), recv(40, 120, 0, 0)})
	a := tr.Analyze()
	if got, want := a.RankTimes(tr), []RankTime{{0, 30, 10, 90}, {1, 90, 60, 30}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := a.WaitShares(tr, 3), [][]float64{{0.25, 0, 0}, {0, 1, 0.5}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
