package reliable

import (
	"math/rand/v2"
	"testing"
	"time"
)

func evenCables(n int) (list []*cable) {
	for range n {
		list = append(list, &cable{rate: gigabit, delay: 20 * time.Microsecond})
	}
	return list
}

// TestLoneMessageFailover cuts a path and sends lone messages, with nothing else in flight
// that would reveal the cut. It takes 120 courses: each of two paths, with 60 seeds of the
// traffic before.
func TestLoneMessageFailover(t *testing.T) {
	worst := time.Duration(0)
	for seed := range uint64(60) {
		for cut := range 2 {
			cables := evenCables(2)
			w := newPathWorld(t, seed, 1+43*int(seed%2), cables...)
			a, b := w.ends[0], w.ends[1]
			for range 1 + w.random.IntN(40) {
				for range w.random.IntN(4) {
					a.post(1 + w.random.IntN(30_000))
				}
				if w.random.IntN(2) == 0 {
					b.post(1 + w.random.IntN(3000))
				}
				w.run(time.Second, "the first messages have arrived", func() bool { return b.got == a.posted && a.got == b.posted })
			}
			if w.random.IntN(2) == 0 { // some cuts come in the middle of something
				a.post(1 + w.random.IntN(1<<20))
				w.step()
			}
			cables[cut].cut = true
			for range 20 {
				a.post(1 + w.random.IntN(60_000))
				took := w.run(150*time.Millisecond, "a message has arrived although a path is cut", func() bool { return b.got == a.posted })
				worst = max(worst, took)
				if a.peer.TimedOut(w.now, 150*time.Millisecond) {
					t.Fatalf("seed %d: the peer counts as silent since %v, at %v", seed, a.peer.LastAck(), w.now)
				}
				if w.random.IntN(4) == 0 {
					w.run(time.Second, "everything is acked", a.peer.Idle)
					w.now += 200 * time.Millisecond // the application computes
				}
			}
			cables[cut].cut = false
			for a.peer.PathState(cut) != "good" {
				a.post(1000)
				w.run(300*time.Millisecond, "a message has arrived", func() bool { return b.got == a.posted && a.peer.Idle() })
				if w.now > time.Minute {
					t.Fatal("the path is not used again")
				}
			}
		}
	}
	t.Logf("the slowest message took %v", worst)
}

// TestFailover drives traffic in both directions while paths are cut and repaired at
// random: everything arrives once and in order.
func TestFailover(t *testing.T) {
	var total PathCounts
	doubles := 0
	for seed := range uint64(12) {
		cables := []*cable{
			{rate: 0.12, delay: 20 * time.Microsecond, loss: 0.01}, {rate: 1.2, delay: 50 * time.Microsecond}, {rate: 0.6, delay: 20 * time.Microsecond, loss: 0.001},
		}
		w := newPathWorld(t, seed, 1+43*int(seed%2), cables...)
		chance := rand.New(rand.NewPCG(seed, 99))
		want := [2]int{600, 400}
		open := func() {
			for _, c := range cables {
				c.cut = false
			}
		}
		w.run(time.Minute, "all messages have arrived", func() bool {
			for i, e := range w.ends {
				if e.posted < want[i] && e.posted-e.finished < 8 && chance.IntN(4) == 0 {
					e.post(chance.IntN(1 + chance.IntN(200_000)))
				}
			}
			if chance.IntN(400) == 0 {
				cables[chance.IntN(3)].cut = true
				if cables[0].cut && cables[1].cut && cables[2].cut && chance.IntN(3) > 0 {
					open() // mostly keep at least one
				}
			} else if chance.IntN(1500) == 0 {
				open()
			}
			return w.ends[1].got == want[0] && w.ends[0].got == want[1]
		})
		open()
		w.run(time.Second, "everything is acked", func() bool { return w.ends[0].peer.Idle() && w.ends[1].peer.Idle() })
		for _, e := range w.ends {
			doubles += e.doubles
			for _, c := range e.pool.Counts {
				total.Left += c.Left
				total.Back += c.Back
				total.Again += c.Again
			}
		}
	}
	t.Logf("paths were left %d times and used again %d times; %d packets were sent again, %d arrived twice", total.Left, total.Back, total.Again, doubles)
	if total.Left < 10 || total.Back < 10 || total.Again < 10 || doubles < 10 {
		t.Errorf("too few events: %+v, %d doubles", total, doubles)
	}
}

