//go:build ofi && cgo && linux

package ofi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Receive queues and queue pairs. Work requests enter by PostSend here, and completions
// leave by Poll in completion.go; traffic.c is in between.

// receiveQueue implements rdma.SRQ, and serves queue pairs without one.
type receiveQueue struct {
	dev    *device
	q      squeue
	tag    int
	lend   bool
	depth  int
	held   []rdma.Mem // posted buffers, by slot
	used   int        // queue pairs that use it
	closed bool
}

func (d *device) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	s, err := d.newReceiveQueue(cfg)
	if err != nil {
		return nil, err
	}
	d.srqs = append(d.srqs, s)
	return s, nil
}

func (d *device) newReceiveQueue(cfg rdma.SRQConfig) (*receiveQueue, error) {
	s := &receiveQueue{dev: d, lend: cfg.Lend, depth: cfg.Depth}
	if s.depth <= 0 {
		s.depth = d.sizes.receives
	}
	s.tag = slices.Index(d.posted, nil)
	if s.tag < 0 {
		s.tag = len(d.posted)
		d.posted = append(d.posted, nil)
	}
	var err error
	if s.q, err = d.dom.newSRQ(s.lend, s.depth, cfg.LowWater, s.tag); err != nil {
		return nil, fmt.Errorf("ofi: create a receive queue of %d buffers: %w", s.depth, err)
	}
	d.posted[s.tag] = s
	if !s.lend {
		s.held = make([]rdma.Mem, s.depth)
	}
	return s, nil
}

func (s *receiveQueue) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if s.closed {
		return 0, rdma.ErrClosed
	}
	if s.lend {
		return 0, fmt.Errorf("ofi: post a receive: %w: the queue lends its own buffers", rdma.ErrUnsupported)
	}
	for i := range wrs {
		slot, err := s.q.post(&wrs[i])
		if err != nil {
			return i, err
		}
		s.held[slot] = wrs[i].Body
	}
	return len(wrs), nil
}

func (s *receiveQueue) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.dev.srqs = remove(s.dev.srqs, s)
	s.release(0)
	return nil
}

// release ends the use by a queue pair, or by the user.
func (s *receiveQueue) release(pairs int) {
	if s.used -= pairs; s.closed && s.used == 0 {
		s.q.free()
		s.held = nil
		s.dev.posted[s.tag] = nil
	}
}

// queuePair implements rdma.QP.
type queuePair struct {
	dev        *device
	end        endpoint
	addr       rdma.Addr
	send, recv *completionQueue
	srq        *receiveQueue
	own        bool // srq belongs only to it
	closed     bool
	// posting holds the requests that C reads. It keeps them on the heap, where their
	// addresses do not change.
	posting []rdma.SendWR
}

func (d *device) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	if cfg.Type != d.cfg.Transport {
		return nil, fmt.Errorf("ofi: create a queue pair: %w: this device has the transport %s, not %s",
			rdma.ErrUnsupported, transportWord(d.cfg.Transport), transportWord(cfg.Type))
	}
	if cfg.Type != rdma.RC && len(d.qps) > 0 {
		return nil, fmt.Errorf("ofi: create a second queue pair: %w: peers address the device, not its queue pairs", rdma.ErrNoResources)
	}
	q := &queuePair{dev: d, send: d.ownCQ(cfg.SendCQ), recv: d.ownCQ(cfg.RecvCQ)}
	if q.send == nil || q.recv == nil {
		return nil, errors.New("ofi: create a queue pair: its completion queues must be open ones of the same device")
	}
	var err error
	if cfg.SRQ == nil {
		q.own = true
		if q.srq, err = d.newReceiveQueue(rdma.SRQConfig{}); err != nil {
			return nil, err
		}
	} else if s, ok := cfg.SRQ.(*receiveQueue); ok && s.dev == d && !s.closed {
		q.srq = s
	} else {
		return nil, errors.New("ofi: create a queue pair: its receive queue must be an open one of the same device")
	}
	q.srq.used++
	depth := cfg.Depth
	if depth <= 0 {
		depth = d.sizes.depth
	}
	buffers := d.sizes.receives
	if q.srq.lend {
		buffers = q.srq.depth
	}
	if err = q.open(depth, buffers); err != nil {
		q.srq.release(1)
		if q.own {
			_ = q.srq.Close()
		}
		return nil, err
	}
	d.qps = append(d.qps, q)
	return q, nil
}

