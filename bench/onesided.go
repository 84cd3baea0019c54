package bench

// One-sided communication: put, get and acc by size, fop and cas on one word. Rank 0
// is the origin and rank 1 the target, as in OSU's one-sided tests. The main figure is
// a call and a flush under a lock that is held all the time. Further figures are the same
// call in an epoch of each kind, and the bandwidth of a window of calls with one flush. fop
// and cas also run from all ranks on one word of rank 0: the aggregate rate, and an
// error if an addition was lost.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func windowBenchmarks() []Benchmark {
	sized := func(name, title, doc string, call func(w *mpi.Win[int64], buf []int64) error) Benchmark {
		return Benchmark{Name: name, Title: title, Doc: doc, Ranks: 2, Sizes: powers[3:], Devices: true,
			Metric: "latency", Unit: "us", Column: "Latency (us)",
			Run: func(c *mpi.Comm, p *Params, emit func(Result)) error { return oneSided(c, p, emit, call) }}
	}
	sum := mpi.Sum[int64]
	word := func(name, title, doc string, call wordCall) Benchmark {
		return Benchmark{Name: name, Title: title, Doc: doc, Ranks: 2, AnyRanks: true, Devices: true,
			Metric: "latency", Unit: "us", Column: "Latency (us)",
			Run: func(c *mpi.Comm, p *Params, emit func(Result)) error { return oneWord(c, p, emit, call) }}
	}
	return []Benchmark{
		sized("put", "MPI_Put Latency Test", "a put and a flush; beside it the same in each kind of epoch, and bandwidth",
			func(w *mpi.Win[int64], buf []int64) error { return w.Put(buf, 1, 0) }),
		sized("get", "MPI_Get Latency Test", "a get and a flush; beside it the same in each kind of epoch, and bandwidth",
			func(w *mpi.Win[int64], buf []int64) error { return w.Get(buf, 1, 0) }),
		sized("acc", "MPI_Accumulate Latency Test", "a sum and a flush; beside it the same in each kind of epoch, and bandwidth",
			func(w *mpi.Win[int64], buf []int64) error { return w.Accumulate(buf, 1, 0, sum) }),
		word("fop", "MPI_Fetch_and_op Test", "a fetch-and-add and a flush; then all ranks on one word: the rate, and that no addition is lost", fetchAdd),
		word("cas", "MPI_Compare_and_swap Test", "a compare-and-swap and a flush; then all ranks adding to one word by it", swapAdd),
	}
}

// epochKinds are the kinds of synchronization besides a flush.
var epochKinds = []struct {
	name  string
	whole bool // the target takes part
	begin func(c *mpi.Comm, w *mpi.Win[int64], peer *mpi.Group) error
	end   func(c *mpi.Comm, w *mpi.Win[int64]) error
}{
	{"lock", false,
		func(_ *mpi.Comm, w *mpi.Win[int64], _ *mpi.Group) error { return w.Lock(1, mpi.LockShared) },
		func(_ *mpi.Comm, w *mpi.Win[int64]) error { return w.Unlock(1) }},
	{"fence", true,
		func(_ *mpi.Comm, w *mpi.Win[int64], _ *mpi.Group) error { return w.Fence() },
		func(_ *mpi.Comm, w *mpi.Win[int64]) error { return w.Fence() }},
	{"pscw", true,
		func(c *mpi.Comm, w *mpi.Win[int64], peer *mpi.Group) error {
			if c.Rank() == 1 {
				return w.Post(peer)
			}
			return w.Start(peer)
		},
		func(c *mpi.Comm, w *mpi.Win[int64]) error {
			if c.Rank() == 1 {
				return w.Wait()
			}
			return w.Complete()
		}},
}

// oneSided runs put, get and acc.
func oneSided(c *mpi.Comm, p *Params, emit func(Result), call func(w *mpi.Win[int64], buf []int64) error) error {
	for _, size := range p.Sizes {
		if size%8 != 0 {
			return fmt.Errorf("bench: size %d is no multiple of 8, the size of an element", size)
		}
		w, err := mpi.AllocateWin[int64](c, size/8)
		if err != nil {
			return err
		}
		fill64(w.Memory())
		buf := make([]int64, size/8)
		fill64(buf)
		if err := oneSidedFlush(c, w, p, size, buf, emit, call); err != nil {
			return err
		}
		for _, k := range epochKinds {
			if err := oneSidedEpochs(c, w, p, size, k.name, k.whole, emit, func(peer *mpi.Group) error {
				if err := k.begin(c, w, peer); err != nil {
					return err
				}
				if c.Rank() == 0 {
					if err := call(w, buf); err != nil {
						return err
					}
				}
				return k.end(c, w)
			}); err != nil {
				return err
			}
		}
		if err := w.FenceEnd(); err != nil {
			return err
		}
		if err := w.Free(); err != nil {
			return err
		}
	}
	return nil
}

func fill64(mem []int64) {
	for i := range mem {
		mem[i] = int64(i)
	}
}

