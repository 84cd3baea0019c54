//go:build !muster_portable

package iwarp

import (
	"errors"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// TestPeerThatGuessesKeys: a refused access ends a connection, and the peer connects
// again. After the allowed number it is reported and not connected any more; late accesses
// do not count.
func TestPeerThatGuessesKeys(t *testing.T) {
	cfg := Config{Key: []byte("the key of the test")}
	victim, guesser := newEnd(t, cfg), newEnd(t, cfg)
	mem := make([]byte, 64)
	mr, err := victim.dev.Register(mem, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	// attempt connects two new queue pairs and makes one access. It returns whether the
	// victim has reported the peer, and the error of the connection.
	attempt := func(op rdma.Op, remote, key uint64) (reported bool, connected error) {
		victim.cq, victim.qp = victim.pair()
		guesser.cq, guesser.qp = guesser.pair()
		victim.ended, guesser.got = nil, nil
		defer func() {
			if err := errors.Join(victim.qp.Close(), guesser.qp.Close()); err != nil {
				t.Error(err)
			}
		}()
		if err := errors.Join(join(victim.qp, guesser.qp, 3*time.Second)); err != nil {
			return false, err
		}
		wr := []rdma.SendWR{{ID: 1, Op: op, Body: rdma.MemOf([]byte{7}), Remote: remote, RKey: key}}
		if _, err := guesser.qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
		pollUntil(t, "the access ends", func() bool { return len(guesser.got) > 0 }, victim, guesser)
		victim.poll() // it has reported the peer before it refused the access
		for _, c := range victim.ended {
			reported = reported || c.Status == rdma.StatusRemoteAccess
		}
		return reported, nil
	}
	for range guard.MaxStrikes + 4 {
		ended, err := victim.dev.Register(make([]byte, 8), rdma.RemoteWrite)
		if err == nil {
			err = victim.dev.Deregister(ended)
		}
		if err != nil {
			t.Fatal(err)
		}
		if reported, err := attempt(rdma.OpWrite, ended.Base, ended.RKey); reported || err != nil {
			t.Fatalf("a write after Deregister counts as a guess, or: %v", err)
		}
	}
	for i := uint64(1); ; i++ {
		op := rdma.OpWrite
		if i%2 == 0 {
			op = rdma.OpRead
		}
		reported, err := attempt(op, mr.Base, mr.RKey^i)
		if err != nil || reported != (i == guard.MaxStrikes) {
			t.Fatalf("after guess %d the peer is reported: %v, %v", i, reported, err)
		}
		if reported {
			break
		}
	}
	if _, err := attempt(rdma.OpWrite, mr.Base, mr.RKey); err == nil || mem[0] != 0 {
		t.Errorf("a peer that has guessed too often is connected again, and writes %d", mem[0])
	}
}