func (q *queuePair) open(depth, buffers int) error {
	d := q.dev
	var err error
	if q.end, err = d.dom.newQP(d.cfg.Transport, q.send.q, q.recv.q, q.srq.q, depth, buffers); err != nil {
		return fmt.Errorf("ofi: provider %s on %s: create an endpoint: %w", d.what.provider, d.what.domain, d.lockLimit(err))
	}
	name, err := q.end.name(d.lib)
	if err != nil || len(name) == 0 || len(name) > maxName {
		return errors.Join(fmt.Errorf("ofi: provider %s on %s: the endpoint has no usable name (%d bytes): %v",
			d.what.provider, d.what.domain, len(name), err), q.end.close(d.lib))
	}
	q.addr = address{d.cfg.Transport, d.what.provider, d.cfg.Index, string(name)}.text()
	return nil
}

func (q *queuePair) Addr() rdma.Addr { return q.addr }

func (q *queuePair) PostSend(wrs []rdma.SendWR) (int, error) {
	if q.closed {
		return 0, rdma.ErrClosed
	}
	for n := 0; n < len(wrs); {
		part := wrs[n:min(n+batch, len(wrs))]
		q.posting = part
		k, why := q.end.post(part)
		q.posting = nil
		for i := range part[:k] {
			if slot := q.end.slot(i); slot != noSlot {
				q.dev.hold(slot, part[i].Body)
			}
		}
		n += k
		if why != refusedNothing {
			return n, q.refusalError(why, &wrs[n])
		}
	}
	return len(wrs), nil
}

// hold keeps memory alive until its work has completed.
func (d *device) hold(slot uint32, m rdma.Mem) {
	if int(slot) >= len(d.held) {
		bigger := make([]rdma.Mem, 2*slot+64)
		copy(bigger, d.held)
		d.held = bigger
	}
	d.held[slot] = m
}

// refusalError converts the reason why a request was not accepted to an error.
func (q *queuePair) refusalError(why refusal, wr *rdma.SendWR) error {
	d := q.dev
	switch why {
	case refusedAgain:
		return rdma.ErrAgain
	case refusedUnsupported:
		return fmt.Errorf("ofi: post %v to peer %d: %w by provider %s", wr.Op, wr.Peer, rdma.ErrUnsupported, d.what.provider)
	case refusedTooLong:
		return fmt.Errorf("ofi: post %v of %d bytes to peer %d: the limit is %d, or %d inline", wr.Op, int(wr.HeadLen)+wr.Body.Len(), wr.Peer, d.attr.MaxSend, d.attr.MaxInline)
	case refusedPeer:
		if d.cfg.Transport == rdma.RC {
			return fmt.Errorf("ofi: post %v: the queue pair is not connected yet", wr.Op)
		}
		return fmt.Errorf("ofi: post %v to peer %d: no address was resolved to that peer", wr.Op, wr.Peer)
	case refusedKey:
		return fmt.Errorf("ofi: post %v to peer %d: Body must lie in a registered region, but %d is not the LKey of one", wr.Op, wr.Peer, wr.LKey)
	}
	return fmt.Errorf("ofi: post %v of %d bytes to peer %d over provider %s: %w", wr.Op, wr.Body.Len(), wr.Peer, d.what.provider, d.lib.errorFor(why))
}

// Pending returns the number of incomplete requests.
func (q *queuePair) Pending() int {
	if q.closed {
		return 0
	}
	return q.end.pending()
}

func (q *queuePair) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if q.closed {
		return 0, rdma.ErrClosed
	}
	if !q.own {
		return 0, fmt.Errorf("ofi: post a receive: %w: the queue pair has a shared receive queue", rdma.ErrUnsupported)
	}
	return q.srq.PostRecv(wrs)
}

func (q *queuePair) Close() error {
	if q.closed {
		return nil
	}
	q.closed = true
	q.dev.qps = remove(q.dev.qps, q)
	err := q.end.close(q.dev.lib)
	q.srq.release(1)
	if q.own {
		err = errors.Join(err, q.srq.Close())
	}
	return err
}

func remove[T comparable](list []T, one T) []T {
	if i := slices.Index(list, one); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
