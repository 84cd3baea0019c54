//go:build ofi && cgo && linux

package ofi

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Calls that bypass the scheduler must tolerate everything it does at any moment: garbage
// collections, preemption, a profiler's signals, threads starting and ending.
func TestShortCallsDuringGCAndProfiling(t *testing.T) {
	a, b := mustRank(t, Config{Provider: "net", Index: 0, Peers: 2, Job: "leap"}), mustRank(t, Config{Provider: "net", Index: 1, Peers: 2, Job: "leap"})
	there, err := a.meet(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(io.Discard); err == nil {
		defer pprof.StopCPUProfile()
	}
	stop := make(chan struct{})
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			var keep [][]byte
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				keep = append(keep, make([]byte, 10_000))
				if i%50 == 0 {
					runtime.GC()
					runtime.KeepAlive(keep)
					keep = nil
				}
				if i%7 == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	body := make([]byte, 4000)
	messages := 0
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); messages++ {
		binary.LittleEndian.PutUint64(body, uint64(messages))
		body[3999] = byte(messages)
		if err := a.post(rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: there, Body: rdma.MemOf(body)}); err != nil {
			t.Fatal(err)
		}
		c, err := b.next(a)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.Data.Bytes(), body) {
			t.Fatalf("message %d has other bytes", messages)
		}
	}
	close(stop)
	others.Wait()
	if messages < 100 {
		t.Errorf("only %d messages in two seconds", messages)
	}
	t.Logf("%d messages", messages)
}
