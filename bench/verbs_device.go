package bench

// A device of package rdma as a wire: one completion queue, one lending receive queue,
// and a queue pair for each connection. open creates them, connect connects them to those of
// the peer, and all other calls use progress.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

type deviceWire struct {
	dev   rdma.Device
	kind  rdma.Transport
	attr  *rdma.Attr
	watch *waiter

	cq    rdma.CQ
	srq   rdma.SRQ
	qps   []rdma.QP
	peers []rdma.PeerID
	mem   []byte  // memory that the peer accesses
	mine  rdma.MR // registration of mem
	local rdma.MR // registration of send buffers, if the device requires it
	sent  []byte
	there rdma.MR // the peer's memory

	wr    [1]rdma.SendWR
	comps [32]rdma.Completion
	have  int // messages received and not consumed
	done  int // completed Writes and Reads, likewise
	first byte
	// bytes of received Write-Records
	bytes int
}

const connectTimeout = 60 * time.Second

func (w *deviceWire) open(t *verbsTrial) (err error) {
	if w.attr.Transports&w.kind == 0 {
		return fmt.Errorf("%w: %s has no queue pairs of that kind", rdma.ErrUnsupported, w.attr.Name)
	}
	if w.cq, err = w.dev.NewCQ(0); err != nil {
		return fmt.Errorf("make a completion queue of %s: %w", w.attr.Name, err)
	}
	if w.srq, err = w.dev.NewSRQ(rdma.SRQConfig{Lend: true}); err != nil {
		return fmt.Errorf("make a receive queue of %s: %w", w.attr.Name, err)
	}
	if err := w.addPairs(t.Connections); err != nil {
		return err
	}
	if w.attr.Ops.Has(w.writes()) {
		w.mem = buffer(max(t.Size, 1))
		if w.mine, err = w.dev.Register(w.mem, rdma.RemoteRead|rdma.RemoteWrite); err != nil {
			return fmt.Errorf("register %d bytes with %s: %w", len(w.mem), w.attr.Name, err)
		}
	}
	return nil
}

// addPairs creates more queue pairs.
func (w *deviceWire) addPairs(n int) error {
	for range n {
		k := len(w.qps)
		qp, err := w.dev.NewQP(rdma.QPConfig{Type: w.kind, SendCQ: w.cq, RecvCQ: w.cq, SRQ: w.srq, Peer: rdma.PeerID(k)})
		if err != nil && k > 0 {
			return fmt.Errorf("%w: %s creates at most %d queue pairs: %w", rdma.ErrUnsupported, w.attr.Name, k, err)
		}
		if err != nil {
			return fmt.Errorf("make a queue pair of %s: %w", w.attr.Name, err)
		}
		w.qps = append(w.qps, qp)
	}
	return nil
}

func (w *deviceWire) card() *card {
	c := &card{MR: w.mine}
	for _, qp := range w.qps {
		c.Addrs = append(c.Addrs, qp.Addr())
	}
	return c
}

// connect connects new queue pairs. If the other end has more queue pairs, one of ours
// serves several.
func (w *deviceWire) connect(theirs *card) error {
	if len(theirs.Addrs) == 0 || w.kind == rdma.RC && len(theirs.Addrs) != len(w.qps) {
		return fmt.Errorf("the other process has %d queue pairs for our %d", len(theirs.Addrs), len(w.qps))
	}
	w.there = theirs.MR
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	for k := len(w.peers); k < max(len(w.qps), len(theirs.Addrs)); k++ {
		var id rdma.PeerID
		var err error
		if w.kind == rdma.RC {
			err = w.qps[k].Connect(ctx, theirs.Addrs[k])
		} else {
			id, err = w.dev.Resolve(theirs.Addrs[k%len(theirs.Addrs)])
		}
		if err != nil {
			return err
		}
		w.peers = append(w.peers, id)
	}
	return nil
}

func (w *deviceWire) way(size int) string {
	switch {
	case size <= w.attr.MaxSend:
		return "send"
	case w.attr.Ops.Has(w.writes()):
		return w.writes().String()
	}
	return ""
}

// writes returns the operation by which this kind of queue pair writes to the peer's memory.
func (w *deviceWire) writes() rdma.Op {
	if w.kind == rdma.UD {
		return rdma.OpWriteRecord
	}
	return rdma.OpWrite
}

