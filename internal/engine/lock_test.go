package engine

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

func newLock() *spinLock { return &spinLock{shared: !canBias()} }

// Contenders come at random moments after the bias was given, so that each round
// has one revocation, met at whatever point the owner is.
func TestLockExcludesWhileTheBiasIsTaken(t *testing.T) {
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
					time.Sleep(time.Duration(round*g) * time.Microsecond)
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

func TestLockIsBiasedToTheGoroutineThatUsesIt(t *testing.T) {
	s := newLock()
	if s.shared {
		t.Skip("no bias in this build or on this kernel")
	}
	for range 2 * biasAfter {
		s.lock()
		s.unlock()
	}
	if s.bias != goroutine() {
		t.Error("a goroutine that took the lock often should own it")
	}
	done := make(chan bool)
	go func() {
		s.lock()
		s.unlock()
		close(done)
	}()
	<-done
	if s.bias != 0 || !s.shared {
		t.Error("a second goroutine should have ended the bias for good")
	}
	s.lock()
	s.unlock()
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
