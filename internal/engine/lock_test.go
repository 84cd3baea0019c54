package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func newLock() *spinLock { return &spinLock{shared: !canBias()} }

// Contenders arrive at different moments after the bias was given, so each round revokes
// the bias at another point of the owner's code.
func TestLockExcludesDuringRevoke(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))))
	for round := range 300 {
		s := newLock()
		count, want := 0, 0
		var wg sync.WaitGroup
		work := func(n int) {
			defer wg.Done()
			for range n {
				s.lock()
				c := count
				if c&15 == 0 {
					runtime.Gosched()
				}
				count = c + 1
				s.unlock()
			}
		}
		for g := range 3 {
			n := 2000
			if g > 0 {
				n = 200
			}
			want += n
			wg.Add(1)
			go func() {
				if g > 0 {
					time.Sleep(time.Duration(round*g) * time.Microsecond) // vary the moment of contention
				}
				work(n)
			}()
		}
		wg.Wait()
		if count != want {
			t.Fatalf("round %d: %d increments under the lock gave %d", round, want, count)
		}
	}
}

func TestLockBias(t *testing.T) {
	s := newLock()
	if s.shared {
		t.Skip("no bias in this build or on this kernel")
	}
	for range 2 * biasAfter {
		s.lock()
		s.unlock()
	}
	if s.bias != goroutine() {
		t.Error("a goroutine that took the lock often does not own it")
	}
	done := make(chan bool)
	go func() {
		s.lock()
		s.unlock()
		close(done)
	}()
	<-done
	if s.bias != 0 || !s.shared {
		t.Error("a second goroutine has not ended the bias for good")
	}
	s.lock()
	s.unlock()
}

// A borrower and others take the lock while the owner uses its bias. The lock excludes
// all of them, and the owner keeps the bias while only the borrower interferes.
func TestLockBorrow(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))))
	for _, contended := range []bool{false, true} {
		s := newLock()
		biased := !s.shared
		count, borrowed, want := 0, 0, 0
		var stop atomic.Bool
		var borrower, others sync.WaitGroup
		borrower.Go(func() {
			for !stop.Load() || borrowed == 0 {
				if s.borrow() {
					count++
					borrowed++
					s.giveBack()
				}
				runtime.Gosched()
			}
		})
		work := func(n int) {
			for range n {
				s.lock()
				c := count
				if c&63 == 0 {
					runtime.Gosched()
				}
				count = c + 1
				s.unlock()
			}
		}
		const n = 50_000
		want += n
		if contended {
			want += n / 10
			others.Go(func() {
				for biased && atomic.LoadUintptr(&s.bias) == 0 && s.wanted.Load() == 0 {
					runtime.Gosched() // until the owner has the bias
				}
				work(n / 10)
			})
		}
		work(n)
		others.Wait()
		stop.Store(true)
		borrower.Wait()
		if count != want+borrowed {
			t.Errorf("contended %v: %d increments and %d of the borrower gave %d", contended, want, borrowed, count)
		}
		if !contended && biased && s.bias != goroutine() {
			t.Errorf("after %d loans the lock is no longer biased to its owner", borrowed)
		}
	}
}

// A borrower does not wait for the holder of the lock.
func TestBorrowDoesNotWait(t *testing.T) {
	for _, uses := range []int{1, 2 * biasAfter} { // as an ordinary lock, and as the owner
		s := newLock()
		for range uses {
			s.lock()
			s.unlock()
		}
		s.lock()
		got := make(chan bool)
		go func() { got <- s.borrow() }()
		if <-got {
			t.Fatal("a lock that is held was lent")
		}
		s.unlock()
		if !s.borrow() {
			t.Fatal("a free lock was not lent")
		}
		s.giveBack()
		s.lock()
		s.unlock()
	}
}

func BenchmarkLock(b *testing.B) {
	b.Run("biased", func(b *testing.B) {
		s := newLock()
		for b.Loop() {
			s.lock()
			s.unlock()
		}
	})
	b.Run("shared", func(b *testing.B) {
		s := &spinLock{shared: true}
		for b.Loop() {
			s.lock()
			s.unlock()
		}
	})
	b.Run("sync.Mutex", func(b *testing.B) {
		var m sync.Mutex
		n := 0
		for b.Loop() {
			m.Lock()
			n++
			m.Unlock()
		}
	})
}

// Counters that are read in the background leave the lock with its owner: the direct path of C
// programs needs the bias, also in a job with metrics.
func TestSampleKeepsBias(t *testing.T) {
	testWorld(t, 2, nil, nil, func(t *testing.T, w *world) {
		e := w.ranks[0]
		if e.held.mu.shared || !canBias() {
			t.Skip("no bias in this build or on this kernel")
		}
		for range 2 * biasAfter {
			e.lock()
			e.held.unlock()
		}
		done := make(chan bool)
		go func() {
			e.Sample()
			close(done)
		}()
		<-done
		if e.held.mu.bias != goroutine() {
			t.Error("the lock is no longer biased to its owner")
		}
	})
}
