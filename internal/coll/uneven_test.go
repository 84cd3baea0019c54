package coll

import "testing"

// call simulates a call in which messages complete at the given times.
func (u *Uneven) call(early int, ends ...int64) (aware bool) {
	aware, measure := u.Next()
	if measure {
		u.Begin(0)
		for _, t := range ends {
			u.Event(t)
		}
		u.End(ends[len(ends)-1])
	}
	if aware {
		u.RecordServed(early)
	}
	return aware
}

var (
	together = []int64{10, 20, 30, 40, 50}
	someLate = []int64{10, 20, 30, 900, 910}
)

func TestUnevenFollowsArrival(t *testing.T) {
	var u Uneven
	for i := range 100 {
		if u.call(0, together...) {
			t.Fatalf("call %d is aware, although no rank was late", i)
		}
	}
	after := -1
	for i := range 100 {
		if u.call(3, someLate...) {
			after = i
			break
		}
	}
	if after < 0 || after > 2*unevenSample {
		t.Errorf("aware after %d late calls, want some, and at most %d", after, 2*unevenSample)
	}
	for range 100 {
		if !u.call(3, someLate...) {
			t.Fatal("not aware while ranks are late")
		}
	}
	for i := range unevenOf * unevenSample {
		if !u.call(3, together...) {
			return
		}
		if i == unevenOf*unevenSample-1 {
			t.Error("still aware after a full history of even calls")
		}
	}
}

// TestUnevenGivesUp checks calls with late ranks in which no rank can be served early.
func TestUnevenGivesUp(t *testing.T) {
	var u Uneven
	const calls = 20_000
	aware := 0
	for range calls {
		if u.call(0, someLate...) {
			aware++
		}
	}
	if aware == 0 || aware > calls/20 {
		t.Errorf("%d of %d calls were aware without effect; want below 5 %%", aware, calls)
	}
	// The aware form must be tried again within a pause.
	for i := 0; !u.call(1, someLate...); i++ {
		if i > unevenRest {
			t.Fatalf("not aware again after %d calls", i)
		}
	}
	if !u.call(1, someLate...) {
		t.Error("suspended again at once")
	}
}

func TestUnevenAllocatesNothing(t *testing.T) {
	var u Uneven
	if n := testing.AllocsPerRun(100, func() { u.call(1, someLate...) }); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
}
