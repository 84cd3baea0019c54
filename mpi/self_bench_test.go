package mpi_test

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/rdma"
)

// BenchmarkSelf measures the CPU time of a message without the latency between two cores: a
// rank sends to itself.
func BenchmarkSelf(b *testing.B) {
	worlds, err := mpi.Local(1, nil)
	if err != nil {
		b.Fatal(err)
	}
	c := worlds[0].Comm()
	buf := make([]byte, 8)
	for b.Loop() {
		if err := mpi.Send(c, buf, 0, 1); err != nil {
			b.Fatal(err)
		}
		if _, err := mpi.Recv(c, buf, 0, 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSelfDevice is the same on the bare device.
func BenchmarkSelfDevice(b *testing.B) {
	worlds, err := mpi.Local(1, nil)
	if err != nil {
		b.Fatal(err)
	}
	dev, err := inspect.OpenDevice(worlds[0].Comm())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dev.Close() })
	cq, _ := dev.NewCQ(0)
	srq, _ := dev.NewSRQ(rdma.SRQConfig{Lend: true})
	qp, err := dev.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cq, RecvCQ: cq, SRQ: srq})
	if err != nil {
		b.Fatal(err)
	}
	peer, err := dev.Resolve(qp.Addr())
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 8)
	var wr [1]rdma.SendWR
	var comps [16]rdma.Completion
	for b.Loop() {
		wr[0] = rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: peer, Body: rdma.MemOf(buf)}
		qp.PostSend(wr[:])
		for cq.Poll(comps[:]) == 0 {
		}
		copy(buf, comps[0].Data.Bytes())
	}
}
