package mpi

import (
	"testing"

	"github.com/muster-mpi/muster/prof"
)

// TestOverlap divides the time of an operation, which begins when its call returns at 10.
func TestOverlap(t *testing.T) {
	type step struct {
		at   int64
		does string // enter or leave, and the kind of the call; or "ends": the operation
	}
	kinds := map[string]CallKind{"irecv": CallRecv, "wait": CallWait, "test": CallTest, "barrier": CallCollective}
	for _, c := range []struct {
		name  string
		steps []step
		want  prof.Overlap
	}{
		{"completed by the progress thread while the rank computes", []step{{70, "ends"}, {100, "enter wait"}, {101, "leave wait"}},
			prof.Overlap{Operations: 1, Early: 1, Time: 60, Hidden: 60, HiddenEarly: 60}},
		{"waited for at once", []step{{10, "enter wait"}, {60, "ends"}, {65, "leave wait"}},
			prof.Overlap{Operations: 1, Time: 50, Waited: 50}},
		{"half and half", []step{{30, "enter wait"}, {50, "ends"}, {51, "leave wait"}},
			prof.Overlap{Operations: 1, Time: 40, Hidden: 20, Waited: 20}},
		{"tests between computations", []step{{20, "enter test"}, {25, "leave test"}, {40, "enter test"}, {43, "ends"}, {45, "leave test"}},
			prof.Overlap{Operations: 1, Time: 33, Hidden: 25, Waited: 8}},
		{"another call", []step{{12, "enter barrier"}, {42, "leave barrier"}, {50, "enter wait"}, {60, "ends"}, {61, "leave wait"}},
			prof.Overlap{Operations: 1, Time: 50, Hidden: 10, Waited: 10}},
		{"a wait of another goroutine", []step{{12, "enter barrier"}, {20, "enter wait"}, {30, "leave barrier"}, {60, "ends"}, {61, "leave wait"}},
			prof.Overlap{Operations: 1, Time: 50, Hidden: 2, Waited: 40}},
		{"a clock that was read before that of another goroutine", []step{{12, "enter barrier"}, {11, "enter wait"}, {20, "ends"}, {25, "leave barrier"}, {25, "leave wait"}},
			prof.Overlap{Operations: 1, Time: 10, Hidden: 2, Waited: 8}},
	} {
		var app appTime
		app.enter(5, CallRecv)
		app.leave(10, CallRecv)
		start, end, asked := app.moment(), moment{}, int64(0)
		for _, s := range c.steps {
			what, kind := s.does, CallKind(0)
			if len(what) > 6 {
				what, kind = what[:5], kinds[what[6:]]
			}
			switch what {
			case "ends":
				app.advance(s.at)
				end = app.moment()
			case "enter":
				app.enter(s.at, kind)
				if kind != CallCollective {
					asked = s.at // the last wait completes the operation
				}
			case "leave":
				app.leave(s.at, kind)
			}
		}
		if got := overlap(start, end, asked); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if got := overlap(moment{10, 5, 0}, moment{9, 5, 0}, 20); got != (prof.Overlap{Operations: 1, Early: 1}) {
		t.Errorf("an operation that completed before its call returned: %+v", got)
	}
}
