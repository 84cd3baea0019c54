//go:build ofi && cgo && linux

package ofi

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Half the round-trip time between two processes, each on its own core, including the
// copies that a user of the device makes; and the time of a Read.
func BenchmarkPingPong(b *testing.B) {
	provider := os.Getenv("PROVIDER")
	if provider == "" {
		provider = "net"
	}
	c := start(b, "echo", "PROVIDER="+provider)
	r, err := openRank(Config{Provider: provider, Job: "echo", Index: 0, Peers: 2})
	if err != nil {
		b.Fatal(err)
	}
	defer r.dev.Close()
	var addr string
	var base, rkey uint64
	if _, err := fmt.Sscan(c.line(b), &addr, &base, &rkey); err != nil {
		b.Fatal(err)
	}
	peer, err := r.dev.Resolve(rdma.Addr(addr))
	if err != nil {
		b.Fatal(err)
	}
	fmt.Fprintln(c.in, r.qp.Addr())
	memory := make([]byte, 1<<20)
	roundTrip := func(size int) {
		wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: peer, HeadLen: 24, Body: rdma.MemOf(memory[:size])}
		if err := r.post(wr); err != nil {
			b.Fatal(err)
		}
		for {
			if n := r.cq.Poll(r.out); n > 0 {
				copy(memory, r.out[0].Data.Bytes()[24:])
				return
			}
		}
	}
	for _, size := range []int{8, 1 << 10, 8 << 10, 16 << 10} {
		if size+24 > r.dev.Attr().MaxSend {
			continue
		}
		b.Run(fmt.Sprintf("message/%d", size), func(b *testing.B) {
			bind(0)
			for range 200 {
				roundTrip(size)
			}
			begin := time.Now()
			for b.Loop() {
				roundTrip(size)
			}
			b.ReportMetric(float64(time.Since(begin).Nanoseconds())/1e3/2/float64(b.N), "µs/half")
		})
	}
	for _, size := range []int{8, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("read/%d", size), func(b *testing.B) {
			bind(0)
			b.SetBytes(int64(size))
			for b.Loop() {
				wr := rdma.SendWR{Op: rdma.OpRead, Peer: peer, Body: rdma.MemOf(memory[:size]), Remote: base, RKey: rkey}
				if err := r.post(wr); err != nil {
					b.Fatal(err)
				}
				for r.cq.Poll(r.out) == 0 {
				}
				if r.out[0].Status != rdma.StatusOK {
					b.Fatal(r.out[0].Status)
				}
			}
		})
	}
	if err := r.send(peer, 0, "x"); err != nil {
		b.Fatal(err)
	}
	for end := time.Now().Add(time.Second); time.Now().Before(end) && c.cmd.ProcessState == nil; {
		r.cq.Poll(r.out)
		time.Sleep(time.Millisecond) // the child process ends
	}
}
