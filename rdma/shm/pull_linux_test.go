package shm

import (
	"fmt"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// playPull times copies of live data from rank 1 to rank 0: by OpRead alone, and by OpPull
// with the owner's OpPush running concurrently. It prints both, in ns.
func playPull(r *rank, p *part) error {
	for _, size := range p.Sizes {
		mem := pattern(1, size)
		mr, err := r.dev.Register(mem, rdma.RemoteRead|rdma.Cooperative)
		if err != nil {
			return err
		}
		if err := r.describe(1-p.Index, mr); err != nil {
			return err
		}
		there, err := r.described()
		if err != nil {
			return err
		}
		for _, op := range []rdma.Op{rdma.OpRead, rdma.OpPull} {
			best := time.Duration(1 << 62)
			for round := range p.Count {
				if p.Index == 1 {
					for i := 0; i < len(mem); i += 64 {
						mem[i] = byte(round) // live data: it is in the owner's cache
					}
					if err := r.send(0, nil); err != nil {
						return err
					}
					if op == rdma.OpPull {
						if _, err := r.do(rdma.SendWR{Op: rdma.OpPush, Peer: 0, RKey: mr.RKey, Body: rdma.MemOf(mem)}); err != nil {
							return err
						}
					}
					if _, err := r.message(); err != nil {
						return err
					}
					continue
				}
				if _, err := r.message(); err != nil {
					return err
				}
				begin := time.Now()
				if _, err := r.do(rdma.SendWR{Op: op, Peer: 1, Remote: there.Base, RKey: there.RKey, Body: rdma.MemOf(mem)}); err != nil {
					return err
				}
				best = min(best, time.Since(begin))
				if mem[0] != byte(round) {
					return fmt.Errorf("%v of %d bytes, round %d: stale data", op, size, round)
				}
				if err := r.send(1, nil); err != nil {
					return err
				}
			}
			if p.Index == 0 {
				fmt.Printf("%d %d\n", size, best.Nanoseconds())
			}
		}
	}
	fmt.Println("end")
	return nil
}

func BenchmarkReadAndPull(b *testing.B) {
	sizes := []int{64 << 10, 128 << 10, 256 << 10, 1 << 20, 4 << 20}
	c := start(b, part{Scenario: "pull", N: 2, Sizes: sizes, Count: 300}, true)
	for _, size := range sizes {
		for _, name := range []string{"read", "pull"} {
			var got int
			var ns float64
			if _, err := fmt.Sscan(c.line(0), &got, &ns); err != nil || got != size {
				b.Fatalf("%v; size %d instead of %d", err, got, size)
			}
			b.ReportMetric(ns/1000, fmt.Sprintf("µs-%s/%dK", name, size>>10))
		}
	}
	c.finish(30 * time.Second)
	b.ReportMetric(0, "ns/op")
}
