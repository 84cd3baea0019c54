package dgram

import (
	"bytes"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// TestKeepCopies sends over a network that drops everything, calls Keep, overwrites the
// memory and repairs the network. The peer must receive the original bytes.
func TestKeepCopies(t *testing.T) {
	a, b := newTestNode(t, Config{NoThread: true}), newTestNode(t, Config{NoThread: true})
	to := a.resolve(t, b)
	a.disturb = byPacket(a, func(o *outbox) { o.n = 0 })
	body := bytes.Repeat([]byte{7}, 5000)
	if n, err := a.qp.PostSend([]rdma.SendWR{{ID: 1, Op: rdma.OpSend, Peer: to, Body: rdma.MemOf(body)}}); n != 1 {
		t.Fatal(err)
	}
	a.qp.(rdma.KeepingQP).Keep(to)
	a.qp.(rdma.KeepingQP).Keep(to + 1) // no such peer: no effect
	clear(body)
	a.disturb = nil
	var out [4]rdma.Completion
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		a.cq.Poll(out[:])
		for _, c := range out[:b.cq.Poll(out[:])] {
			if c.Op != rdma.OpRecv {
				continue
			}
			if !bytes.Equal(c.Data.Bytes(), bytes.Repeat([]byte{7}, 5000)) {
				t.Error("the message has bytes that were written after Keep")
			}
			return
		}
	}
	t.Fatal("the message did not arrive")
}
