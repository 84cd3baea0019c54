package bench

// Pauses of the machine: times at which a thread that was due did not run on a core,
// because a hypervisor had taken the core or the kernel was busy. Without them, a round that
// the machine delayed would look like one that the library delayed.
//
// One rank of each machine, which may be several hosts of a lab, has a thread on each core
// that sleeps for a short time and compares the clock. It asks for real-time priority, so
// that the ranks themselves do not delay it; where that is not permitted, waiting behind
// them counts as a pause too, and the figure pauses-unprivileged counts the machine.

import (
	"hash/fnv"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

const (
	// pauseLimit is the shortest delay that counts as a pause.
	pauseLimit = time.Millisecond
	pauseSleep = time.Millisecond
)

// pause is a time in which a core did not run its thread.
type pause struct{ from, to time.Time }

// pauseMonitor records the pauses of a machine.
type pauseMonitor struct {
	stopped  atomic.Bool
	threads  sync.WaitGroup
	mu       sync.Mutex
	found    []pause
	priority bool
	stolen   time.Duration // by the hypervisor since the machine has started
	procs    int           // GOMAXPROCS before
}

// firstOfMachine reports whether the calling rank is the lowest of its machine. Ranks with
// one clock are on one machine.
func firstOfMachine(c *mpi.Comm) (bool, error) {
	h := fnv.New64a()
	io.WriteString(h, prof.NewClock().Domain())
	all := make([]uint64, c.Size())
	if err := mpi.Allgather(c, []uint64{h.Sum64()}, all); err != nil {
		return false, err
	}
	return slices.Index(all, h.Sum64()) == c.Rank(), nil
}

// watchPauses starts to record.
func watchPauses() *pauseMonitor {
	cores := usableCores()
	// The threads must not wait for each other or for the rank when they return from a sleep.
	m := &pauseMonitor{stolen: stolenTime(), procs: runtime.GOMAXPROCS(0), priority: true}
	runtime.GOMAXPROCS(m.procs + len(cores))
	for _, core := range cores {
		m.threads.Go(func() { m.watch(core) })
	}
	return m
}

func (m *pauseMonitor) watch(core int) {
	runtime.LockOSThread() // for good: the thread ends with the goroutine
	if !pinWithPriority(core) {
		m.mu.Lock()
		m.priority = false
		m.mu.Unlock()
	}
	last := time.Now()
	for !m.stopped.Load() {
		nap(pauseSleep)
		now := time.Now()
		if now.Sub(last)-pauseSleep > pauseLimit {
			m.mu.Lock()
			m.found = append(m.found, pause{last, now})
			m.mu.Unlock()
		}
		last = now
	}
}

// stop ends the recording and returns the pauses in the order of their ends, and the time
// that the hypervisor took from all cores meanwhile.
func (m *pauseMonitor) stop() (found []pause, stolen time.Duration) {
	m.stopped.Store(true)
	m.threads.Wait()
	runtime.GOMAXPROCS(m.procs)
	slices.SortFunc(m.found, func(a, b pause) int { return a.to.Compare(b.to) })
	return m.found, stolenTime() - m.stolen
}

// longestPause returns the length of the longest one.
func longestPause(found []pause) (longest time.Duration) {
	for _, p := range found {
		longest = max(longest, p.to.Sub(p.from))
	}
	return longest
}

// pausedRounds marks with 1 the rounds that overlap a pause, given the times at which the
// first one began and each of them ended.
func pausedRounds(began time.Time, ends []time.Time, found []pause) []float64 {
	paused := make([]float64, len(ends))
	for i, end := range ends {
		for _, p := range found {
			if p.from.Before(end) && p.to.After(began) {
				paused[i] = 1
				break
			}
		}
		began = end
	}
	return paused
}
