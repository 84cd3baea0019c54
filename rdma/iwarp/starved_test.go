package iwarp

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The progress thread pauses while all that it could do is to receive messages for which
// the application has to return buffers, instead of spinning as long as it computes.
func TestThreadPausesWithoutBuffers(t *testing.T) {
	const messages = 3
	var qps [2]rdma.QP
	var cqs [2]rdma.CQ
	var devs [2]rdma.Device
	for i := range qps {
		devs[i] = open(t, Config{NoThread: true}) // the test does what the thread would
		cq, err := devs[i].NewCQ(16)
		srq, srqErr := devs[i].NewSRQ(rdma.SRQConfig{Lend: true, Depth: 1})
		if err = errors.Join(err, srqErr); err != nil {
			t.Fatal(err)
		}
		cqs[i] = cq
		if qps[i], err = devs[i].NewQP(rdma.QPConfig{Type: rdma.RC, SendCQ: cq, RecvCQ: cq, SRQ: srq}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var errs [2]error
	for i := range qps {
		wg.Go(func() { errs[i] = qps[i].Connect(ctx, qps[1-i].Addr()) })
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	for range messages {
		if _, err := qps[0].PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, Body: rdma.MemOf(make([]byte, 8))}}); err != nil {
			t.Fatal(err)
		}
	}
	out := make([]rdma.Completion, 4)
	b := devs[1].(*device)
	beside := func() time.Duration {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.progressBeside()
	}
	for beside() == 0 {
		if ctx.Err() != nil {
			t.Fatal("the thread would not pause although the only buffer is taken")
		}
		cqs[0].Poll(out)
		time.Sleep(time.Millisecond)
	}
	for got := 0; got < messages; {
		if ctx.Err() != nil {
			t.Fatalf("%d of %d messages arrived", got, messages)
		}
		for _, c := range out[:cqs[1].Poll(out)] {
			if c.Op == rdma.OpRecv {
				got++
			}
		}
		cqs[0].Poll(out)
	}
	if pause := beside(); pause != 0 {
		t.Errorf("the thread would pause for %v after all messages have arrived", pause)
	}
}
