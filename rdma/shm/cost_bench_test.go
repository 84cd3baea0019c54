package shm

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// The cost of calls without another core. Rank 0 of one process sends to itself.

func BenchmarkPublish(b *testing.B) {
	line := make([]word, 8)
	b.Run("plain", func(b *testing.B) {
		for i := range b.N {
			line[0].Publish(uint64(i))
		}
	})
	b.Run("fenced", func(b *testing.B) {
		for i := range b.N {
			line[0].PublishFenced(uint64(i))
		}
	})
}

func BenchmarkPollIdle(b *testing.B) {
	r := heapRanks(b, 2, Config{})[0]
	for b.Loop() {
		r.cq.Poll(r.out)
	}
}

func BenchmarkSendAndPoll(b *testing.B) {
	for _, size := range []int{8, 1024} {
		for _, fenced := range []bool{false, true} {
			name := map[int]string{8: "8B", 1024: "1KB"}[size] + map[bool]string{false: "-plain", true: "-fenced"}[fenced]
			b.Run(name, func(b *testing.B) {
				r := heapRanks(b, 1, Config{})[0]
				r.dev.fences.unneeded.Store(true)
				r.dev.peers.Get(int(0)).fenced = fenced
				wrs := []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: 24, Body: rdma.MemOf(make([]byte, size))}}
				for b.Loop() {
					if n, err := r.qp.PostSend(wrs); n != 1 {
						b.Fatal(err)
					}
					r.cq.Poll(r.out)
				}
			})
		}
	}
}

func BenchmarkRegister(b *testing.B) {
	r := heapRanks(b, 1, Config{})[0]
	mem := make([]byte, 4096)
	for b.Loop() {
		mr, err := r.dev.Register(mem, rdma.Cooperative)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.dev.Deregister(mr); err != nil {
			b.Fatal(err)
		}
	}
}