func (w *deviceWire) lossy() bool { return w.kind == rdma.UD }

func (w *deviceWire) send(k int, b []byte) error {
	w.wr[0] = rdma.SendWR{Op: rdma.OpSend, Peer: w.peers[k], Body: rdma.MemOf(b)}
	if len(b) <= w.attr.MaxInline && (w.attr.CopyAbove == 0 || len(b) <= w.attr.CopyAbove) {
		w.wr[0].Flags = rdma.Inline
	} else if err := w.key(b); err != nil {
		return err
	}
	return w.post(k)
}

// key sets the local key of a send buffer, if the device requires one. The memory is
// registered at its first use.
func (w *deviceWire) key(b []byte) error {
	if !w.attr.LocalKeys {
		return nil
	}
	if len(w.sent) == 0 || &w.sent[0] != &b[0] || len(b) > len(w.sent) {
		mr, err := w.dev.Register(b, 0)
		if err != nil {
			return fmt.Errorf("register what is sent with %s: %w", w.attr.Name, err)
		}
		w.sent, w.local = b, mr
	}
	w.wr[0].LKey = w.local.LKey
	return nil
}

// post posts the work request, and retries while the device is full.
func (w *deviceWire) post(k int) error {
	qp := w.qps[k%len(w.qps)]
	for {
		n, err := qp.PostSend(w.wr[:])
		if n == 1 {
			return nil
		}
		if err != nil && err != rdma.ErrAgain && !errors.Is(err, rdma.ErrAgain) {
			return fmt.Errorf("%s rejects %v of %d bytes: %w", w.attr.Name, w.wr[0].Op, w.wr[0].Body.Len(), err)
		}
		moved, err := w.progress()
		if err != nil {
			return err
		}
		if moved {
			w.watch.noteProgress()
		} else if err := w.watch.idle(); err != nil {
			return err
		}
	}
}

// progress polls once and counts completions.
func (w *deviceWire) progress() (bool, error) {
	n := w.cq.Poll(w.comps[:])
	for i := range n {
		c := &w.comps[i]
		if c.Op == rdma.OpRefused {
			continue // counts as lost
		}
		if c.Status != rdma.StatusOK {
			return true, fmt.Errorf("%s: %v of %d bytes ended with: %w", w.attr.Name, c.Op, c.Len, c.Status.Err())
		}
		switch c.Op {
		case rdma.OpRecv:
			w.have++
			if c.Data.Len() > 0 {
				w.first = c.Data.Bytes()[0]
			}
		case rdma.OpRecord:
			w.have++
			w.bytes += c.Data.Len()
		case rdma.OpWrite, rdma.OpRead, rdma.OpWriteRecord:
			w.done++
		}
	}
	return n > 0, nil
}

func (w *deviceWire) take(_, most int) (int, error) {
	if w.have == 0 {
		if _, err := w.progress(); err != nil {
			return 0, err
		}
	}
	n := min(w.have, most)
	w.have -= n
	return n, nil
}

func (w *deviceWire) stamp() byte         { return w.first }
func (w *deviceWire) device() rdma.Device { return w.dev }
func (w *deviceWire) memory() []byte      { return w.mem }
func (w *deviceWire) placedBytes() int    { return w.bytes }

func (w *deviceWire) start(op rdma.Op, b []byte) error {
	w.wr[0] = rdma.SendWR{Op: op, Peer: w.peers[0], Body: rdma.MemOf(b), Remote: w.there.Base, RKey: w.there.RKey}
	if err := w.key(b); err != nil {
		return err
	}
	return w.post(0)
}

func (w *deviceWire) finish(most int) (int, error) {
	if w.done == 0 {
		if _, err := w.progress(); err != nil {
			return 0, err
		}
	}
	n := min(w.done, most)
	w.done -= n
	return n, nil
}

func (w *deviceWire) close() error {
	var errs []error
	for _, qp := range slices.Backward(w.qps) {
		errs = append(errs, qp.Close())
	}
	return errors.Join(append(errs, w.srq.Close(), w.cq.Close(), w.dev.Close())...)
}

var _ remoteWire = (*deviceWire)(nil)
