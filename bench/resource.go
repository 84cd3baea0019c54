package bench

// Resources of a job: memory, and the CPU time of a rank that waits.

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
)

func resourceBenchmarks() []Benchmark {
	return []Benchmark{
		{Name: "memory-once", Title: "Memory after All Have Sent to All", Doc: "proportional memory of a rank (PSS) after every rank has sent 8 bytes to every other", Ranks: 8, AnyRanks: true,
			Metric: "pss", Unit: "KiB", Column: "PSS (KiB)", Run: memoryOnce},
		{Name: "idle", Title: "CPU of a Waiting Rank", Doc: "share of a core that a rank uses while it waits in Recv", Ranks: 2,
			Metric: "cpu", Unit: "%", Column: "CPU (%)", Run: idle,
			Flags: []Flag{{Name: "seconds", Help: "how long to wait, in seconds (default 10)", Value: func(p *Params) any { return &p.Seconds }}}},
	}
}

// barrier: time of a barrier over all ranks.
func barrier(c *mpi.Comm, p *Params, emit func(Result)) error {
	n := p.Iterations
	if n == 0 {
		n = 2000
	}
	for range max(n/10, 10) {
		if err := c.Barrier(); err != nil {
			return err
		}
	}
	var s samples
	count, each := batches(n)
	for range count {
		start := time.Now()
		for range each {
			if err := c.Barrier(); err != nil {
				return err
			}
		}
		s.add(time.Since(start), each)
	}
	emit(s.times(Result{}, 1))
	return nil
}

// memoryOnce: every rank sends 8 bytes to every other by non-blocking sends, as
// memory_once in groups/loops/peers.c does; then all read their PSS before any leaves.
func memoryOnce(c *mpi.Comm, _ *Params, emit func(Result)) error {
	const tag = 1
	n := c.Size()
	in, out := make([]int64, n), make([]int64, n)
	var requests []mpi.Request
	for d := 1; d < n; d++ {
		requests = append(requests, mpi.Irecv(c, in[d:d+1], (c.Rank()+d)%n, tag))
	}
	for d := 1; d < n; d++ {
		requests = append(requests, mpi.Isend(c, out[d:d+1], (c.Rank()+d)%n, tag))
	}
	if err := mpi.WaitAll(requests...); err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	pss, err := pssKiB()
	if err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	all := make([]float64, c.Size())
	if err := mpi.Gather(c, []float64{pss}, all, 0); err != nil || c.Rank() != 0 {
		return err
	}
	var s samples
	for _, v := range all {
		s.add(time.Duration(v*1e3), 1)
	}
	emit(s.times(Result{}, 1))
	return nil
}

// pssKiB is the proportional set size of this process.
func pssKiB() (float64, error) {
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		return 0, fmt.Errorf("bench: memory-once needs Linux: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
			return strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
		}
	}
	return 0, fmt.Errorf("bench: /proc/self/smaps_rollup has no line Pss")
}

// idle: rank 1 waits in Recv while rank 0 sleeps.
func idle(c *mpi.Comm, p *Params, emit func(Result)) error {
	seconds := p.Seconds
	if seconds == 0 {
		seconds = 10
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	percent := []float64{0}
	if c.Rank() == 0 {
		time.Sleep(time.Duration(seconds) * time.Second)
		if err := mpi.Send(c, percent, 1, pingTag); err != nil {
			return err
		}
		if _, err := mpi.Recv(c, percent, 1, pingTag); err != nil {
			return err
		}
		emit(Result{Value: percent[0], Min: percent[0], P50: percent[0], P99: percent[0]})
		return nil
	}
	start := time.Now()
	before, _ := cputime.Used()
	if _, err := mpi.Recv(c, percent, 0, pingTag); err != nil {
		return err
	}
	after, _ := cputime.Used()
	percent[0] = 100 * float64(after-before) / float64(time.Since(start))
	return mpi.Send(c, percent, 0, pingTag)
}
