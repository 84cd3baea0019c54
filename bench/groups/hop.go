package groups

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/bench"
)

// cacheLineHop returns the time in ns that a cache line takes from one CPU to another: two
// threads, one on each, alternately increment a word. Latency in shared memory depends on
// it, and on a virtual machine it changes from hour to hour. The result is the median of
// several short tries, or NaN if they did not end.
func cacheLineHop(a, b int) float64 {
	const tries, hops = 9, 20000
	var line struct {
		_    [128]byte
		word atomic.Int64
		_    [128]byte
	}
	// If the other thread does not run for this long, the machine is too busy to measure.
	const timeout = 5 * time.Second
	bound, begin, done := make(chan error), make(chan struct{}), make(chan bool)
	play := func(cpu int, parity int64, took []float64) {
		// The thread is not unlocked, so it ends with the goroutine: no other goroutine
		// may run bound to this CPU.
		runtime.LockOSThread()
		bound <- bindThread(cpu)
		<-begin
		for t := range int64(tries) {
			start := time.Now()
			for i := range int64(hops) {
				looks := 0
				for line.word.Load() != 2*(t*hops+i)+parity {
					if looks++; looks%(1<<20) == 0 && time.Since(start) > timeout {
						done <- false
						return
					}
				}
				line.word.Add(1)
			}
			if took != nil {
				took[t] = float64(time.Since(start)) / (2 * hops)
			}
		}
		done <- true
	}
	took := make([]float64, tries)
	go play(a, 0, took)
	go play(b, 1, nil)
	errA, errB := <-bound, <-bound
	close(begin)
	okA, okB := <-done, <-done
	if errA != nil || errB != nil || !okA || !okB {
		return math.NaN()
	}
	return bench.Median(took)
}
