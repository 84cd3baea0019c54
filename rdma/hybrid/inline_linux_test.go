package hybrid

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestLongInlineBodies sends many bodies inline to a peer that does not poll: PostSend
// returns ErrAgain for what it does not accept, accepted bodies arrive unchanged, and
// success generates no completion. No more are accepted than there is memory for copies, as
// nothing waits for their completion.
func TestLongInlineBodies(t *testing.T) {
	const copies = 2 << 20
	for _, c := range []Config{{}, {CountMessages: true, BusyAfter: 1}, {Strict: true}, {CountMessages: true, BusyAfter: 1, Strict: true}} {
		t.Run(fmt.Sprintf("at once %v strict %v", c.CountMessages, c.Strict), func(t *testing.T) {
			if c.Strict {
				rdmatest.NeedLocking(t)
			}
			c.NoThread = true // which would ack, and so release copies
			nodes := newNodes(t, 2, c)
			a, b := nodes[0], nodes[1]
			body := make([]byte, a.dev.attr.MaxInline)
			var wr [1]rdma.SendWR
			taken := 0
			for ; taken < 2*copies/len(body); taken++ {
				for i := range body {
					body[i] = byte(taken)
				}
				wr[0] = rdma.SendWR{ID: uint64(1000 + taken), Op: rdma.OpSend, Flags: rdma.Inline, Peer: a.peers[1], Body: rdma.MemOf(body)}
				k, err := a.qp.PostSend(wr[:])
				if wr[0].ID != uint64(1000+taken) || wr[0].Body.Len() != len(body) || wr[0].Flags != rdma.Inline {
					t.Fatalf("the request was changed: %+v", wr[0])
				}
				if k == 0 {
					if !errors.Is(err, rdma.ErrAgain) {
						t.Fatal(err)
					}
					break
				}
			}
			if taken*len(body) > copies || taken < 2 {
				t.Fatalf("%d bodies of %d bytes were accepted, there is memory for %d bytes", taken, len(body), copies)
			}
			came := 0
			until(t, "all accepted messages have arrived", nil, func() bool {
				for _, one := range b.out[:b.cq.Poll(b.out[:])] {
					if !bytes.Equal(one.Data.Bytes(), bytes.Repeat([]byte{byte(came)}, len(body))) {
						t.Fatalf("message %d is not what was sent", came)
					}
					came++
				}
				a.poll()
				return came == taken
			})
			if len(a.bad) > 0 {
				t.Errorf("a successful inline send generates a completion: %+v", a.bad[0])
			}
		})
	}
}

// TestFailedInlineBodyIsReported closes a queue pair with outstanding copies: each failure
// carries the ID of the user.
func TestFailedInlineBodyIsReported(t *testing.T) {
	nodes := newNodes(t, 2, Config{NoThread: true})
	a := nodes[0]
	body := make([]byte, a.dev.attr.MaxInline)
	for i := range 3 {
		wr := [1]rdma.SendWR{{ID: uint64(70 + i), Op: rdma.OpSend, Flags: rdma.Inline, Peer: a.peers[1], Body: rdma.MemOf(body)}}
		if k, err := a.qp.PostSend(wr[:]); k != 1 {
			t.Fatal(err)
		}
	}
	if err := a.qp.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "all failures are reported", nodes[:1], func() bool { return len(a.bad) == 3 })
	for i, c := range a.bad {
		if c.Status != rdma.StatusFlushed || c.ID != uint64(70+i) {
			t.Errorf("completion %d is %+v", i, c)
		}
	}
}
