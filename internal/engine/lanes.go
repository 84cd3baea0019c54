package engine

// The devices of a rank. Ranks of one host communicate over shared memory, all others
// over the network. Matching is above both, so a receive from any source is no special
// case. Each device is a lane: its queues, its known peers, and how to wait for it.
//
// A waiting rank polls its lanes and then parks in the first one, home. Meanwhile a
// goroutine per further lane waits in that lane and wakes home. None of this is on the
// path of a message, and with one lane none of it happens.

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/internal/sparse"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/recvpool"
)

// LaneConfig is a device and the ranks it reaches.
type LaneConfig struct {
	Device rdma.Device
	// Local reports that the device reaches the ranks of this host, by their index on
	// the host. Otherwise it reaches every rank: by name if its Caps have NameOf,
	// else by a handle that equals the rank in the world.
	Local bool
}

// lane is a device in use.
type lane struct {
	dev    rdma.Device
	attr   *rdma.Attr
	caps   rdma.Caps
	cq     rdma.CQ
	qp     rdma.QP
	srq    rdma.SRQ
	pool   *recvpool.Pool         // of posted receive buffers; nil: the device lends its own
	byPeer sparse.Table[p2p.Link] // links by the device's peer handle
	rings  []*p2p.Link            // links whose peers write packets into rings here
	number int                    // its index in Engine.lanes
	spin   int                    // polls before a waiter yields (pollsOf)
	local  bool
	alone  bool // only this rank itself sends over it
	// regs keeps memory registered where registration is expensive; nil: each use
	// registers.
	regs    *regcache.Cache
	sources *sources // use counts of send buffers; nil: short messages are always copied
	stages  *stages  // bounce buffers of short puts and gets; nil: none

	notify rdma.CQ     // wakes the progress thread; nil: it cannot
	event  rdma.Notify // of which events
	file   int         // on which the progress thread sleeps; -1: none

	// For lanes other than home:
	silence    uint32        // polls since the last traffic
	armed      rdma.CQ       // nil: the device cannot be waited for together with home
	kick       chan struct{} // nil: the progress thread waits in it
	waiting    atomic.Bool   // its goroutine waits, or is about to
	limit      atomic.Int64  // of that wait
	goroutines sync.WaitGroup
}

// openLanes opens the queues of all devices.
func (e *Held) openLanes() error {
	if len(e.cfg.Lanes) == 0 {
		return errors.New("engine: no device")
	}
	for i, c := range e.cfg.Lanes {
		d := &e.home
		if i > 0 {
			d = new(lane)
		}
		d.dev, d.attr, d.number, d.local = c.Device, c.Device.Attr(), i, c.Local
		d.spin = e.cfg.pollsOf(d.attr)
		d.alone = c.Local && e.client.LocalSize() == 1
		if d.attr.Pins {
			d.regs = regcache.New(d.dev, regcache.Config{Bytes: e.cfg.RegisterCache})
		}
		e.lanes = append(e.lanes, d)
		if err := d.openQueues(e.cfg.Posted); err != nil {
			return err
		}
		if err := e.openSources(d); err != nil {
			return err
		}
		d.openStages()
		if d.caps.Moved != nil {
			e.movers = append(e.movers, mover{moved: d.caps.Moved})
		}
		d.openNotify()
		if d.caps.Notify.Has(rdma.NotifyAny) && i > 0 && !d.alone {
			if d.armed = d.cq; !d.attr.Served {
				d.kick = make(chan struct{}, 1)
				d.goroutines.Go(func() { d.waitAndWake(e.home.cq) })
			}
		}
	}
	return nil
}

// openNotify determines the events that wake the progress thread.
func (d *lane) openNotify() {
	d.event, d.file = rdma.NotifySolicited, -1
	if !d.caps.Notify.Has(d.event) || d.attr.Served {
		d.event = rdma.NotifyAny
	}
	if d.caps.Notify.Has(d.event) {
		d.notify = d.cq
	}
}

func (d *lane) openQueues(posted bool) (err error) {
	if d.cq, err = d.dev.NewCQ(0); err != nil {
		return fmt.Errorf("completion queue on %s: %w", d.attr.Name, err)
	}
	d.caps = d.dev.Caps()
	if err = d.openReceive(posted); err != nil {
		return fmt.Errorf("receive queue on %s: %w", d.attr.Name, err)
	}
	d.qp, err = d.dev.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: d.cq, RecvCQ: d.cq, SRQ: d.srq})
	if err != nil {
		return fmt.Errorf("queue pair on %s: %w", d.attr.Name, err)
	}
	return nil
}

// A card lists how to reach a rank: a line with the name of its host, and a line with
// name and address of each device.
const cardHost = "host"

func (s *setup) card() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", cardHost, s.client.Host())
	for _, d := range s.lanes {
		fmt.Fprintf(&b, "\n%s %s", d.attr.Name, d.qp.Addr())
	}
	return []byte(b.String())
}

// readCard returns the host and a device's address from a card, and the names of the
// other devices.
func readCard(card, device string) (host string, addr rdma.Addr, others []string) {
	for line := range strings.Lines(card) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch name {
		case cardHost:
			host = value
		case device:
			addr = rdma.Addr(value)
		default:
			others = append(others, name)
		}
	}
	return host, addr, others
}