// TestStreamFailover cuts one of two paths under a stream: the other carries on at once,
// and both are used again after the repair.
func TestStreamFailover(t *testing.T) {
	cables := evenCables(2)
	w := newPathWorld(t, 1, 44, cables...)
	a, b := w.ends[0], w.ends[1]
	stream := func(until time.Duration) (bytes int, pause time.Duration) {
		before, last, seen := b.bytes, w.now, b.bytes
		for w.now < until {
			for a.posted-a.finished < 8 {
				a.post(1 << 20)
			}
			w.step()
			if b.bytes != seen {
				pause, last, seen = max(pause, w.now-last), w.now, b.bytes
			}
		}
		return b.bytes - before, max(pause, w.now-last)
	}
	const period = 200 * time.Millisecond
	stream(w.now + period)
	for cut := range 2 {
		cables[cut].cut = true
		bytes, pause := stream(w.now + period)
		t.Logf("%d MB in %v over the rest, longest pause %v", bytes>>20, period, pause)
		if float64(bytes) < 0.75*gigabit*float64(period) || pause > 60*time.Millisecond {
			t.Errorf("with path %d cut %d MB arrive in %v, with a pause of %v", cut, bytes>>20, period, pause)
		}
		cables[cut].cut = false
		stream(w.now + 2*maxTryEvery)
		if bytes, _ = stream(w.now + period); float64(bytes) < 1.8*gigabit*float64(period) {
			t.Errorf("after the repair of path %d %d MB arrive in %v", cut, bytes>>20, period)
		}
	}
	if n := a.pool.Counts[0].Left + a.pool.Counts[1].Left; n != 2 {
		t.Errorf("paths were left %d times", n)
	}
}

// TestBurstsFailover cuts a path under bursts that are shorter than the ack timeout. If only
// acks are lost, all messages finish, and packets stay in flight on a path that counts as
// good. They must not keep it from being used, because its use reveals the cut.
func TestBurstsFailover(t *testing.T) {
	for seed := range uint64(60) {
		cables := evenCables(2)
		w := newPathWorld(t, seed, 44, cables...)
		a := w.ends[0]
		window, rate := 2+w.random.IntN(3), (0.6+0.6*w.random.Float64())*gigabit
		sent, start := 0, w.now
		bursts := func(until time.Duration) {
			for w.now < until {
				for a.posted-a.finished < window && float64(sent) < rate*float64(w.now-start) {
					a.post(1024)
					a.post(16)
					sent += 1040
				}
				w.step()
			}
		}
		bursts(w.now + time.Duration(w.random.IntN(int(60*time.Millisecond))))
		cables[1].cut = true
		atCut := a.peer.path(1).fresh
		bursts(w.now + 100*time.Millisecond)
		if p := a.peer.path(1); p.underWay > 0 && p.fresh == atCut {
			t.Errorf("seed %d: 100 ms after the cut %d bytes are in flight, and the path is %s", seed, p.underWay, a.peer.PathState(1))
		}
	}
}

// TestPathThatNeverWorks: nothing ever arrives over one of the paths, and the peer is
// reached over the other.
func TestPathThatNeverWorks(t *testing.T) {
	for dead := range 2 {
		cables := evenCables(2)
		cables[dead].cut = true
		w := newPathWorld(t, 1, 1, cables...)
		a, b := w.ends[0], w.ends[1]
		for range 20 {
			a.post(5000)
			w.run(50*time.Millisecond, "a message has arrived", func() bool { return b.got == a.posted })
		}
		if n := cables[dead].bytes[0]; n > 40_000 {
			t.Errorf("%d bytes were sent over the path that never works", n)
		}
	}
}

