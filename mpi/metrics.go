package mpi

// The counters of a running job, for muster run --metrics. Each rank copies some of its
// counters to the board of its host at intervals, where the launcher reads them. Ranks
// count anyway, and nothing is added to the path of a message.

import (
	"sync"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
)

// startMetrics publishes the counters at intervals until the returned function is called,
// which publishes them a last time. It may be called twice.
func (w *World) startMetrics(every time.Duration) (stop func()) {
	board := w.client.Board()
	if every == 0 || board == nil {
		return func() {}
	}
	rank := w.client.Rank()
	board.SetMetrics(rank, w.metrics())
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-quit:
				return
			case <-t.C:
				board.SetMetrics(rank, w.metrics())
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(quit)
		<-ended
		board.SetMetrics(rank, w.metrics())
	})
}

func (w *World) metrics() pmi.Metrics {
	c := w.counters(w.e.Sample())
	return pmi.Metrics{
		MessagesSent: c.Of(prof.MessagesSent), MessagesReceived: c.Of(prof.MessagesReceived),
		BytesSent: c.Of(prof.BytesSent), BytesReceived: c.Of(prof.BytesReceived),
		Waiting:       c.Of(prof.TimeWaiting),
		Retransmitted: c.Of(prof.Name(rdma.DatagramsRetransmitted)) + c.Of(prof.Name(rdma.SegmentsRetransmitted)),
		Memory:        c.Of(prof.MemoryTotal),
	}
}
