package hybrid

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Completion queues, and receiving: Poll polls the two devices, filter removes what is not
// for the user, and counts the rest.
//
// Polling a device is a system call. Every Poll polls the device that returned the last
// completion, or accepted the last request. It polls the other one again the next time if
// that had something, else after twice as many Polls, up to the 16th: so a wait for one
// peer pays for one device, and neither starves. After a sleep it polls both, since either
// may have ended it.

const rarest = 16

// queue is a completion queue. Its own completions are those that no device below
// generates.
type queue struct {
	soft.CQ[struct{}] // it lends nothing itself
	dev               *Device
	rd, rc            rdma.CQ
	closed            bool

	mu    sync.Mutex // guards core: a second goroutine may wait
	core  soft.Device
	below soft.Below

	preferred path         // the device that every Poll polls
	pause     [paths]uint8 // Polls that poll the other one at most once
	left      [paths]uint8 // of those, remaining
	slept     atomic.Bool  // since the last Poll
}

// NewCQ creates a completion queue.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	if d.closed {
		return nil, rdma.ErrClosed
	}
	q := &queue{dev: d}
	var err error
	if q.rd, err = d.rd.NewCQ(depth); err != nil {
		return nil, err
	}
	if q.rc, err = d.rc.NewCQ(depth); err != nil {
		_ = q.rd.Close() // it was created a moment ago
		return nil, err
	}
	q.core.Init("hybrid", &q.mu, soft.Hooks{Sleep: q.sleep, Awake: q.awake})
	if err = q.openWait(); err != nil {
		_ = q.closeBelow() // likewise
		return nil, err
	}
	d.queues = append(d.queues, q)
	return q, nil
}

// openWait prepares waiting for both devices at once.
func (q *queue) openWait() error {
	err := q.below.Open()
	if err == nil {
		if err = q.below.Add(q.rd); err == nil {
			err = q.below.Add(q.rc)
		}
		if err != nil {
			q.below.Close()
		}
	}
	if err != nil {
		return fmt.Errorf("hybrid: sleep on two devices: %w", err)
	}
	q.core.SetSource(q.below.FD(), nil)
	if err = q.Open(&q.core, func(struct{}) {}); err != nil {
		q.below.Close()
	}
	return err
}

// deferredDelay is the longest sleep while deferred work waits for room.
const deferredDelay = 500 * time.Microsecond

// sleep prepares both devices for a sleep.
func (q *queue) sleep(limit time.Duration) time.Duration {
	if q.dev.dialer.hasResult() {
		return 0
	}
	if q.dev.deferredWork.Load() > 0 {
		limit = min(limit, deferredDelay)
	}
	return q.below.Sleep(limit)
}

// awake ends the sleep.
func (q *queue) awake() {
	q.below.Awake()
	q.slept.Store(true)
}

// prefer makes the next Polls poll the device from which an answer is expected.
func (q *queue) prefer(p path) { q.preferred = p }

// Poll makes progress and returns completions.
func (q *queue) Poll(out []rdma.Completion) (n int) {
	d := q.dev
	if q.below.Sleeping() {
		q.mu.Lock()
		q.EndArming()
		q.mu.Unlock()
	}
	if q.closed || d.closed {
		return 0
	}
	if q.Len() > 0 && len(out) > 0 {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.Take(out)
	}
	slept := q.slept.Load()
	if slept {
		q.slept.Store(false)
	}
	d.progress(slept)
	if d.conns.live == 0 {
		return q.pollDevice(byDatagram, out)
	}
	first := path(d.polls & 1) // so that a busy device does not starve the other
	for _, p := range [paths]path{first, 1 - first} {
		switch {
		case slept || p == q.preferred || q.left[p] == 0:
			if n < len(out) || len(out) == 0 {
				n += q.pollDevice(p, out[n:])
			}
		default:
			q.left[p]--
		}
	}
	return n
}

// inject adds a completion that no device below generates.
func (q *queue) inject(c rdma.Completion) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.Push(c)
}

