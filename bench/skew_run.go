package bench

// Collectives whose ranks arrive at different times (T2 6.3.2, 6.5). One call:
//
//	Barrier, delay by the arrival pattern, arrival, the call, exit
//
// Arrivals and exits are recorded and evaluated after the loop, so that only the barrier
// is between two calls. A last barrier ends a series: without it, ranks that have left the
// last call would fill buffers for the next series on cores where others still communicate.
// Algorithms alternate call by call with the same delays; the one that begins changes.
//
// Arrivals of different ranks are compared, so they need one clock. The monotonic clock of
// a machine is shared, also by ranks in containers and network namespaces.
//
// In T2 a delayed rank computes. Where ranks share cores, the scheduler would then
// decide in which order they arrive, so a delayed rank sleeps instead.

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// SkewParams selects what is measured: every collective at every size under every pattern.
type SkewParams struct {
	Collectives []string
	Sizes       []int
	Patterns    []Pattern
	// Algorithms alternate; "" is the default of the library or its configuration.
	Algorithms []string
	// Message is the assumed time of a message, by size; nil: it is measured between
	// rank 0 and the last rank.
	Message []time.Duration
	// Calls of each algorithm; 0: as many as Budget allows, at least fewestCalls.
	Calls  int
	Budget time.Duration
	// Sleep makes a delayed rank sleep instead of compute.
	Sleep bool
}

const (
	fewestCalls, mostCalls = 5, 1000
	skewPings              = 30
	// shortestSleep: the kernel cannot sleep for less.
	shortestSleep = 100 * time.Microsecond
)

// Skew measures collectives under arrival patterns. It calls emit at rank 0.
func Skew(c *mpi.Comm, p *SkewParams, emit func(SkewFigure)) error {
	w := newWork()
	clock, err := commonClock(c)
	if err != nil {
		return err
	}
	for _, name := range p.Collectives {
		k, err := regularCollective(name)
		if err != nil {
			return err
		}
		comms, err := preferring(c, k, p.Algorithms)
		if err != nil {
			return err
		}
		for i, size := range p.Sizes {
			message, err := p.message(c, i)
			if err != nil {
				return err
			}
			for _, pattern := range p.Patterns {
				s := skewLoop{SkewParams: p, c: c, comms: comms, k: k, d: k.data(c, size), pattern: pattern, message: message, work: w, clock: clock}
				all, err := s.run()
				if err != nil {
					return err
				}
				for a, calls := range all {
					if c.Rank() != 0 {
						break
					}
					emit(figureOf(SkewFigure{Collective: name, Size: size, Pattern: pattern, Algorithm: p.Algorithms[a], Message: micros(message)}, calls, all[0]))
				}
			}
		}
		for _, d := range comms {
			if err := d.Free(); err != nil {
				return err
			}
		}
	}
	return nil
}

// commonClock returns the clock that all ranks share, or an error if they share none.
func commonClock(c *mpi.Comm) (*prof.Clock, error) {
	clock, shared, err := clockOf(c)
	if err == nil && !shared {
		err = errors.New("bench: coll compares when ranks arrive, and these ranks share no clock: run them on one Linux machine, for example on hosts of muster lab")
	}
	return clock, err
}

// clockOf returns a clock, and whether all ranks share it.
func clockOf(c *mpi.Comm) (clock *prof.Clock, shared bool, err error) {
	clock = prof.NewClock()
	domain, err := mpi.BcastValue(c, clock.Domain(), 0)
	if err != nil {
		return nil, false, err
	}
	same := []int64{0}
	if domain != "" && domain == clock.Domain() {
		same[0] = 1
	}
	all := []int64{0}
	if err := mpi.Allreduce(c, same, all, mpi.Min); err != nil {
		return nil, false, err
	}
	return clock, all[0] == 1 || c.Size() == 1, nil
}

func regularCollective(name string) (collective, error) {
	for _, k := range collectives() {
		if k.name == name && !k.irregular {
			return k, nil
		}
	}
	return collective{}, fmt.Errorf("bench: %q is no collective of bench coll; there are %v", name, SkewCollectives())
}