// TestPauseWithAPathThatNeverWorks: nothing arrives over one of the paths, and for a while
// nothing over the other, with most of the peer's reorder buffer in flight. The sender goes on
// as soon as the other path delivers again.
func TestPauseWithAPathThatNeverWorks(t *testing.T) {
	for dead := range 2 {
		for _, pause := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute} {
			cables := evenCables(2)
			cables[dead].cut = true
			w := newPathWorld(t, 1, 1, cables...)
			a, b := w.ends[0], w.ends[1]
			for range 200 {
				a.post(1)
			}
			w.run(time.Second, "the first messages have arrived", func() bool { return b.got == a.posted })
			for range 2 * Window {
				a.post(1)
			}
			w.run(time.Second, "the reorder buffer may be nearly full", func() bool { return a.peer.fresh-a.peer.first >= Window*3/4 })
			cables[1-dead].cut = true
			for until := w.now + pause; w.now < until; {
				w.step()
			}
			cables[1-dead].cut = false
			w.run(150*time.Millisecond, "all messages are acked after a pause", a.peer.Idle)
		}
	}
}

// TestPauseAfterManyProbes: one path never works, and the probes over it have added up when
// the other pauses.
func TestPauseAfterManyProbes(t *testing.T) {
	cables := []*cable{{rate: 0.001, delay: 20 * time.Microsecond}, {rate: 0.001, delay: 20 * time.Microsecond, cut: true}}
	w := newPathWorld(t, 1, 1, cables...)
	a := w.ends[0]
	stream := func(span time.Duration) {
		for until := w.now + span; w.now < until; {
			for a.posted-a.finished < 6 {
				a.post(1000)
			}
			w.step()
		}
	}
	stream(10 * time.Second) // the peer is never idle
	cables[0].cut = true
	stream(time.Second)
	cables[0].cut = false
	w.run(500*time.Millisecond, "all messages are acked after a pause", a.peer.Idle)
}

// TestStripesBySpeed: each path carries a share of a long message that its rate allows,
// and all finish at the same time.
func TestStripesBySpeed(t *testing.T) {
	for _, rates := range [][]float64{{0.125, 0.125}, {0.1, 0.3}, {0.05, 0.5}} {
		for _, run := range []int{1, 44} {
			cables := []*cable{{rate: rates[0], delay: 50 * time.Microsecond}, {rate: rates[1], delay: 50 * time.Microsecond}}
			w := newPathWorld(t, 4, run, cables...)
			a, b := w.ends[0], w.ends[1]
			const size = 8 << 20
			var took time.Duration
			var before int
			for range 3 { // the first ones measure the speed
				before = cables[1].bytes[0]
				a.post(size)
				took = w.run(10*time.Second, "the message has arrived", func() bool { return b.got == a.posted })
			}
			wire := 1.0 + float64(wireExtra)/1380
			best := time.Duration(size * wire / (rates[0] + rates[1]))
			if took > best*115/100 {
				t.Errorf("rates %v, runs of %d: %v for 8 MB, optimum %v", rates, run, took, best)
			}
			share := float64(cables[1].bytes[0]-before) / size
			if want := rates[1] / (rates[0] + rates[1]); share < want*0.9 || share > want*1.1 {
				t.Errorf("rates %v, runs of %d: the second path carries %.2f of a message, expected %.2f", rates, run, share, want)
			}
		}
	}
}

// TestPathsWithLoss: random loss does not make a path unused.
func TestPathsWithLoss(t *testing.T) {
	for _, run := range []int{1, 44} {
		cables := evenCables(2)
		cables[0].loss, cables[1].loss = 0.01, 0.01
		got := rateOf(t, 1<<20, run, false, cables...)
		t.Logf("%.1f MB/s", got/1e6)
		if got < 2*0.85*gigabit*1e9 {
			t.Errorf("two paths with 1 %% loss carry %.1f MB/s", got/1e6)
		}
	}
}