// pollDevice polls one of the devices.
func (q *queue) pollDevice(p path, out []rdma.Completion) (kept int) {
	n := 0
	if p == byDatagram {
		n = q.rd.Poll(out)
		kept = q.filterDatagrams(out[:n])
	} else {
		n = q.rc.Poll(out)
		kept = q.filterConnections(out[:n])
		if d := q.dev; len(d.conns.ending) > 0 && n < len(out) {
			d.removeEnded(q)
		}
	}
	switch {
	case n > 0:
		q.pause[p] = 0
	case q.pause[p] < rarest-1:
		q.pause[p] = 2*q.pause[p] + 1
	}
	q.left[p] = q.pause[p]
	if kept > 0 {
		q.preferred = p
	}
	return kept
}

// filterDatagrams keeps the user's completions, in order, and returns their number.
func (q *queue) filterDatagrams(list []rdma.Completion) (kept int) {
	d := q.dev
	for i := range list {
		c := &list[i]
		switch {
		case c.Op == rdma.OpRecv && c.ID != 0:
			if c.Status == rdma.StatusOK {
				d.receiveNotice(c.Peer, c.Data.Bytes())
			}
			d.pair.postNoticeBuffer(c.ID)
			continue
		case c.Op == rdma.OpRecv:
			d.show(d.peer(c.Peer), byDatagram, c)
		case c.ID == d.ids.fence && c.Op == rdma.OpRead:
			if m := d.knownPeer(c.Peer); m != nil {
				m.endFence(c.Status == rdma.StatusOK)
				d.run(m)
			}
			continue
		case c.ID == d.ids.replay:
			continue // the user has seen its completion, and other requests will find the peer gone
		case c.ID == d.ids.notice || c.Op == rdma.OpDisconnected:
			if m := d.boundTo(c.Peer); m != nil {
				if c.Status != rdma.StatusFlushed {
					d.cutOff(m)
				}
				continue
			}
		}
		if kept < i {
			list[kept] = *c
		}
		kept++
	}
	return kept
}

// show counts a message that the user receives.
func (d *Device) show(m *peerState, p path, c *rdma.Completion) {
	m.shown[p]++
	if m.pending {
		m.reportSeen()
		d.run(m)
	}
	d.used(m, int(c.Len))
}

// filterConnections does the same for connections. Their completions carry a slot, which it
// replaces by the peer.
func (q *queue) filterConnections(list []rdma.Completion) (kept int) {
	d := q.dev
	for i := range list {
		c := &list[i]
		conn := d.conns.find(c.Peer)
		if conn == nil {
			continue // of a queue that has run empty since
		}
		m := conn.peer
		c.Peer = m.id
		switch {
		case c.Op == rdma.OpLowWater:
			continue
		case c.Op == rdma.OpDisconnected && c.Status == rdma.StatusRemoteAccess:
			conn.failed = true // the user learns which peer is responsible, and the end of the connection follows
		case c.Op == rdma.OpDisconnected:
			if m.conn == conn {
				conn.failed = conn.failed || c.Status != rdma.StatusPeerGone
				m.handleDisconnect()
				d.run(m)
			}
			continue
		case c.Op == rdma.OpRecv:
			d.show(m, byConnection, c)
		case c.Status == rdma.StatusFlushed && conn.replays:
			continue // it is sent again by datagram
		case c.Status != rdma.StatusOK && m.conn == conn:
			conn.failed = true
			m.broke()
			d.run(m)
		}
		if kept < i {
			list[kept] = *c
		}
		kept++
	}
	return kept
}

func (q *queue) closeBelow() error { return errors.Join(q.rd.Close(), q.rc.Close()) }

// Close closes the queue.
func (q *queue) Close() error {
	if q.closed {
		return nil
	}
	q.closed = true
	_ = q.CQ.Close() // it cannot fail
	q.below.Close()
	return q.closeBelow()
}
