package shm

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

var scenarios = map[string]func(*rank, *part) error{
	"pingpong": playPingPong,
	"stream":   playStream,
	"floor":    playFloor,
	"flood":    playFlood,
	"sleepers": playSleepers,
	"alltoall": playAllToAll,
	"killed":   playKilled,
	"copies":   playCopies,
	"pull":     playPull,
}

// stretch is the number of round trips that are timed together.
const stretch = 50

// playPingPong bounces messages of each size and prints half the round-trip time in ns. It
// is also the benchmark of the device.
func playPingPong(r *rank, p *part) error {
	other := rdma.PeerID(1 - p.Index)
	out := make([]rdma.Completion, 1)
	for _, size := range p.Sizes {
		body := pattern(size, size)
		wrs := []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, Peer: other, Body: rdma.MemOf(body)}}
		got := 0
		recv := func() error {
			for spins := 0; r.cq.Poll(out) == 0; spins++ {
				if spins > 1e9 {
					return fmt.Errorf("no answer of %d bytes", size)
				}
			}
			got = copy(body, out[0].Data.Bytes())
			return nil
		}
		send := func() error {
			for {
				_, err := r.qp.PostSend(wrs)
				if !errors.Is(err, rdma.ErrAgain) {
					return err
				}
				r.cq.Poll(nil)
			}
		}
		// The fastest of many short stretches: the machine has other users.
		best := time.Duration(1 << 62)
		for range p.Count / stretch {
			begin := time.Now()
			for range stretch {
				if p.Index == 0 {
					if err := errors.Join(send(), recv()); err != nil {
						return err
					}
				} else if err := errors.Join(recv(), send()); err != nil {
					return err
				}
			}
			best = min(best, time.Since(begin))
		}
		if got != size || !bytes.Equal(body, pattern(size, size)) {
			return fmt.Errorf("%d bytes were returned changed", size)
		}
		if p.Index == 0 {
			fmt.Printf("%d %.1f\n", size, float64(best.Nanoseconds())/float64(2*stretch))
		}
	}
	fmt.Println("end")
	return nil
}

// train is the number of messages of a stream that are timed together: many times what the
// ring holds.
const train = 5000

// playStream sends Count messages of each size one way and prints the time of one in ns,
// in the fastest train.
func playStream(r *rank, p *part) error {
	other := rdma.PeerID(1 - p.Index)
	out := make([]rdma.Completion, 32)
	for _, size := range p.Sizes {
		body, to := pattern(size, size), make([]byte, size)
		wrs := []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, Peer: other, Body: rdma.MemOf(body)}}
		best := time.Duration(1 << 62)
		for n, limit := 0, train; limit <= p.Count; limit += train {
			begin := time.Now()
			for n < limit {
				if p.Index == 0 {
					k, err := r.qp.PostSend(wrs)
					if err != nil && !errors.Is(err, rdma.ErrAgain) {
						return err
					}
					n += k
					continue
				}
				k := r.cq.Poll(out)
				for _, c := range out[:k] {
					copy(to, c.Data.Bytes())
				}
				n += k
			}
			best = min(best, time.Since(begin))
		}
		if p.Index == 1 && !bytes.Equal(to, body) {
			return fmt.Errorf("%d bytes arrived changed", size)
		}
		if p.Index == 0 {
			fmt.Printf("%d %.1f\n", size, float64(best.Nanoseconds())/train)
			for r.cq.Poll(out) == 0 {
			}
		} else if err := r.send(0, nil); err != nil {
			return err
		}
	}
	fmt.Println("end")
	return nil
}

func TestPingPongBetweenProcesses(t *testing.T) {
	c := start(t, part{Scenario: "pingpong", N: 2, Sizes: sizes, Count: 50}, false)
	c.finish(30 * time.Second)
}

// measure runs a scenario with two ranks, one core each, and reports what it prints.
func measure(b *testing.B, p part, unit string) {
	b.Helper()
	p.N = 2
	c := start(b, p, true)
	for range max(len(p.Sizes), 1) {
		var size, ns float64
		if _, err := fmt.Sscan(c.line(0), &size, &ns); err != nil {
			b.Fatal(err)
		}
		if size == 0 {
			b.ReportMetric(ns, unit)
		} else {
			b.ReportMetric(ns, fmt.Sprintf("%s/%.0fB", unit, size))
		}
	}
	c.finish(30 * time.Second)
	b.ReportMetric(0, "ns/op")
}

// The floor first: only ratios to it, measured in the same run, are meaningful.

func BenchmarkFloor(b *testing.B) { measure(b, part{Scenario: "floor", Count: 20000}, "ns") }

func BenchmarkPingPong(b *testing.B) {
	measure(b, part{Scenario: "pingpong", Sizes: []int{8, 64, 1024, 8192, 32768}, Count: 20000}, "ns")
}

func BenchmarkStream(b *testing.B) {
	measure(b, part{Scenario: "stream", Sizes: []int{8, 64, 1024, 8192, 32768}, Count: 100000}, "ns")
}
