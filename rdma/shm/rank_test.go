package shm

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// rank is a device with its queues, as tests use it.
type rank struct {
	dev *Device
	cq  rdma.CQ
	srq rdma.SRQ
	qp  rdma.QP
	out []rdma.Completion
	wrs []rdma.SendWR     // one
	got []rdma.Completion // polled and not yet returned by next; lent data was copied
}

func openRank(cfg Config, srq rdma.SRQConfig) (*rank, error) {
	d, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	r := &rank{dev: d, out: make([]rdma.Completion, 16), wrs: make([]rdma.SendWR, 1)}
	if r.cq, err = d.NewCQ(0); err != nil {
		return nil, err
	}
	if r.srq, err = d.NewSRQ(srq); err != nil {
		return nil, err
	}
	r.qp, err = d.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: r.cq, RecvCQ: r.cq, SRQ: r.srq})
	return r, err
}

// heapRanks opens n ranks on one host and resolves all peers.
func heapRanks(t testing.TB, n int, cfg Config) []*rank {
	t.Helper()
	cfg.Host, cfg.Peers = NewHost(), n
	ranks := make([]*rank, n)
	for i := range ranks {
		cfg.Index = i
		r, err := openRank(cfg, rdma.SRQConfig{Lend: true})
		if err != nil {
			t.Fatalf("open rank %d: %v", i, err)
		}
		t.Cleanup(func() {
			if err := r.dev.Close(); err != nil {
				t.Errorf("close rank %d: %v", i, err)
			}
		})
		ranks[i] = r
	}
	for i, r := range ranks {
		for j, p := range ranks {
			id, err := r.dev.Resolve(p.qp.Addr())
			if err != nil || id != rdma.PeerID(j) {
				t.Fatalf("rank %d resolves rank %d: got peer %d, %v", i, j, id, err)
			}
		}
	}
	return ranks
}

// post posts a request until it is accepted.
func (r *rank) post(wr rdma.SendWR) error {
	r.wrs[0] = wr
	for end := time.Now().Add(20 * time.Second); ; {
		_, err := r.qp.PostSend(r.wrs)
		if !errors.Is(err, rdma.ErrAgain) {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("the queue to peer %d stayed full", wr.Peer)
		}
		r.poll()
	}
}

// send sends body with its first bytes in the Head.
func (r *rank) send(to int, body []byte) error {
	wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: rdma.PeerID(to)}
	wr.HeadLen = uint16(copy(wr.Head[:24], body))
	wr.Body = rdma.MemOf(body[wr.HeadLen:])
	return r.post(wr)
}

// poll stores the completions.
func (r *rank) poll() int {
	n := r.cq.Poll(r.out)
	for _, c := range r.out[:n] {
		if c.Op == rdma.OpRecv {
			c.Data = rdma.MemOf(bytes.Clone(c.Data.Bytes()))
		}
		r.got = append(r.got, c)
	}
	return n
}

// next returns the next completion.
func (r *rank) next() (rdma.Completion, error) {
	for end := time.Now().Add(20 * time.Second); len(r.got) == 0; {
		if r.poll() == 0 {
			if err := r.cq.Wait(time.Millisecond); err != nil {
				return rdma.Completion{}, err
			}
		}
		if time.Now().After(end) {
			return rdma.Completion{}, errors.New("nothing arrived in 20 s")
		}
	}
	c := r.got[0]
	r.got = r.got[1:]
	return c, nil
}

// do posts a request that generates a completion, and waits for it. Messages that arrive
// meanwhile are stored.
func (r *rank) do(wr rdma.SendWR) (rdma.Completion, error) {
	if err := r.post(wr); err != nil {
		return rdma.Completion{}, err
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		for i, c := range r.got {
			if c.Op == wr.Op && c.ID == wr.ID {
				r.got = append(r.got[:i], r.got[i+1:]...)
				return c, nil
			}
		}
		r.poll()
	}
	return rdma.Completion{}, fmt.Errorf("%v to peer %d did not complete", wr.Op, wr.Peer)
}

// pattern returns n bytes that depend on seed.
func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*131 + i*7 + i>>8)
	}
	return b
}
