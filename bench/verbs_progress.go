package bench

// An RDMA Write into a peer that computes (P2 7, T1 3.6.2): whether it arrives although
// the peer makes no call. For each Write the leader sends a delay and a mark; the follower
// computes for that long and then looks for the mark in its memory, before it makes any
// call. It reports with the next step, whose delay is 0.

import (
	"fmt"
	"runtime"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

const (
	progressDelay = 5                    // times as long as the transfer
	progressSlack = 3 * time.Millisecond // until the leader learns that the follower has begun
	progressPage  = 4 << 10

	progressTimeout = 10 * time.Second
)

func leadProgress(s *VerbsSession, w wire, t *verbsTrial) ([]figure, error) {
	r, ok := w.(remoteWire)
	if !ok || r.lossy() || !r.device().Attr().Ops.Has(rdma.OpWrite) {
		return nil, fmt.Errorf("%w: RDMA Write", rdma.ErrUnsupported)
	}
	out := buffer(t.Size)
	polled, err := inBatches(t.Time/5, func(rounds int) error { return remoteOps(s, w, rdma.OpWrite, out, rounds, 1) }, 1)
	if err != nil {
		return nil, err
	}
	delay := progressDelay*polled + micros(progressSlack)
	var shares, times []float64
	complete, counts := 0, false
	// On a busy machine the leader may not run until the follower has almost finished
	// computing. Such a Write does not count, but the number of retries is bounded.
	for begin, i := time.Now(), 0; time.Since(begin) < t.Time || len(shares) < 3 && time.Since(begin) < progressTimeout; i++ {
		mark := byte(1 + i%250)
		for k := range pages(out) {
			first, last := page(out, k)
			*first, *last = mark, mark
		}
		report, err := s.step(0, 0) // result of the last Write
		if err != nil {
			return nil, err
		}
		if counts {
			shares = append(shares, report[0])
			complete += int(report[1])
		}
		asked := time.Now()
		if _, err := s.step(delay, float64(mark)); err != nil {
			return nil, err
		}
		start := time.Now()
		counts = start.Sub(asked) < progressSlack
		if err := remoteOps(s, w, rdma.OpWrite, out, 1, 1); err != nil {
			return nil, err
		}
		if counts {
			times = append(times, micros(time.Since(start))/polled)
		}
	}
	if len(shares) == 0 {
		return nil, fmt.Errorf("the machine is too busy: no Write could be begun within %v after the other process had begun to compute", progressSlack)
	}
	mean := 0.0
	for _, v := range shares {
		mean += v / float64(len(shares))
	}
	return []figure{
		{"progress", "%", 100 * mean, "write"},
		{"complete", "%", 100 * float64(complete) / float64(len(shares)), "write"},
		{"time", "ratio", Median(times), "write"},
	}, nil
}

func pages(mem []byte) int { return (len(mem) + progressPage - 1) / progressPage }

// page returns the first and the last byte of a page of a message.
func page(mem []byte, k int) (first, last *byte) {
	return &mem[k*progressPage], &mem[min((k+1)*progressPage, len(mem))-1]
}

func followProgress(s *VerbsSession, w wire, t *verbsTrial) error {
	r, ok := w.(remoteWire)
	if !ok {
		return fmt.Errorf("%w: RDMA Write", rdma.ErrUnsupported)
	}
	// The device's own thread needs a processor beside the computation.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	computation := newWork()
	var report []float64
	for {
		if err := pollUntilHalted(s, w); err != errHalted {
			return err
		}
		numbers, err := s.followStep(report...)
		if err != nil {
			return err
		}
		if len(numbers) != 2 {
			return fmt.Errorf("the other process sent %d numbers instead of a delay and a mark; are both of the same version?", len(numbers))
		}
		if numbers[0] == 0 {
			continue
		}
		computation.run(computation.iterations(numbers[0]))
		report = arrivalShares(r.memory(), byte(numbers[1]))
	}
}

// arrivalShares returns the share of pages that have arrived, and 1 if all have. It reads memory
// that is being written; the race is intended.
//
//go:norace
func arrivalShares(mem []byte, mark byte) []float64 {
	n := 0
	for at := 0; at < len(mem); at += progressPage {
		if mem[at] == mark && mem[min(at+progressPage, len(mem))-1] == mark {
			n++
		}
	}
	whole := 0.0
	if n == pages(mem) {
		whole = 1
	}
	return []float64{float64(n) / float64(pages(mem)), whole}
}
