package bench

// The processor time of a message: user and system time of both ranks, all their threads.
// peers/loops/cpu.c has the same loop for other libraries.
//
// Libraries wait in different ways: some poll without pause, some yield, some sleep. None of
// that is work, so no rank waits here. Rank 0 sends a window of messages at the beginning
// of a period and sleeps; rank 1 wakes up in the middle of the period, when the messages
// have arrived, and receives them. Rank 0 completes its sends in the next period. Batches
// of periods alternate with batches that only sleep, whose time is subtracted.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
)

const (
	cpuPeriod  = 6 * time.Millisecond
	cpuWindow  = 16
	cpuBatches = 10
	cpuPeriods = 200 // of all batches with messages
	// cpuLate is how long a window may take to receive. If it takes longer, it had not
	// arrived, and the rank has waited.
	cpuLate = time.Millisecond
)

// cpuOfMessage: a stream of windows in which no rank waits.
func cpuOfMessage(c *mpi.Comm, p *Params, emit func(Result)) error {
	for _, size := range p.Sizes {
		l := cpuLoop{c: c, reqs: make([]mpi.Request, 0, cpuWindow)}
		l.out, l.in = buffers(size)
		samples, late, err := l.measure(p.Iterations)
		if err != nil {
			return err
		}
		r := middle(Result{Size: size}, samples)
		emit(r)
		emit(Result{Size: size, Metric: "late", Unit: "windows", Value: late, Min: late, P50: late, P99: late, Beside: true})
	}
	return nil
}

type cpuLoop struct {
	c       *mpi.Comm
	out, in []byte
	reqs    []mpi.Request
	next    time.Time // when this rank acts in the next period
	late    float64   // windows for which rank 1 has waited
}

// measure returns the time of a message in each batch, µs, and the number of windows that
// had not arrived in time.
func (l *cpuLoop) measure(periods int) (samples []float64, late float64, err error) {
	if periods == 0 {
		periods = cpuPeriods
	}
	each := max(periods/cpuBatches, 1)
	// Ranks on one machine, or on hosts whose clocks agree to a millisecond.
	begin, err := mpi.BcastValue(l.c, time.Now().Add(2*cpuPeriod).UnixNano(), 0)
	if err != nil {
		return nil, 0, err
	}
	l.next = time.Unix(0, begin).Add(time.Duration(l.c.Rank()) * cpuPeriod / 2)
	if _, err := l.batch(each, true); err != nil { // warms up
		return nil, 0, err
	}
	l.late = 0
	for range cpuBatches {
		idle, err := l.batch(each, false)
		if err != nil {
			return nil, 0, err
		}
		busy, err := l.batch(each, true)
		if err != nil {
			return nil, 0, err
		}
		samples = append(samples, micros(busy-idle)/float64(each*cpuWindow))
	}
	sums := append(samples, l.late)
	if err := mpi.Allreduce(l.c, sums, sums, mpi.Sum[float64]()); err != nil {
		return nil, 0, err
	}
	return sums[:cpuBatches], sums[cpuBatches], nil
}

// batch runs n periods and returns their processor time at this rank.
func (l *cpuLoop) batch(n int, messages bool) (time.Duration, error) {
	l.sleep()
	before, ok := cputime.Used()
	if !ok {
		return 0, fmt.Errorf("bench: cpu: this system does not report the processor time of a process")
	}
	for range n {
		if messages {
			if err := l.window(); err != nil {
				return 0, err
			}
		}
		l.sleep()
	}
	err := l.complete()
	after, _ := cputime.Used()
	return after - before, err
}

// window sends or receives one window.
func (l *cpuLoop) window() error {
	if l.c.Rank() == 0 {
		if err := l.complete(); err != nil {
			return err
		}
		for range cpuWindow {
			l.reqs = append(l.reqs, mpi.Isend(l.c, l.out, 1, streamTag))
		}
		return nil
	}
	start := time.Now()
	for range cpuWindow {
		l.reqs = append(l.reqs, mpi.Irecv(l.c, l.in, 0, streamTag))
	}
	err := l.complete()
	if time.Since(start) > cpuLate {
		l.late++
	}
	return err
}

func (l *cpuLoop) complete() error {
	err := mpi.WaitAllInto(l.reqs, nil)
	l.reqs = l.reqs[:0]
	return err
}

// sleep sleeps until this rank acts again. The time comes from the wall clock, which ranks
// share.
func (l *cpuLoop) sleep() {
	if d := time.Until(l.next); d > 0 {
		nap(d)
	}
	l.next = l.next.Add(cpuPeriod)
}
