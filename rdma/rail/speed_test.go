package rail

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The speedup of two rails over one, in virtual time: the cost of planning, windows and
// acks, without that of processors. The links carry 1 Gbit/s each.

const (
	gigabit     = 0.125 // bytes per nanosecond
	speedSize   = 1 << 20
	speedWindow = 8
)

// speedOf transfers megabytes for a while, one way or both ways, and returns bytes per
// second. look is the minimum time between two polls: an application does not poll all
// the time.
func speedOf(t *testing.T, wires int, op rdma.Op, both bool, look time.Duration) float64 {
	t.Helper()
	var list []*wire
	for range wires {
		list = append(list, &wire{latency: 40 * time.Microsecond, speed: gigabit})
	}
	w := newWorld(t, 2, list...)
	a, b := newParty(t, w, 0, 1), newParty(t, w, 1, 1)
	resolveParties(t, a, b)
	moving := []*party{a}
	if both {
		moving = append(moving, b)
	}
	mine, there := [2][]byte{}, [2]rdma.MR{}
	for i, p := range []*party{a, b} {
		mine[i] = make([]byte, speedSize)
		var err error
		if there[i], err = p.dev.Register(make([]byte, speedSize), rdma.RemoteRead|rdma.RemoteWrite); err != nil {
			t.Fatal(err)
		}
	}
	const total = 64
	var posted, done [2]int
	var start time.Duration
	startDone := 0
	ended := func() bool { return done[0] >= total && (!both || done[1] >= total) }
	cqs := []*queue{a.cq, b.cq}
	for !ended() {
		for i, p := range moving {
			for posted[i]-done[i] < speedWindow {
				wr := rdma.SendWR{Op: op, Peer: p.peer, Body: rdma.MemOf(mine[i]), Remote: there[1-i].Base, RKey: there[1-i].RKey}
				if n, _ := p.qp.PostSend([]rdma.SendWR{wr}); n == 0 {
					break
				}
				posted[i]++
			}
		}
		for i, p := range []*party{a, b} {
			var out [16]rdma.Completion
			for _, c := range out[:p.cq.Poll(out[:])] {
				if c.Status != rdma.StatusOK {
					t.Fatalf("%+v", c)
				}
				done[i]++
			}
		}
		if start == 0 && done[0] >= total/4 {
			start, startDone = w.now, done[0]+done[1]
		}
		before := w.now
		w.step(cqs, list)
		w.now = max(w.now, before+look)
		if w.now > time.Minute {
			t.Fatalf("after a minute %v of %v have ended", done, posted)
		}
	}
	return float64(done[0]+done[1]-startDone) * speedSize / (w.now - start).Seconds()
}

func TestTwoRailsAreTwiceAsFast(t *testing.T) {
	for _, op := range []rdma.Op{rdma.OpWrite, rdma.OpRead} {
		for _, both := range []bool{false, true} {
			for _, look := range []time.Duration{200 * time.Microsecond, time.Millisecond} {
				t.Run(fmt.Sprintf("%v-both-%v-%v", op, both, look), func(t *testing.T) {
					one, two := speedOf(t, 1, op, both, look), speedOf(t, 2, op, both, look)
					t.Logf("%.0f MB/s over one, %.0f MB/s over two: × %.2f", one/1e6, two/1e6, two/one)
					if two < 1.9*one {
						t.Errorf("two rails carry %.2f times what one does", two/one)
					}
				})
			}
		}
	}
}
