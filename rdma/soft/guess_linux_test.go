package soft

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

func TestKeyGuessing(t *testing.T) {
	rdmatest.RunGuesses(t, guard.MaxStrikes, func(t testing.TB, n int) (list []rdma.Device) {
		for i := range n {
			list = append(list, openTest(t, Config{Name: uint32(i)}))
		}
		return list
	})
}

// TestKeyGuessingUnderNewNames: a process with the job's key can use a new name for
// every guess, so peers that were not resolved share their strikes.
func TestKeyGuessingUnderNewNames(t *testing.T) {
	victim := newTestNode(t, Config{})
	mem := make([]byte, 64)
	reg, err := victim.Register(mem, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	write := func(key uint64) {
		s := newTestNode(t, Config{})
		s.qp.PostSend([]rdma.SendWR{{ID: 7, Op: rdma.OpWrite, Peer: s.resolve(t, victim), Body: rdma.MemOf([]byte{1}), Remote: reg.Base, RKey: key}})
		for {
			var out [4]rdma.Completion
			for _, c := range out[:victim.cq.Poll(out[:])] {
				if c.Op == rdma.OpDisconnected {
					return // it gets no response
				}
			}
			if s.cq.Poll(out[:]) > 0 {
				return
			}
		}
	}
	for i := range guard.MaxStrikes {
		write(reg.RKey ^ uint64(i+1))
	}
	if write(reg.RKey); mem[0] != 0 {
		t.Error("an unresolved peer can access memory after the maximum number of guesses")
	}
}
