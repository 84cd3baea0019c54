package engine

// The devices of a rank. Ranks of one host talk over shared memory, all others
// over the network, and matching is above both, so a receive from anybody is no
// special case. Each device is a lane: its queues, the peers it knows, and how it
// is waited for.
//
// A rank that waits polls its lanes, and then parks in the first one, home. A
// goroutine per further lane waits in that lane meanwhile and wakes home up.
// Nothing of this happens on the way of a message, and with one lane not at all.

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/recvpool"
	"github.com/muster-mpi/muster/internal/regcache"
	"github.com/muster-mpi/muster/rdma"
)

// LaneConfig is a device and whom it reaches.
type LaneConfig struct {
	Device rdma.Device
	// Local says that it reaches the ranks of this host, each by its place among
	// them. Otherwise it reaches every rank: a device that names its peers by the name,
	// any other by the handle, which must be the number in the world.
	Local bool
}

type lane struct {
	dev    rdma.Device
	attr   *rdma.Attr
	cq     rdma.CQ
	qp     rdma.QP
	srq    rdma.SRQ
	pool   *recvpool.Pool   // of posted buffers; nil: the device lends
	names  rdma.NamedDevice // nil: its handles are places on the node, or ranks
	byPeer []*p2p.Link      // links by the device's handle
	rings  []*p2p.Link      // that write packets into rings here
	number int              // its place in Engine.lanes
	local  bool
	alone  bool // only this rank itself can send over it
	// regs keeps memory registered where that is dear; nil: each use registers.
	regs    *regcache.Cache
	sources *sources // buffers that short messages may be sent from; nil: all are copied
	stages  *stages  // what short puts and gets are copied through; nil: they are not

	// For lanes other than home:
	silence    uint32       // polls since the last traffic on it
	armed      rdma.ArmedCQ // nil: it cannot be waited for beside home
	kick       chan struct{}
	waiting    atomic.Bool // its goroutine is waiting, or about to
	goroutines sync.WaitGroup
}

func (e *Engine) openLanes() error {
	if len(e.cfg.Lanes) == 0 {
		return errors.New("engine: no device")
	}
	for i, c := range e.cfg.Lanes {
		d := &e.home
		if i > 0 {
			d = new(lane)
		}
		d.dev, d.attr, d.number, d.local = c.Device, c.Device.Attr(), i, c.Local
		d.alone = c.Local && e.client.LocalSize() == 1
		d.names, _ = c.Device.(rdma.NamedDevice)
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
		if cq, ok := d.cq.(rdma.MovingCQ); ok {
			e.movers = append(e.movers, mover{cq: cq})
		}
		if armed, ok := d.cq.(rdma.ArmedCQ); ok && i > 0 && !d.alone {
			d.armed, d.kick = armed, make(chan struct{}, 1)
			d.goroutines.Go(func() { d.waitAndWake(e.home.cq) })
		}
	}
	return nil
}

func (d *lane) openQueues(posted bool) (err error) {
	if d.cq, err = d.dev.NewCQ(0); err != nil {
		return fmt.Errorf("completion queue on %s: %w", d.attr.Name, err)
	}
	if err = d.openReceive(posted); err != nil {
		return fmt.Errorf("receive queue on %s: %w", d.attr.Name, err)
	}
	d.qp, err = d.dev.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: d.cq, RecvCQ: d.cq, SRQ: d.srq})
	if err != nil {
		return fmt.Errorf("queue pair on %s: %w", d.attr.Name, err)
	}
	return nil
}

// The card of a rank tells others how to reach it: a line with the name of its
// host, and one with name and address of each device.
const cardHost = "host"

func (e *Engine) card() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", cardHost, e.client.Host())
	for _, d := range e.lanes {
		fmt.Fprintf(&b, "\n%s %s", d.attr.Name, d.qp.Addr())
	}
	return []byte(b.String())
}

// readCard finds a device's address on a card, and the host.
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

// laneTo is the lane that carries messages to a rank, nil if there is none.
func (e *Engine) laneTo(rank int) *lane {
	near := e.client.Node(rank) == e.client.Node(e.rank)
	var found *lane
	for _, d := range e.lanes {
		switch {
		case d.local && near:
			return d
		case !d.local && found == nil:
			found = d
		}
	}
	return found
}

// laneOf is the lane over which an operation ends, home if that is not known.
func (e *Engine) laneOf(x *p2p.Xfer) *lane {
	if x.Link != nil {
		return e.lanes[x.Link.Dev]
	}
	return &e.home
}

// unwatchedPark bounds a sleep while a lane cannot be waited for.
const unwatchedPark = time.Millisecond

// armLanes gets all lanes but home ready to wake it. It gives how long home may
// sleep at most; 0 if there is something to do at once.
func (e *Engine) armLanes(timeout time.Duration) time.Duration {
	if len(e.home.rings) > 0 {
		timeout = min(timeout, unwatchedPark) // an adapter that fills a slot tells nobody
	}
	for _, d := range e.lanes[1:] {
		if len(d.rings) > 0 {
			timeout = min(timeout, unwatchedPark)
		}
		switch {
		case d.alone: // what this rank sent itself has been polled
		case d.armed == nil:
			timeout = min(timeout, unwatchedPark)
		case !d.armed.Arm():
			return 0
		case d.waiting.CompareAndSwap(false, true):
			d.kick <- struct{}{}
		}
	}
	return timeout
}

// waitAndWake waits in a lane whenever home is about to sleep. It may still be
// waiting when that happens again: what comes ends its wait all the same. Home is
// woken after waiting was taken back, so that who saw the old value does not
// sleep on it.
func (d *lane) waitAndWake(home rdma.CQ) {
	for range d.kick {
		_ = d.armed.WaitArmed(parkIdle)
		d.waiting.Store(false)
		home.Wake()
	}
}

// pending is the number of messages that devices have taken and still hold.
func (e *Engine) pending() (n int) {
	for _, d := range e.lanes {
		if q, ok := d.qp.(rdma.DrainQP); ok {
			n += q.Pending()
		}
	}
	return n
}

func (e *Engine) closeLanes() error {
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
		d.qp.Close()
		d.srq.Close()
		err = errors.Join(err, d.closeBuffers())
		d.cq.Close()
		if d.stages != nil {
			err = errors.Join(err, d.stages.close())
		}
		if d.regs != nil {
			err = errors.Join(err, d.regs.Close())
		}
		err = errors.Join(err, d.dev.Close())
	}
	return err
}

// registrar registers memory with a link's device for the machine.
type registrar struct{ e *Engine }

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

// RegisterFixed registers memory until DropFixed with every device for which
// that is dear.
func (e *Engine) RegisterFixed(mem []byte) error {
	e.lock()
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
func (e *Engine) DropFixed(mem []byte) error {
	e.lock()
	defer e.unlock()
	if e.closed {
		return nil // Close has ended them
	}
	return e.dropFixed(mem)
}

func (e *Engine) dropFixed(mem []byte) (err error) {
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
