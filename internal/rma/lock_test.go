package rma

import (
	"fmt"
	"strings"
	"testing"
)

// world is a set of ranks that each request the lock once and release it.
type world struct {
	lock Lock
	want []bool // exclusive, by rank
	// state of each rank: 0 has not requested, 1 waits, 2 holds, 3 has released.
	state []int
	asked []int // ranks in the order of their requests
	got   []int
	steps []string
}

func (w *world) clone() *world {
	c := *w
	c.lock.queue = append([]Waiting(nil), w.lock.queue...)
	c.state = append([]int(nil), w.state...)
	c.asked = append([]int(nil), w.asked...)
	c.got = append([]int(nil), w.got...)
	c.steps = append([]string(nil), w.steps...)
	return &c
}

func (w *world) step(rank int) {
	if w.state[rank] == 0 {
		w.steps = append(w.steps, fmt.Sprintf("%d asks", rank))
		w.asked, w.state[rank] = append(w.asked, rank), 1
		if w.lock.Request(Waiting{Origin: int32(rank), Exclusive: w.want[rank]}) {
			w.granted(rank)
		}
		return
	}
	w.steps = append(w.steps, fmt.Sprintf("%d leaves", rank))
	w.state[rank] = 3
	w.lock.Release(func(g Waiting) { w.granted(int(g.Origin)) })
}

func (w *world) granted(rank int) { w.state[rank], w.got = 2, append(w.got, rank) }

// wrong describes a violation of the lock's rules, if any.
func (w *world) wrong() string {
	holders, writers := 0, 0
	for r, s := range w.state {
		if s == 2 {
			holders++
			if w.want[r] {
				writers++
			}
		}
	}
	if writers > 1 || writers == 1 && holders > 1 {
		return fmt.Sprintf("%d hold it, %d of them exclusively", holders, writers)
	}
	for i, r := range w.got {
		if w.asked[i] != r {
			return fmt.Sprintf("granted in the order %v, requested in the order %v", w.got, w.asked)
		}
	}
	if n, _ := w.lock.Holders(); n != holders {
		return fmt.Sprintf("it counts %d holders, there are %d", n, holders)
	}
	if holders == 0 && len(w.asked) > len(w.got) {
		return "it is free and a rank waits"
	}
	return ""
}

// Every mix of readers and writers goes through every order of requests and releases.
func TestLockInEveryOrder(t *testing.T) {
	const ranks = 4
	orders := 0
	var explore func(w *world)
	explore = func(w *world) {
		if why := w.wrong(); why != "" {
			t.Fatalf("%s after %s (exclusive: %v)", why, strings.Join(w.steps, ", "), w.want)
		}
		advanced := false
		for r := range ranks {
			if w.state[r] == 0 || w.state[r] == 2 {
				advanced = true
				next := w.clone()
				next.step(r)
				explore(next)
			}
		}
		if advanced {
			return
		}
		orders++
		if len(w.got) != ranks {
			t.Fatalf("stuck: only %v had the lock after %s (exclusive: %v)", w.got, strings.Join(w.steps, ", "), w.want)
		}
	}
	for mix := range 1 << ranks {
		w := &world{want: make([]bool, ranks), state: make([]int, ranks)}
		for r := range ranks {
			w.want[r] = mix>>r&1 != 0
		}
		explore(w)
	}
	if orders < 10_000 {
		t.Errorf("only %d orders were explored", orders)
	}
}

func TestReleaseFreeLock(t *testing.T) {
	var l Lock
	if l.Release(func(Waiting) { t.Error("a free lock was granted") }) {
		t.Error("a free lock was released")
	}
	l.Request(Waiting{Origin: 1, Exclusive: true})
	if n, exclusive := l.Holders(); n != 1 || !exclusive {
		t.Errorf("%d holders, exclusive: %v; want one, exclusive", n, exclusive)
	}
}