// laneTo returns the lane that carries messages to a rank, or nil.
func (s *setup) laneTo(rank int) *lane {
	near := s.client.Node(rank) == s.client.Node(s.rank)
	var found *lane
	for _, d := range s.lanes {
		switch {
		case d.local && near:
			return d
		case !d.local && found == nil:
			found = d
		}
	}
	return found
}

// laneOf returns the lane over which an operation completes, home if unknown.
func (e *Held) laneOf(x *p2p.Xfer) *lane {
	if x.Link != nil {
		return e.lanes[x.Link.Dev]
	}
	return &e.home
}

// unwatchedPark bounds a sleep while some lane or ring cannot be waited for.
const unwatchedPark = time.Millisecond

// armLanes arms all lanes other than home to wake it. It returns how long home may
// sleep, or 0 if there is work already.
func (e *Held) armLanes(timeout time.Duration) time.Duration {
	if len(e.home.rings) > 0 {
		timeout = min(timeout, unwatchedPark) // a write into a ring raises no event
	}
	for _, d := range e.lanes[1:] {
		if len(d.rings) > 0 {
			timeout = min(timeout, unwatchedPark)
		}
		if timeout = e.armBeside(d, timeout); timeout == 0 {
			return 0
		}
	}
	return timeout
}

// startWaiting makes somebody wait in an armed lane, the progress thread or a goroutine.
func (e *Held) startWaiting(d *lane, limit time.Duration) {
	switch {
	case d.kick == nil && e.thread.stop.Load():
		d.armed.Disarm()
	case d.waiting.Load():
		if d.kick == nil {
			d.armed.Disarm() // it has armed the lane itself
		}
	case d.kick == nil:
		d.limit.Store(int64(limit))
		d.waiting.Store(true)
		e.thread.alarm.signal()
	default:
		d.waiting.Store(true)
		d.kick <- struct{}{}
	}
}

// waitAndWake waits in a lane whenever home is about to sleep. It may still be waiting
// when that happens again; any event ends its wait. It wakes home after it has cleared
// waiting, so that a driver that read the old value does not stay asleep.
func (d *lane) waitAndWake(home rdma.CQ) {
	for range d.kick {
		_ = d.armed.WaitArmed(parkIdle)
		d.waiting.Store(false)
		home.Wake()
	}
}

// pending returns the number of messages that devices have accepted and not sent yet.
func (e *Held) pending() (n int) {
	for _, d := range e.lanes {
		n += d.qp.Pending()
	}
	return n
}

// closeLanes closes the queues and devices, also those that openLanes has not reached.
func (e *Held) closeLanes() error {
	for _, d := range e.lanes {
		if d.kick != nil {
			close(d.kick)
			d.cq.Wake()
			d.goroutines.Wait()
		}
	}
	var err error
	for _, d := range e.lanes {
		d.closeRings()
		if d.qp != nil {
			d.qp.Close()
		}
		if d.srq != nil {
			d.srq.Close()
		}
		err = errors.Join(err, d.closeBuffers())
		if d.cq != nil {
			d.cq.Close()
		}
		if d.stages != nil {
			err = errors.Join(err, d.stages.close())
		}
		if d.regs != nil {
			err = errors.Join(err, d.regs.Close())
		}
		err = errors.Join(err, d.dev.Close())
	}
	for _, c := range e.cfg.Lanes[len(e.lanes):] {
		err = errors.Join(err, c.Device.Close())
	}
	return err
}

// registrar implements p2p.Memory and p2p.Sources with a link's device.
type registrar struct{ e *Held }

func (r registrar) Register(l *p2p.Link, mem []byte, acc rdma.Access) (rdma.MR, error) {
	d := r.e.lanes[l.Dev]
	if d.regs != nil {
		return d.regs.Get(mem, acc)
	}
	return d.dev.Register(mem, acc)
}

func (r registrar) Deregister(l *p2p.Link, mr rdma.MR) {
	d := r.e.lanes[l.Dev]
	if d.regs != nil {
		_ = d.regs.Put(mr)
		return
	}
	_ = d.dev.Deregister(mr)
}

// RegisterFixed registers memory until DropFixed, with every device where registration
// is expensive.
func (r *Engine) RegisterFixed(mem []byte) error {
	e := r.lock()
	defer e.unlock()
	if e.closed {
		return nil
	}
	for _, d := range e.lanes {
		if d.regs == nil {
			continue
		}
		if err := d.regs.Fix(mem, rdma.RemoteRead|rdma.RemoteWrite); err != nil {
			e.dropFixed(mem)
			return err
		}
	}
	return nil
}

// DropFixed ends every registration of memory that is about to be unmapped.
func (r *Engine) DropFixed(mem []byte) error {
	e := r.lock()
	defer e.unlock()
	if e.closed {
		return nil // Close has ended them
	}
	return e.dropFixed(mem)
}

func (e *Held) dropFixed(mem []byte) (err error) {
	for _, d := range e.lanes {
		if d.regs != nil {
			err = errors.Join(err, d.regs.Drop(mem))
		}
		if d.sources != nil {
			lo := rdma.MemOf(mem).Addr()
			d.sources.uses.ForgetRange(lo, lo+uint64(len(mem)))
		}
	}
	return err
}
