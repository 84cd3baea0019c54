package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestRoundFollowsFromSeed(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(300) {
		r := newRound(seed)
		if !reflect.DeepEqual(r, newRound(seed)) {
			t.Fatalf("seed %d gives two rounds", seed)
		}
		seen[r.class] = true
		if r.class == "host" && r.hosts < 2 || r.ranks < 2 {
			t.Errorf("seed %d: %v: nobody could survive", seed, r)
		}
	}
	if len(seen) != len(allClasses) {
		t.Errorf("only the classes %v occur", seen)
	}
}

func TestJudge(t *testing.T) {
	const begin, kill, well = "[0] soak: started\n", "chaos:   1.000s  kill a rank: rank 1, pid 7\n", "[0] soak: ok\n"
	for _, c := range []struct {
		class, out string
		status     int
		bad        bool
	}{
		{"mild", begin + well + well, 0, false},
		{"mild", begin + well, 0, true},
		{"mild", begin + well + well, 124, true},
		{"mild", begin + "VIOLATION seed 1", 1, true},
		{"kill", begin + kill + well, 0, false},
		{"kill", begin + kill, 1, true},
		{"kill", kill + begin, 1, false},
		{"kill", begin + kill + "VIOLATION seed 1", 1, true},
		{"end", begin + kill, 1, false},
		{"end", begin + kill + "VIOLATION seed 1: wrong value: x", 1, true},
		{"end", begin + kill, 124, true},
		{"end", begin, 1, true},
	} {
		r := round{class: c.class, ranks: 2, survive: c.class == "kill"}
		if problem := r.judge(c.out, c.status); (problem != "") != c.bad {
			t.Errorf("%s, status %d, %q: %q", c.class, c.status, strings.ReplaceAll(c.out, "\n", " "), problem)
		}
	}
}
