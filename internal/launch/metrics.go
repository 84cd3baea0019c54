package launch

// The counters of a running job. Ranks write them to the boards (MUSTER_METRICS), and the
// launcher collects them together with the rows of the stuck report, from its own board or
// from the agents.

import (
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// RankMetrics describes a rank at one time.
type RankMetrics struct {
	Rank int
	Host string
	Read time.Time // when the launcher collected this
	// Running reports whether its process runs.
	Running bool
	// Joined reports whether Counters are known: the rank uses Muster and has started.
	Joined   bool
	Counters pmi.Metrics
	// Call is the call in which the rank waits, since Since; "" if it does not wait.
	Call  string
	Since time.Duration
	// CPU and Resident are the CPU time and the resident memory of the process, in
	// bytes; 0: unknown.
	CPU      time.Duration
	Resident int64
}

// lastMetrics are the counters that were collected last. Collecting stops the job's loop,
// for rowsTimeout if a host does not answer, so clients that ask often get the same again.
type lastMetrics struct {
	ranks []RankMetrics
	until time.Time
}

const (
	// metricsAge is how long counters are served. Ranks update them once a second.
	metricsAge = time.Second
	// metricsShare is the part of the loop's time that collecting may take.
	metricsShare = 5
)

// metrics returns the counters of all ranks. It runs in the job's loop.
func (j *job) metrics() []RankMetrics {
	began := time.Now()
	if began.After(j.lastMetrics.until) {
		j.lastMetrics.ranks = j.readMetrics()
		now := time.Now()
		j.lastMetrics.until = now.Add(max(metricsAge, metricsShare*now.Sub(began)))
	}
	return j.lastMetrics.ranks
}

func (j *job) readMetrics() []RankMetrics {
	rows, _ := j.backend.rows(false)
	out, now := make([]RankMetrics, len(rows)), time.Now()
	for i, r := range rows {
		out[i] = RankMetrics{
			Rank: r.Rank, Host: j.backend.host(r.Rank), Read: now, Running: j.ranks.all[r.Rank].alive,
			Joined: r.counted, Counters: r.counters, CPU: r.process.cpu, Resident: r.resident,
		}
		if out[i].Running && r.State == pmi.RowWaiting {
			out[i].Call = r.Wait.Op
			out[i].Since = max(0, time.Duration(now.UnixNano()-r.Wait.Since))
		}
	}
	return out
}

// scrape asks the loop for the counters. It returns none when the job has ended.
func (j *job) scrape() []RankMetrics {
	answer := make(chan []RankMetrics, 1)
	select {
	case j.scrapes <- answer:
	case <-j.done:
		return nil
	}
	select {
	case m := <-answer:
		return m
	case <-j.done:
		return nil
	}
}
