package soft

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
	base "github.com/muster-mpi/muster/rdma/internal/soft"
	"github.com/muster-mpi/muster/rdma/recvpool"
)

// RD without a socket: the carrier is a UD queue pair of another device, and each datagram
// is one of its messages. T1 chapter 6 describes two ways to carry MPI over datagrams. The
// other devices of this package have reliability inside the queue pair; this is the second
// way, with reliability above it: an ack for every 50 messages, and timeouts (T1 6.6.1).
//
// The device below delivers messages intact, so a datagram has no seal, and it names their
// sender. Datagrams are received into buffers that this device posts (package recvpool):
// early ones stay there, and a message of one datagram is delivered without a copy.

// carrier is the UD queue pair.
type carrier struct {
	dev    rdma.Device
	inline int // its Attr.MaxInline
	cq     rdma.CQ
	file   rdma.CQ // the same, nil if one cannot sleep on it
	srq    rdma.SRQ
	qp     rdma.QP
	comps  [batchSize]rdma.Completion
	wrs    [batchSize]rdma.SendWR

	pool   *recvpool.Pool
	slots  []*slot  // of its buffers, by ID
	kept   int      // of them, in reorder buffers or lent
	most   int      // buffers
	copies [][]byte // datagrams that the device below still reads, by ID
	free   []uint64 // unused IDs of copies
	cameAt time.Duration
}

const (
	// ackEveryUD is how many packets share one ack (T1 6.6.1).
	ackEveryUD = 50
	// askEvery is how many bytes are sent before an ack is requested: ackEveryUD long
	// packets may be more than the window.
	askEvery = 128 << 10
	// hostDatagram is the longest datagram by default, for a device below that has no frames.
	hostDatagram = maxInlineUD + 2*rdma.HeadMax
	maxInlineUD  = 16 << 10
	// longestFrame is the longest datagram that a network may carry in one frame.
	longestFrame = 9000
	// hostWindow is the window for longer datagrams: they are for this host, and a
	// megabyte should be sent in one go.
	hostWindow = 1 << 20
	// The memory of the receive buffers, at first and at most.
	initialMemory, maxMemory = 2 << 20, 8 << 20
	// inlineID is the ID of requests without a copy.
	inlineID = 1<<64 - 1
)

// openOver opens a device over another.
func openOver(c Config) (*Device, error) {
	transfer, err := ddp.MaxTransfer(c.MaxTransfer)
	if err != nil {
		return nil, fmt.Errorf("soft: %w", err)
	}
	k, err := openCarrier(&c)
	if err != nil {
		return nil, err
	}
	d := newDevice(&c, &keyring{carried: true, incarnation: newIncarnation()}, c.Datagram, transfer)
	d.net.below, d.incoming.store.below = k, k
	below, a := k.dev.Attr(), &d.attr
	a.Name, a.Transports, a.Ops, a.MaxInline = "ud", rdma.RD, rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead), maxInlineUD
	a.Oversubscribed, a.RegCost = below.Oversubscribed, rdma.Cost{Fixed: 100}
	// An access is a message in each direction.
	perByte := below.SendCost.PerByte + below.SendCost.Fixed/2/float64(c.Datagram)
	a.SendCost = rdma.Cost{Fixed: below.SendCost.Fixed, PerByte: perByte}
	a.ReadCost = rdma.Cost{Fixed: 2 * below.SendCost.Fixed, PerByte: perByte}
	a.PutCost = a.ReadCost
	d.outgoing.windowPool = reliable.NewPool[posted](c.carriedParams(d.mss()))
	if k.file != nil {
		d.soft.SetSource(k.file.File(), nil)
	}
	return d, nil
}

// carriedParams returns the parameters of package reliable over a UD queue pair.
func (c *Config) carriedParams(mss int) reliable.Params {
	p := runParams(c.Datagram, mss, false, false)
	if p.AckEvery, p.AskEvery = c.AckEvery, askEvery; c.AckEvery == 0 {
		p.AckEvery = ackEveryUD
	}
	if c.Datagram > longestFrame {
		p.DelayFloor = hostWindow
	}
	return p
}

