package rdmatest

import (
	"bytes"
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// Work requests: PostSend accepts them, transmit, access or the cooperative copy carries
// them out, and finish reports them.

func (q *refQP) PostSend(wrs []rdma.SendWR) (int, error) {
	q.dev.fab.mu.Lock()
	defer q.dev.fab.mu.Unlock()
	for i := range wrs {
		if err := q.take(&wrs[i]); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// take carries out one work request, or returns an error and has no effect.
func (q *refQP) take(wr *rdma.SendWR) error {
	if q.closed {
		return fmt.Errorf("post %v on %s: %w", wr.Op, q.Addr(), rdma.ErrClosed)
	}
	record := wr.Op == rdma.OpWriteRecord
	if wr.Op > rdma.OpPush && !record || !q.dev.attr.Ops.Has(wr.Op) || record && q.kind != rdma.UD {
		return fmt.Errorf("post %v on %s: %w", wr.Op, q.Addr(), rdma.ErrUnsupported)
	}
	to, err := q.target(wr)
	if err != nil {
		return err
	}
	if err := q.checkLocalKey(wr); err != nil {
		return err
	}
	if most := q.dev.attr.MaxTransfer; most > 0 && (wr.Op == rdma.OpRead || wr.Op == rdma.OpWrite) && wr.Body.Len() > most {
		return fmt.Errorf("post %v of %d bytes on %s: Attr.MaxTransfer is %d", wr.Op, wr.Body.Len(), q.Addr(), most)
	}
	if push := wr.Op == rdma.OpPush; push && q.pushes >= q.dev.attr.MaxPush || !push && q.outstanding >= q.depth {
		return rdma.ErrAgain
	}
	switch wr.Op {
	case rdma.OpSend:
		return q.transmit(wr, to)
	case rdma.OpRead, rdma.OpWrite:
		q.outstanding++
		work := *wr // the caller may reuse the request when PostSend returns
		if wr.Flags&rdma.Inline != 0 {
			work.Body = rdma.MemOf(bytes.Clone(wr.Body.Bytes())) // and the body
		}
		if q.dev.attr.RemoteCPU && !to.closed {
			to.dev.pendingAccesses = append(to.dev.pendingAccesses, func() { q.access(&work, to) })
			to.dev.signal()
		} else {
			q.access(&work, to)
		}
	case rdma.OpPull:
		q.outstanding++
		q.pull(wr, to)
	case rdma.OpPush:
		q.pushes++
		q.push(wr, to)
	case rdma.OpWriteRecord:
		q.record(wr, to)
	}
	return nil
}

func (q *refQP) target(wr *rdma.SendWR) (*refQP, error) {
	if q.kind == rdma.RC {
		if q.partner == nil {
			return nil, fmt.Errorf("post %v on %s: not connected, call Connect first", wr.Op, q.Addr())
		}
		return q.partner, nil
	}
	if int(wr.Peer) >= len(q.dev.peers) {
		return nil, fmt.Errorf("post %v on %s: no peer has the handle %d, take handles from Resolve", wr.Op, q.Addr(), wr.Peer)
	}
	return q.dev.peers[wr.Peer], nil
}

func (q *refQP) checkLocalKey(wr *rdma.SendWR) error {
	if !q.dev.attr.LocalKeys || wr.Flags&rdma.Inline != 0 || wr.Body.Len() == 0 || wr.Op == rdma.OpPush {
		return nil
	}
	for _, region := range q.dev.regions {
		lo := region.mr.Base
		if region.mr.LKey == wr.LKey && wr.Body.Addr() >= lo && wr.Body.Addr()+uint64(wr.Body.Len()) <= lo+region.mr.Len {
			return nil
		}
	}
	return fmt.Errorf("post %v on %s: Body (%d bytes) lies in no region with the local key %d", wr.Op, q.Addr(), wr.Body.Len(), wr.LKey)
}

// transmit puts a message into the receiver's inbox.
func (q *refQP) transmit(wr *rdma.SendWR, to *refQP) error {
	size := int(wr.HeadLen) + wr.Body.Len()
	inline := wr.Flags&rdma.Inline != 0
	if size > q.dev.attr.MaxSend {
		return fmt.Errorf("post send of %d bytes on %s: Attr.MaxSend is %d", size, q.Addr(), q.dev.attr.MaxSend)
	}
	if inline && wr.Body.Len() > q.dev.attr.MaxInline {
		return fmt.Errorf("post inline send of %d bytes on %s: Attr.MaxInline is %d", wr.Body.Len(), q.Addr(), q.dev.attr.MaxInline)
	}
	waiting := 0
	for _, m := range to.inbox {
		if m.from == q {
			waiting++
		}
	}
	switch {
	case to.closed:
		q.outstanding++
		q.finish(wr, to, rdma.StatusPeerGone, 0)
		return nil
	case waiting >= refDepth && q.kind != rdma.UD:
		return rdma.ErrAgain
	case waiting >= refDepth:
		// A datagram without room is lost silently.
	default:
		data := append(append(make([]byte, 0, size), wr.Head[:wr.HeadLen]...), wr.Body.Bytes()...)
		to.inbox = append(to.inbox, refMessage{q, data})
		to.recvCQ.signal()
		if wr.Flags&rdma.Solicited != 0 {
			to.recvCQ.wakeArmed(rdma.NotifySolicited)
		}
	}
	if !inline {
		q.outstanding++
		q.finish(wr, to, rdma.StatusOK, size)
	}
	return nil
}

// access carries out a Read or a Write.
func (q *refQP) access(wr *rdma.SendWR, to *refQP) {
	if to.closed {
		q.finish(wr, to, rdma.StatusPeerGone, 0)
		return
	}
	right := rdma.RemoteRead
	if wr.Op == rdma.OpWrite {
		right = rdma.RemoteWrite
	}
	_, theirs, ok := to.dev.reach(wr.RKey, wr.Remote, wr.Body.Len(), right)
	switch {
	case !ok:
		q.finish(wr, to, rdma.StatusRemoteAccess, 0)
		return
	case wr.Op == rdma.OpRead:
		copy(wr.Body.Bytes(), theirs)
	default:
		copy(theirs, wr.Body.Bytes())
		if wr.Flags&rdma.Inline != 0 {
			q.outstanding--
			return
		}
	}
	q.finish(wr, to, rdma.StatusOK, wr.Body.Len())
}

// reach returns the n bytes at an address if the key permits the access. It compares
// differences, which cannot overflow.
func (d *refDevice) reach(key, addr uint64, n int, right rdma.Access) (*refRegion, []byte, bool) {
	region := d.regions[key]
	if region == nil || region.access&right == 0 || addr < region.mr.Base {
		return nil, nil, false
	}
	off := addr - region.mr.Base
	if off > region.mr.Len || uint64(n) > region.mr.Len-off {
		return nil, nil, false
	}
	return region, region.mem[off : off+uint64(n)], true
}

// finish completes a request that take has counted.
func (q *refQP) finish(wr *rdma.SendWR, to *refQP, status rdma.Status, n int) {
	q.sendCQ.ready = append(q.sendCQ.ready, refEntry{
		from: q,
		c:    rdma.Completion{ID: wr.ID, Op: wr.Op, Len: uint64(n), Peer: q.dev.handle(to), Status: status},
	})
	q.sendCQ.signal()
}

func (q *refQP) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if q.srq != nil {
		return 0, fmt.Errorf("post receive on %s: it uses a shared receive queue, post there: %w", q.Addr(), rdma.ErrUnsupported)
	}
	return q.own.PostRecv(wrs)
}

// refSRQ holds posted buffers, or lends the messages themselves.
type refSRQ struct {
	dev     *refDevice
	cfg     rdma.SRQConfig
	buffers []rdma.RecvWR
	armed   bool // the next drop below LowWater is to be reported
	closed  bool
}

func newRefSRQ(d *refDevice, cfg rdma.SRQConfig) *refSRQ {
	if cfg.Depth == 0 {
		cfg.Depth = refDepth
	}
	return &refSRQ{dev: d, cfg: cfg}
}

func (s *refSRQ) PostRecv(wrs []rdma.RecvWR) (int, error) {
	s.dev.fab.mu.Lock()
	defer s.dev.fab.mu.Unlock()
	if s.closed || s.dev.closed {
		return 0, fmt.Errorf("post receive on reference device %d: %w", s.dev.index, rdma.ErrClosed)
	}
	if s.cfg.Lend {
		return 0, fmt.Errorf("post receive on a queue that lends its own buffers: %w", rdma.ErrUnsupported)
	}
	n := min(len(wrs), s.cfg.Depth-len(s.buffers))
	s.buffers = append(s.buffers, wrs[:n]...)
	if len(s.buffers) >= s.cfg.LowWater {
		s.armed = s.cfg.LowWater > 0
	}
	s.dev.signal() // messages may have waited for a buffer
	if n < len(wrs) {
		return n, rdma.ErrAgain
	}
	return n, nil
}

func (s *refSRQ) Close() error {
	s.dev.fab.mu.Lock()
	defer s.dev.fab.mu.Unlock()
	s.closed = true
	return nil
}
