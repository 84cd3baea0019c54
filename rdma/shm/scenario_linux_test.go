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
}

// playPingPong bounces messages of each size and prints the time of half a round
// trip in ns. It is also the benchmark of the device.
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
		best := time.Duration(1 << 62)
		for range 5 {
			begin := time.Now()
			for range p.Count {
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
			return fmt.Errorf("%d bytes came back changed", size)
		}
		if p.Index == 0 {
			fmt.Printf("%d %.1f\n", size, float64(best.Nanoseconds())/float64(2*p.Count))
		}
	}
	fmt.Println("end")
	return nil
}

// playStream sends Count messages of each size one way and prints ns per message.
func playStream(r *rank, p *part) error {
	other := rdma.PeerID(1 - p.Index)
	out := make([]rdma.Completion, 32)
	for _, size := range p.Sizes {
		body := pattern(size, size)
		to := make([]byte, size)
		wrs := []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, Peer: other, Body: rdma.MemOf(body)}}
		begin := time.Now()
		if p.Index == 0 {
			for range p.Count {
				for {
					if _, err := r.qp.PostSend(wrs); err == nil {
						break
					}
				}
			}
			for r.cq.Poll(out) == 0 {
			}
			fmt.Printf("%d %.1f\n", size, float64(time.Since(begin).Nanoseconds())/float64(p.Count))
		} else {
			for n := 0; n < p.Count; {
				k := r.cq.Poll(out)
				for _, c := range out[:k] {
					copy(to, c.Data.Bytes())
				}
				n += k
			}
			wrs[0].Body = rdma.Mem{}
			for {
				if _, err := r.qp.PostSend(wrs); err == nil {
					break
				}
			}
		}
	}
	fmt.Println("end")
	return nil
}

func TestPingPongBetweenProcesses(t *testing.T) {
	c := start(t, part{Scenario: "pingpong", N: 2, Sizes: sizes, Count: 50}, false)
	c.finish(30 * time.Second)
}

func BenchmarkPingPong(b *testing.B) {
	c := start(b, part{Scenario: "pingpong", N: 2, Sizes: []int{8, 64, 1024, 8192, 32768}, Count: 20000}, true)
	for range 5 {
		var size, ns float64
		fmt.Sscan(c.line(0), &size, &ns)
		b.ReportMetric(ns, fmt.Sprintf("ns/%.0fB", size))
	}
	c.finish(30 * time.Second)
	b.ReportMetric(0, "ns/op")
}

func BenchmarkStream(b *testing.B) {
	c := start(b, part{Scenario: "stream", N: 2, Sizes: []int{8, 64, 1024, 8192, 32768}, Count: 100000}, true)
	for range 5 {
		var size, ns float64
		fmt.Sscan(c.line(0), &size, &ns)
		b.ReportMetric(ns, fmt.Sprintf("ns/%.0fB", size))
	}
	c.finish(30 * time.Second)
	b.ReportMetric(0, "ns/op")
}
