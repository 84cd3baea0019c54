package bench

// What speculation costs where it brings nothing (T1 4.4.3). Four loops:
//
//   - plain: a ping-pong, where requests to send and offers to receive may cross;
//   - crossing: one where they always do: sender and receiver make their calls at
//     the same moment, so that every offer is wasted;
//   - cg: both ranks receive, send and wait with no computation between, the
//     pattern of NAS CG that gains nothing (T1 figure 4.18);
//   - wrong-guess: a ping-pong of short messages into long buffers, where the
//     receiver guesses wrong each time.
//
// The figures are to be compared with those of the same loops without speculation,
// in jobs that take turns: a job has one setting (muster bench rndv-overhead
// does that).

import (
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const (
	overheadTag = 17
	momentTag   = 18
	// lead is how far ahead the moment is set: longer than the message that tells
	// it takes.
	lead = 3 * time.Microsecond
	// longBuffer makes a receiver expect a rendezvous.
	longBuffer = 1 << 20
)

func rendezvousOverhead(c *mpi.Comm, p *Params, emit func(Result)) error {
	choices, err := mpi.Explain(c, 1-c.Rank())
	if err != nil {
		return err
	}
	for _, size := range p.Sizes {
		warmup, n := p.iterations(size, 10000, 200)
		plain, err := timedPingpong(c, size, size, warmup, n)
		if err != nil {
			return err
		}
		emit(middle(Result{Size: size, Metric: "plain", Unit: "us"}, plain))
		crossing, err := crossings(c, size, warmup, n)
		if err != nil {
			return err
		}
		if c.Rank() == 0 {
			emit(middle(Result{Size: size, Metric: "crossing", Unit: "us"}, crossing))
		}
		bothWays, err := timedBothWays(c, size, warmup, n)
		if err != nil {
			return err
		}
		emit(middle(Result{Size: size, Metric: "cg", Unit: "us"}, bothWays))
		if !eager(choices, size) {
			continue
		}
		guessed, err := timedPingpong(c, size, longBuffer, warmup, n)
		if err != nil {
			return err
		}
		emit(middle(Result{Size: size, Metric: "wrong-guess", Unit: "us"}, guessed))
	}
	return nil
}

// eager says whether messages of a size are sent without asking.
func eager(choices []mpi.Choice, size int) bool {
	for _, ch := range choices {
		if ch.Lo <= size && size <= ch.Hi {
			return ch.Protocol == "eager"
		}
	}
	return false
}

// timedPingpong gives half round trips in µs of messages into a buffer of another
// size.
func timedPingpong(c *mpi.Comm, size, buffer, warmup, n int) ([]float64, error) {
	sbuf, _ := buffers(size)
	_, rbuf := buffers(buffer)
	return timedBatches(warmup, n, 2, func(n int) error { return pingpong(c, sbuf, rbuf, overheadTag, n, false) })
}

// timedBothWays gives the time in µs of a message each way at once.
func timedBothWays(c *mpi.Comm, size, warmup, n int) ([]float64, error) {
	sbuf, rbuf := buffers(size)
	peer := 1 - c.Rank()
	return timedBatches(warmup, n, 1, func(n int) error {
		for range n {
			received := mpi.Irecv(c, rbuf, peer, overheadTag)
			if err := mpi.Send(c, sbuf, peer, overheadTag); err != nil {
				return err
			}
			if _, err := received.Wait(); err != nil {
				return err
			}
		}
		return nil
	})
}

// timedBatches gives the time in µs of a part of an iteration, one a batch.
func timedBatches(warmup, n, parts int, run func(n int) error) ([]float64, error) {
	if err := run(warmup); err != nil {
		return nil, err
	}
	var times []float64
	count, each := batches(n)
	for range count {
		start := time.Now()
		if err := run(each); err != nil {
			return nil, err
		}
		times = append(times, micros(time.Since(start))/float64(parts*each))
	}
	return times, nil
}

// crossings gives rank 0 the times in µs from the moment of both calls to the end of
// the receive. The clock is that of the host, so both ranks must be on one.
func crossings(c *mpi.Comm, size, warmup, n int) ([]float64, error) {
	sbuf, rbuf := buffers(size)
	moment := []int64{0}
	took := make([]float64, 0, n)
	for i := range warmup + n {
		if c.Rank() == 0 {
			moment[0] = time.Now().Add(lead).UnixNano()
			if err := mpi.Send(c, moment, 1, momentTag); err != nil {
				return nil, err
			}
		} else if _, err := mpi.Recv(c, moment, 0, momentTag); err != nil {
			return nil, err
		}
		for time.Now().UnixNano() < moment[0] {
		}
		if c.Rank() == i%2 { // they take turns as sender
			if _, err := mpi.Isend(c, sbuf, 1-c.Rank(), overheadTag).Wait(); err != nil {
				return nil, err
			}
			continue
		}
		if _, err := mpi.Irecv(c, rbuf, 1-c.Rank(), overheadTag).Wait(); err != nil {
			return nil, err
		}
		if i >= warmup {
			took = append(took, float64(time.Now().UnixNano()-moment[0])/1e3)
		}
	}
	if c.Rank() == 1 {
		return nil, mpi.Send(c, took, 0, tellTag)
	}
	// The other half is rank 1's.
	theirs := make([]float64, n)
	st, err := mpi.Recv(c, theirs, 1, tellTag)
	if err != nil {
		return nil, err
	}
	count, _ := mpi.Count[float64](st)
	return append(took, theirs[:count]...), nil
}