// preferring returns a communicator for each algorithm.
func preferring(c *mpi.Comm, k collective, algorithms []string) ([]*mpi.Comm, error) {
	var comms []*mpi.Comm
	for _, a := range algorithms {
		if a != "" {
			a = k.name + "=" + a
		}
		d, err := c.DupWithCollective(a)
		if err != nil {
			return nil, err
		}
		comms = append(comms, d)
	}
	return comms, nil
}

// message returns the time of a message of the i-th size: half a round trip between rank 0
// and the last rank.
func (p *SkewParams) message(c *mpi.Comm, i int) (time.Duration, error) {
	if p.Message != nil {
		return p.Message[min(i, len(p.Message)-1)], nil
	}
	var trips []float64
	b, last := make([]byte, p.Sizes[i]), c.Size()-1
	for n := 0; n < 2*skewPings && last > 0; n++ {
		start := time.Now()
		var err error
		switch c.Rank() {
		case 0:
			if err = mpi.Send(c, b, last, pingTag); err == nil {
				_, err = mpi.Recv(c, b, last, pingTag)
			}
		case last:
			if _, err = mpi.Recv(c, b, 0, pingTag); err == nil {
				err = mpi.Send(c, b, 0, pingTag)
			}
		}
		if err != nil {
			return 0, err
		}
		if n >= skewPings { // the others warmed up
			trips = append(trips, float64(time.Since(start)))
		}
	}
	half := int64(0)
	if len(trips) > 0 {
		half = int64(Median(trips) / 2)
	}
	half, err := mpi.BcastValue(c, half, 0)
	return time.Duration(half), err
}

// skewLoop makes the calls of one figure.
type skewLoop struct {
	*SkewParams
	c       *mpi.Comm
	comms   []*mpi.Comm // one for each algorithm
	k       collective
	d       *collectiveData
	pattern Pattern
	message time.Duration
	work    *work
	clock   *prof.Clock
}

// run returns at rank 0 the times of the calls of each algorithm.
func (s *skewLoop) run() ([][]callTimes, error) {
	n, err := s.calls()
	if err != nil {
		return nil, err
	}
	mine := make([][]moment, len(s.comms))
	for call := range n {
		for i := range s.comms {
			a := (i + call) % len(s.comms)
			m, err := s.callOnce(call, a)
			if err != nil {
				return nil, err
			}
			mine[a] = append(mine[a], m)
		}
	}
	if err := s.c.Barrier(); err != nil {
		return nil, err
	}
	times := make([][]callTimes, len(s.comms))
	for a := range times {
		all := make([]moment, n*s.c.Size())
		if err := mpi.Gather(s.c, mine[a], all, 0); err != nil {
			return nil, err
		}
		if s.c.Rank() != 0 {
			continue
		}
		row := make([]moment, s.c.Size())
		for call := range n {
			for r := range row {
				row[r] = all[r*n+call]
			}
			times[a] = append(times[a], timesOf(row))
		}
	}
	return times, nil
}

// calls returns the number of calls after the warm-up. Rank 0 decides.
func (s *skewLoop) calls() (int, error) {
	start := time.Now()
	for i := range fewestCalls {
		for a := range s.comms {
			if _, err := s.callOnce(mostCalls+i, a); err != nil {
				return 0, err
			}
		}
	}
	n := int64(s.Calls)
	if n == 0 {
		each := time.Since(start) / fewestCalls
		n = min(max(int64(s.Budget/max(each, 1)), fewestCalls), mostCalls)
	}
	n, err := mpi.BcastValue(s.c, n, 0)
	return int(n), err
}

// callOnce makes one call by one algorithm.
func (s *skewLoop) callOnce(call, algorithm int) (m moment, err error) {
	before, _ := cputime.Used()
	if err := s.c.Barrier(); err != nil {
		return m, err
	}
	s.stayAway(s.pattern.delay(call, s.c.Rank(), s.c.Size(), s.message))
	m.Arrival = s.clock.Now()
	err = s.k.call(s.comms[algorithm], s.d)
	m.Exit = s.clock.Now()
	after, _ := cputime.Used()
	m.CPU = int64(after - before)
	return m, err
}

func (s *skewLoop) stayAway(d time.Duration) {
	if s.Sleep && d >= shortestSleep {
		nap(d)
		return
	}
	s.work.run(s.work.iterations(micros(d)))
}