// openCarrier creates the UD queue pair and posts its buffers.
func openCarrier(c *Config) (*carrier, error) {
	below := c.Device.Attr()
	if c.Datagram == 0 {
		c.Datagram = min(below.MaxSend, hostDatagram)
	}
	switch {
	case below.Transports&rdma.UD == 0:
		return nil, fmt.Errorf("soft: device %s has no UD queue pairs; use one that has: %w", below.Name, rdma.ErrUnsupported)
	case below.LocalKeys:
		return nil, fmt.Errorf("soft: device %s sends only from registered memory, which users of this device do not register: %w", below.Name, rdma.ErrUnsupported)
	case c.Datagram < minDatagram || c.Datagram > below.MaxSend:
		return nil, fmt.Errorf("soft: a datagram of %d bytes is out of range; device %s takes %d to %d", c.Datagram, below.Name, minDatagram, below.MaxSend)
	case c.AckEvery < 0 || c.AckEvery > reliable.Window:
		return nil, fmt.Errorf("soft: an ack for every %d packets is out of range; choose 1 to %d", c.AckEvery, reliable.Window)
	}
	k := &carrier{dev: c.Device, inline: below.MaxInline}
	if err := k.open(c.Datagram); err != nil {
		return nil, errors.Join(fmt.Errorf("soft: a UD queue pair on %s: %w", below.Name, err), k.closeQueues())
	}
	return k, nil
}

func (k *carrier) open(datagram int) (err error) {
	least := min(max(initialMemory/datagram, 128), 512)
	most := max(min(max(maxMemory/datagram, 128), 2048), least)
	k.most = most
	c := recvpool.Config{Size: datagram, Least: least, Most: most, Post: func(wrs []rdma.RecvWR) (int, error) { return k.srq.PostRecv(wrs) }}
	if k.cq, err = k.dev.NewCQ(most + pairDepth); err != nil {
		return err
	}
	if k.dev.Caps().Notify.Has(rdma.NotifyAny | rdma.NotifyFile) {
		k.file = k.cq
	}
	if k.srq, err = k.dev.NewSRQ(rdma.SRQConfig{Depth: c.Depth(), LowWater: c.Watermark()}); err != nil {
		return err
	}
	if k.qp, err = k.dev.NewQP(rdma.QPConfig{Type: rdma.UD, SendCQ: k.cq, RecvCQ: k.cq, SRQ: k.srq}); err != nil {
		return err
	}
	if k.pool, err = recvpool.New(c); err != nil {
		return err
	}
	return k.pool.Start()
}

// closeQueues closes what open has opened, in any case.
func (k *carrier) closeQueues() (err error) {
	if k.qp != nil {
		err = k.qp.Close()
	}
	if k.srq != nil {
		err = errors.Join(err, k.srq.Close())
	}
	if k.cq != nil {
		err = errors.Join(err, k.cq.Close())
	}
	return err
}

// resolveBelow is Resolve over another device.
func (d *Device) resolveBelow(a rdma.Addr) (rdma.PeerID, error) {
	parsed, front, err := parseIdentity(a)
	if err != nil {
		return 0, err
	}
	peer, err := d.net.below.dev.Resolve(front)
	if err != nil {
		return 0, err
	}
	at := rawOfPeer(peer)
	id := d.peers.id(parsed.incarnation, parsed.pair, parsed.name, &at)
	d.peers.list[id].resolved, d.peers.list[id].at = true, at
	return id, nil
}

// send posts packets, and returns how many were accepted. full means that no more are
// accepted now.
func (k *carrier) send(packets []packet) (n int, full bool) {
	for i := range packets {
		k.request(&k.wrs[i], &packets[i])
	}
	n, err := k.qp.PostSend(k.wrs[:len(packets)])
	for i := n; i < len(packets); i++ {
		k.endRequest(k.wrs[i].ID)
	}
	if full = errors.Is(err, rdma.ErrAgain); full {
		for i := range packets[n:] { // the user may get the memory back before it is sent
			l := &packets[n+i]
			l.data, l.body = append(l.data, l.body...), nil
		}
	}
	for i := range packets {
		k.wrs[i].Body = rdma.Mem{}
	}
	return n, full
}

// request makes the request of a packet. What the device below reads after PostSend is
// copied.
func (k *carrier) request(wr *rdma.SendWR, l *packet) {
	front, body := l.data, l.body
	if body == nil && len(front) > rdma.HeadMax {
		front, body = nil, front
	}
	wr.Op, wr.Peer, wr.Flags, wr.ID = rdma.OpSend, l.to.peer(), rdma.Inline, inlineID
	wr.HeadLen = uint16(copy(wr.Head[:], front))
	if len(body) > k.inline {
		if len(k.free) == 0 {
			k.free = append(k.free, uint64(len(k.copies)))
			k.copies = append(k.copies, nil)
		}
		last := len(k.free) - 1
		id := k.free[last]
		k.free = k.free[:last]
		k.copies[id] = append(k.copies[id][:0], body...)
		body, wr.ID, wr.Flags = k.copies[id], id, 0
	}
	wr.Body = rdma.MemOf(body)
}

// endRequest processes the end of a request. A failure is a loss like any other.
func (k *carrier) endRequest(id uint64) {
	if id < uint64(len(k.copies)) {
		k.free = append(k.free, id)
	}
}