// oneSidedFlush measures the main figure and the bandwidth.
func oneSidedFlush(c *mpi.Comm, w *mpi.Win[int64], p *Params, size int, buf []int64, emit func(Result), call func(w *mpi.Win[int64], buf []int64) error) error {
	defer func() { _ = c.Barrier() }() // the next call returns its error too
	if c.Rank() != 0 {
		return nil
	}
	if err := w.Lock(1, mpi.LockShared); err != nil {
		return err
	}
	flushed := func(n, each int) error {
		for range n {
			for range each {
				if err := call(w, buf); err != nil {
					return err
				}
			}
			if err := w.Flush(1); err != nil {
				return err
			}
		}
		return nil
	}
	warmup, n := p.iterations(size, 100_000, 200)
	if err := flushed(warmup, 1); err != nil {
		return err
	}
	var s, b samples
	count, each := batches(n)
	for range count {
		start := time.Now()
		if err := flushed(each, 1); err != nil {
			return err
		}
		s.add(time.Since(start), each)
	}
	emit(s.times(Result{Size: size, Metric: "latency", Unit: "us"}, 1))
	count, each = batches(max(n/p.window(), 10))
	for range count {
		start := time.Now()
		if err := flushed(each, p.window()); err != nil {
			return err
		}
		b.add(time.Since(start), each*p.window())
	}
	emit(b.rates(Result{Size: size, Metric: "bandwidth", Unit: "MB/s"}, float64(size)/1e6))
	return w.Unlock(1)
}

// oneSidedEpochs times whole epochs with one call each.
func oneSidedEpochs(c *mpi.Comm, w *mpi.Win[int64], p *Params, size int, name string, whole bool, emit func(Result), epoch func(peer *mpi.Group) error) error {
	peer, err := c.Group().Include(1 - c.Rank())
	if err != nil {
		return err
	}
	warmup, n := p.iterations(size, 10_000, 100)
	count, each := batches(n)
	var s samples
	if c.Rank() == 0 || whole {
		for range warmup {
			if err := epoch(peer); err != nil {
				return err
			}
		}
		for range count {
			start := time.Now()
			for range each {
				if err := epoch(peer); err != nil {
					return err
				}
			}
			s.add(time.Since(start), each)
		}
	}
	if c.Rank() == 0 {
		emit(s.times(Result{Size: size, Metric: name, Unit: "us", Beside: true}, 1))
	}
	return c.Barrier()
}

// oneWord runs fop and cas.
func oneWord(c *mpi.Comm, p *Params, emit func(Result), call wordCall) error {
	w, err := mpi.AllocateWin[int64](c, 8)
	if err != nil {
		return err
	}
	if err := w.LockAll(); err != nil {
		return err
	}
	was := new(int64)
	warmup, n := p.iterations(8, 100_000, 200)
	if c.Rank() == 0 && c.Size() > 1 {
		loop := func(n int) error {
			for range n {
				if _, err := call(w, was, 1); err != nil {
					return err
				}
			}
			return nil
		}
		if err := loop(warmup); err != nil {
			return err
		}
		var s samples
		count, each := batches(n)
		for range count {
			start := time.Now()
			if err := loop(each); err != nil {
				return err
			}
			s.add(time.Since(start), each)
		}
		emit(s.times(Result{Metric: "latency", Unit: "us"}, 1))
	}
	if err := w.UnlockAll(); err != nil {
		return err
	}
	if err := allOnOneWord(c, w, n, emit, call); err != nil {
		return err
	}
	return w.Free()
}

// allOnOneWord makes every rank add to the word of rank 0 n times, and checks the sum.
func allOnOneWord(c *mpi.Comm, w *mpi.Win[int64], n int, emit func(Result), call wordCall) error {
	if err := w.LockAll(); err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	was := new(int64)
	start := time.Now()
	for added := 0; added < n; {
		done, err := call(w, was, 0)
		if err != nil {
			return err
		}
		if done {
			added++
		}
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	took := time.Since(start)
	if err := w.UnlockAll(); err != nil {
		return err
	}
	if c.Rank() != 0 {
		return nil
	}
	total := n * c.Size()
	if got := w.Memory()[0]; got != int64(total) {
		return fmt.Errorf("bench: %d additions by %d ranks left %d", total, c.Size(), got)
	}
	var s samples
	s.add(took, total)
	emit(s.rates(Result{Metric: "rate", Unit: "op/s"}, 1))
	return nil
}

// wordCall tries to add 1 to the word of a rank, with a flush, and reports whether it
// did. was is the last known value of the word.
type wordCall func(w *mpi.Win[int64], was *int64, target int) (bool, error)

func fetchAdd(w *mpi.Win[int64], was *int64, target int) (bool, error) {
	if err := w.FetchAndOp(1, was, target, 0, mpi.Sum); err != nil {
		return false, err
	}
	return true, w.Flush(target)
}

func swapAdd(w *mpi.Win[int64], was *int64, target int) (bool, error) {
	guess := *was
	if err := w.CompareAndSwap(guess, guess+1, was, target, 0); err != nil {
		return false, err
	}
	err := w.Flush(target)
	if *was != guess {
		return false, err
	}
	*was = guess + 1
	return true, err
}
