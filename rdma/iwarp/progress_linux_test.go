//go:build !muster_portable

package iwarp

import (
	"bytes"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Peers can write to and read from a rank that computes and never calls the library (T1
// 3.6.2): the progress thread serves them.

// spareCores lets the progress thread run beside a goroutine that computes and one that
// polls.
func spareCores(tb testing.TB) {
	if before := runtime.GOMAXPROCS(0); before < 4 {
		runtime.GOMAXPROCS(4)
		tb.Cleanup(func() { runtime.GOMAXPROCS(before) })
	}
}

// computing runs a loop without any call until end is called.
func computing() (end func() uint64) {
	var over atomic.Bool
	result := make(chan uint64)
	go func() {
		x := uint64(1)
		for !over.Load() {
			for range 1000 {
				x = x*6364136223846793005 + 1442695040888963407
			}
		}
		result <- x
	}()
	return func() uint64 { over.Store(true); return <-result }
}

func TestComputingPeerIsReached(t *testing.T) {
	for name, cfg := range speedConfigs() {
		t.Run(name, func(t *testing.T) { reachWhileComputing(t, cfg) })
	}
}

func reachWhileComputing(t *testing.T, cfg Config) {
	spareCores(t)
	a, b := newPair(t, cfg)
	there := make([]byte, 1<<20)
	mr, err := b.dev.Register(there, rdma.RemoteWrite|rdma.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	data, back := someBytes(len(there)), make([]byte, len(there))
	end := computing()
	defer end()
	for _, wr := range []rdma.SendWR{
		{ID: 1, Op: rdma.OpWrite, Body: rdma.MemOf(data), Remote: mr.Base, RKey: mr.RKey},
		{ID: 2, Op: rdma.OpRead, Body: rdma.MemOf(back), Remote: mr.Base, RKey: mr.RKey},
	} {
		a.got = nil
		if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		for deadline := time.Now().Add(20 * time.Second); len(a.got) == 0; a.poll() {
			if time.Now().After(deadline) {
				t.Fatalf("a %v into a peer that computes has not completed for 20 s", wr.Op)
			}
		}
		if c := a.got[0]; c.ID != wr.ID || c.Status != rdma.StatusOK {
			t.Fatalf("a %v into a peer that computes completes as %+v", wr.Op, c)
		}
	}
	if !bytes.Equal(back, data) {
		t.Error("the data read back differs from the data written")
	}
}

// BenchmarkProgressWhileThePeerComputes writes a megabyte to a peer that computes for five
// times as long as the transfer takes: progress is the share of the transfers that are
// complete by then. Either the peer never polls, or it has polled a moment ago.
func BenchmarkProgressWhileThePeerComputes(b *testing.B) {
	for name, polls := range map[string]int{"never-polls": 0, "has-just-polled": 100} {
		b.Run(name, func(b *testing.B) { measureProgress(b, polls) })
	}
}

func measureProgress(b *testing.B, polls int) {
	spareCores(b)
	near, far := newPair(b, Config{})
	mr, err := far.dev.Register(make([]byte, 1<<20), rdma.RemoteWrite)
	if err != nil {
		b.Fatal(err)
	}
	wr := []rdma.SendWR{{Op: rdma.OpWrite, Body: rdma.MemOf(make([]byte, 1<<20)), Remote: mr.Base, RKey: mr.RKey}}
	out := make([]rdma.Completion, 4)
	transfer := func(beside func()) time.Duration {
		begun := time.Now()
		if n, err := near.qp.PostSend(wr); n != 1 {
			b.Fatal(err)
		}
		for near.cq.Poll(out) == 0 {
			beside()
		}
		return time.Since(begun)
	}
	serve := func() { far.cq.Poll(nil) }
	usual := transfer(serve)
	for range 20 {
		usual = min(usual, transfer(serve))
	}
	transfer(func() {}) // until the progress thread has taken over
	inTime, n := 0, max(b.N, 50)
	var all []time.Duration
	for range n {
		for range polls {
			serve()
		}
		took := transfer(func() {})
		if took < 5*usual {
			inTime++
		}
		all = append(all, took)
	}
	slices.Sort(all)
	b.ReportMetric(100*float64(inTime)/float64(n), "%progress")
	b.ReportMetric(float64(all[n/10].Microseconds()), "us-best-tenth")
	b.ReportMetric(float64(all[n/2].Microseconds()), "us-median")
	b.ReportMetric(float64(usual.Microseconds()), "us-while-polling")
	b.ReportMetric(0, "ns/op")
}
