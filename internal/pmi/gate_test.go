package pmi

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The last rank to arrive sees whether all have made the same calls, also after openings.
func TestGateComparesCalls(t *testing.T) {
	const same, other = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f
	for name, c := range map[string]struct {
		calls [4]uint64
		want  Arrival
	}{
		"same":             {[4]uint64{same, same, same, same}, ArrivedLast},
		"first differs":    {[4]uint64{other, same, same, same}, ArrivedAmiss},
		"last differs":     {[4]uint64{same, same, same, other}, ArrivedAmiss},
		"one half differs": {[4]uint64{same, other, same, other}, ArrivedAmiss},
	} {
		b := NewBoard(len(c.calls))
		for opening := uint64(1); opening <= 3; opening++ {
			for i, calls := range c.calls {
				want := ArrivedEarly
				if i == len(c.calls)-1 {
					want = ArrivedLast
				}
				switch {
				case opening < 3:
					calls = opening // the same on all ranks
				case want == ArrivedLast:
					want = c.want
				}
				if n, got := b.Arrive(calls); n != opening || got != want {
					t.Errorf("%s: arrival %d is %d at opening %d, expected %d at %d", name, i, got, n, want, opening)
				}
			}
			b.Open(opening)
		}
	}
}

// Ranks pass the gate many times; some sleep at once, some poll for a while. A sleeper is
// woken if and only if its own WakeUp did not succeed.
func TestGateWakesSleepers(t *testing.T) {
	const ranks, rounds = 5, 2000
	b := NewBoard(ranks)
	wake := make([]chan uint64, ranks)
	for r := range wake {
		wake[r] = make(chan uint64, 1)
	}
	var inside, slept atomic.Int64
	var wg sync.WaitGroup
	for rank := range ranks {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := uint64(1); k <= rounds; k++ {
				inside.Add(1)
				opening, arrival := b.Arrive(k * 0x9e3779b97f4a7c15)
				if opening != k || arrival == ArrivedAmiss {
					t.Errorf("rank %d is at opening %d, expected %d, arrival %d", rank, opening, k, arrival)
					return
				}
				if arrival == ArrivedLast {
					b.Open(k)
					for r := range ranks {
						if r != rank && b.WakeUp(r, k) {
							wake[r] <- k
						}
					}
				} else {
					for look := 0; look < (rank*7+int(k))%40 && !b.Opened(k); look++ {
						runtime.Gosched()
					}
					b.FallAsleep(rank, k)
					if !b.Opened(k) || !b.WakeUp(rank, k) {
						slept.Add(1)
						select {
						case got := <-wake[rank]:
							if got != k {
								t.Errorf("rank %d was woken for opening %d, expected %d", rank, got, k)
							}
						case <-time.After(10 * time.Second):
							t.Errorf("rank %d sleeps at opening %d and is not woken", rank, k)
							return
						}
					}
				}
				if n := inside.Load(); n < int64(k)*ranks {
					t.Errorf("rank %d passed opening %d when only %d of %d had arrived", rank, k, n, int64(k)*ranks)
					return
				}
			}
		}()
	}
	wg.Wait()
	for r := range wake {
		select {
		case k := <-wake[r]:
			t.Errorf("rank %d was sent a message for opening %d that it did not wait for", r, k)
		default:
		}
	}
	if slept.Load() == 0 {
		t.Error("no rank slept, so waking was not tested")
	}
}
