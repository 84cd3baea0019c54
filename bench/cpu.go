package bench

// The processor time of a message: user and system time of both ranks, all their threads.
// groups/loops/cpu.c has the same loop for other libraries.
//
// Libraries wait in different ways: some poll without pause, some yield, some sleep. None of
// that is work, so no rank waits here. Rank 0 sends a window of messages at the beginning
// of a period and sleeps; rank 1 wakes up in the middle of the period, when the messages
// have arrived, and receives them. Rank 0 completes its sends in the next period. Batches
// of periods alternate with batches of one message a period, whose time is subtracted:
// waking up is not work either. The median period of a batch counts, because a rank that
// wakes up late makes the other wait.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
)

func cpuBenchmarks() []Benchmark {
	return []Benchmark{{Name: "cpu", Title: "Processor Time of a Message", Doc: "processor time of sender and receiver for a message of a paced stream, in which both sleep most of the time", Ranks: 2,
		Sizes: []int{8 << 10}, Metric: "cpu", Unit: "us", Column: "CPU (us)", Run: cpuOfMessage}}
}

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
		emit(single(size, "late", "windows", late))
	}
	return nil
}

type cpuLoop struct {
	c       *mpi.Comm
	out, in []byte
	reqs    []mpi.Request
	next    time.Time // when this rank acts in the next period
	late    float64   // windows for which rank 1 has waited
	used    []float64 // processor time of each period of a batch, µs
}

// measure returns the time of a message in each batch, µs, and the number of windows that
// had not arrived in time.
func (l *cpuLoop) measure(periods int) (samples []float64, late float64, err error) {
	if periods == 0 {
		periods = cpuPeriods
	}
	each := max(periods/cpuBatches, 1)
	l.used = make([]float64, each)
	// Ranks on one machine, or on hosts whose clocks agree to a millisecond.
	begin, err := mpi.BcastValue(l.c, time.Now().Add(2*cpuPeriod).UnixNano(), 0)
	if err != nil {
		return nil, 0, err
	}
	l.next = time.Unix(0, begin).Add(time.Duration(l.c.Rank()) * cpuPeriod / 2)
	l.sleep()
	if _, err := l.batch(each, cpuWindow); err != nil { // warms up
		return nil, 0, err
	}
	l.late = 0
	for range cpuBatches {
		lone, err := l.batch(each, 1)
		if err != nil {
			return nil, 0, err
		}
		full, err := l.batch(each, cpuWindow)
		if err != nil {
			return nil, 0, err
		}
		samples = append(samples, (full-lone)/(cpuWindow-1))
	}
	if err := l.complete(); err != nil {
		return nil, 0, err
	}
	sums := append(samples, l.late)
	if err := mpi.Allreduce(l.c, sums, sums, mpi.Sum); err != nil {
		return nil, 0, err
	}
	return sums[:cpuBatches], sums[cpuBatches], nil
}

// batch runs n periods with a window of messages and returns the processor time of the
// median one at this rank, µs. One more comes first, in which rank 0 completes the last
// window of the batch before.
func (l *cpuLoop) batch(n, messages int) (float64, error) {
	for i := -1; i < n; i++ {
		before, ok := cputime.Used()
		if !ok {
			return 0, fmt.Errorf("bench: cpu: this system does not report the processor time of a process")
		}
		if err := l.window(messages); err != nil {
			return 0, err
		}
		l.sleep()
		if after, _ := cputime.Used(); i >= 0 {
			l.used[i] = micros(after - before)
		}
	}
	return Median(l.used), nil
}

// window sends or receives one window.
func (l *cpuLoop) window(n int) error {
	if l.c.Rank() == 0 {
		if err := l.complete(); err != nil {
			return err
		}
		for range n {
			l.reqs = append(l.reqs, mpi.Isend(l.c, l.out, 1, streamTag))
		}
		return nil
	}
	start := time.Now()
	for range n {
		l.reqs = append(l.reqs, mpi.Irecv(l.c, l.in, 0, streamTag))
	}
	err := l.complete()
	if time.Since(start) > cpuLate {
		l.late++
	}
	return err
}

func (l *cpuLoop) complete() error {
	err := mpi.WaitAll(l.reqs...)
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