// receiveBelow processes the completions of the device below. It takes at most a few
// batches, so that a flood does not keep the caller from its own work.
func (d *Device) receiveBelow() (came bool) {
	k := d.net.below
	for range 4 {
		n := k.cq.Poll(k.comps[:])
		for i := range k.comps[:n] {
			done := &k.comps[i]
			d.clock.tick()
			switch done.Op {
			case rdma.OpLowWater:
				k.pool.RanLow(d.clock.now)
			case rdma.OpRecv:
				d.arriveBelow(done)
			case rdma.OpSend:
				k.endRequest(done.ID)
			}
			*done = rdma.Completion{}
		}
		if came = came || n > 0; n < len(k.comps) {
			break
		}
	}
	if came {
		k.cameAt = d.clock.now
	}
	if (came || d.polls.idle == 0) && !k.pool.Idle() {
		d.clock.tick()
		k.pool.RecordDrained(d.clock.now)
	}
	return came
}

// arriveBelow processes a message of the device below. Its buffer is returned unless it
// is kept.
func (d *Device) arriveBelow(c *rdma.Completion) {
	k := d.net.below
	k.pool.Took()
	for int(c.ID) >= len(k.slots) {
		k.slots = append(k.slots, &slot{id: uint32(len(k.slots))})
	}
	s := k.slots[c.ID]
	s.data, s.n, s.from = k.pool.Buffer(c.ID), int(c.Len), rawOfPeer(c.Peer)
	if c.Status != rdma.StatusOK {
		d.drops.Malformed++
	} else if d.arrive(s) {
		k.kept++
		return
	}
	k.pool.Return(c.ID)
}

// giveBack returns the buffer of a slot that was kept.
func (k *carrier) giveBack(s *slot) {
	k.kept--
	k.pool.Return(uint64(s.id))
}

// minPollDelay and maxPollDelay bound the time between two polls when one cannot sleep on
// the device below. The longer nothing arrives, the longer it is, and longer in a wait
// without a limit, which is that of the progress thread.
const (
	minPollDelay  = 100 * time.Microsecond
	maxPollDelay  = 8 * time.Millisecond
	idlePollDelay = 32 * time.Millisecond
)

// sleepBelow prepares a sleep on the device below, whose timers may end it before limit.
// longest is how long it may last if nothing shows that something has arrived.
func (d *Device) sleepBelow(limit, longest time.Duration) time.Duration {
	switch k := d.net.below; {
	case limit <= 0:
		return limit
	case k.file != nil:
		return k.file.Arm(rdma.NotifyAny, limit)
	case d.progress(): // only a poll shows what has arrived below
		d.soft.MarkMoved()
		return 0
	default:
		return min(limit, max((d.clock.sinceOpen()-k.cameAt)/4, minPollDelay), longest)
	}
}

// pollDelay returns the longest sleep on a device below that has no file.
func pollDelay(limit time.Duration) time.Duration {
	if limit == base.Forever {
		return idlePollDelay
	}
	return maxPollDelay
}

// closeRepeats is how often a busy peer is informed that the queue pair closes: the
// datagram may be lost.
const closeRepeats = 3

// sendClose informs the peers that the queue pair closes, so that none of them waits: a
// UD queue pair does not report that its peer has ended.
func (q *pair) sendClose() {
	for i := range closeRepeats {
		for _, p := range q.peers {
			if p != nil && !p.gone && (i == 0 || p.busy) {
				q.writeAck(p, 0, 0, kindClose, false)
			}
		}
		q.dev.flush()
	}
}

// Counters that only a device over another has.
const (
	// PacketsAcks counts packets that carried only an ack.
	PacketsAcks rdma.Counter = "packets.acks"
	// PacketsNoRoom counts early packets that were dropped.
	PacketsNoRoom rdma.Counter = "packets.no-room"
	// BuffersNow and BuffersPeak are the number of receive buffers, now and at most.
	BuffersNow  rdma.Counter = "receive.buffers"
	BuffersPeak rdma.Counter = "receive.buffers-most"
)

// countBelow reports the counters of the device below, and those of the carrier.
func (d *Device) countBelow(add func(name rdma.Counter, value uint64)) {
	k := d.net.below
	if count := k.dev.Caps().Count; count != nil {
		count(func(name rdma.Counter, value uint64) {
			if name != rdma.DatagramsRetransmitted && name != rdma.DatagramsDuplicate {
				add(name, value)
			}
		})
	}
	add(PacketsAcks, d.traffic.acks)
	add(PacketsNoRoom, d.drops.NoRoom)
	if !d.soft.Closed {
		s := k.pool.Stats()
		add(BuffersNow, uint64(s.Now))
		add(BuffersPeak, uint64(s.Peak))
	}
}
