package udrel

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// The device: Open creates it over another device, progress is the work of every Poll,
// sleep prepares a wait on the device below, and Close closes it. One lock guards all of
// it. It is not held while a goroutine waits.

// Config holds the parameters of Open.
type Config struct {
	// Device has the UD queue pairs. It is closed with the new device.
	Device rdma.Device
	// Name is the value of Attr.Name. "": ud.
	Name string
	// Packet is the maximum packet length, including the header. 0: the maximum of
	// Device, but at most 16 KB and a header. Over an Ethernet it should fit into a
	// frame: the loss of one fragment loses the whole packet.
	Packet int
	// PeerTimeout is how long a peer may be silent, while something is in flight to it,
	// before it counts as gone for good. 0: 30 s.
	PeerTimeout time.Duration
	// Least and Most are the initial and the maximum number of packet buffers. 0: 2 MB
	// and 8 MB of them, but at least 128 and at most 512 and 2048.
	Least, Most int
	// AckEvery is how many packets share one ack, if no packet goes to the peer and
	// none is requested before (T1 6.6.1). 0: 50.
	AckEvery int
	// MaxTransfer is the longest Read or Write (Attr.MaxTransfer). 0: 4 GB less one
	// byte. Tests lower it.
	MaxTransfer int
	// NoThread disables the progress thread. Reads and Writes of peers then wait until
	// this process polls again.
	NoThread bool
}

const (
	maxSend            = 60 << 10
	defaultPeerTimeout = 30 * time.Second
	initialMemory      = 2 << 20
	maxMemory          = 8 << 20
	maxAckEvery        = reliable.Window
)

// Device implements RD over another device's UD.
type Device struct {
	mu   sync.Mutex
	soft soft.Device

	cfg            Config
	below          rdma.Device
	cq             rdma.CQ       // of below, for all queue pairs
	file           rdma.NotifyCQ // the same, nil if one cannot sleep on it
	maxInlineBelow int
	attr           rdma.Attr
	pairs          []*pair
	start          time.Time
	now            time.Duration
	ticked         bool          // now is the time of the current call
	polled         bool          // Poll makes progress, not the progress thread
	shows          bool          // and has completions to return
	idlePolls      int           // polls without arrivals left before timers are checked
	cameAt         time.Duration // last arrival, of those that progress found

	windows        *reliable.Pool[posted]
	messages       messagePool
	resolved       []bool // by PeerID; false: it has only sent to us
	joins          freeList[joinBuffer]
	joinings       freeList[joining]
	reorderBuffers freeList[reorderBuffer]
	header         header // of the packet being processed
	comps          [pollBatch]rdma.Completion
	traffic        traffic
}

const pollBatch = 32

var _ rdma.CountingDevice = (*Device)(nil)

// named is a Device whose device below knows the names of peers.
type named struct {
	*Device
	names rdma.NamedDevice
}

func (n named) NameOf(p rdma.PeerID) (uint32, bool) { return n.names.NameOf(p) }

// Open creates a device over another. It is an rdma.NamedDevice if that is one.
func Open(c Config) (rdma.Device, error) {
	d, err := open(c)
	if err != nil {
		return nil, err
	}
	if names, ok := c.Device.(rdma.NamedDevice); ok {
		return named{d, names}, nil
	}
	return d, nil
}

func open(c Config) (*Device, error) {
	if c.Device == nil {
		return nil, errors.New("udrel: no device is given; set Config.Device to one that has UD queue pairs")
	}
	below := c.Device.Attr()
	switch {
	case below.Transports&rdma.UD == 0:
		return nil, fmt.Errorf("udrel: device %s has no UD queue pairs; use one that has, such as rdma/dgram: %w", below.Name, rdma.ErrUnsupported)
	case below.LocalKeys:
		return nil, fmt.Errorf("udrel: device %s sends only from registered memory, which users of this device do not register: %w", below.Name, rdma.ErrUnsupported)
	}
	if err := c.complete(below); err != nil {
		return nil, err
	}
	cq, err := c.Device.NewCQ(c.Most + pairDepth)
	if err != nil {
		return nil, fmt.Errorf("udrel: a completion queue of %s: %w", below.Name, err)
	}
	d := &Device{cfg: c, below: c.Device, cq: cq, start: time.Now(), attr: attrOf(&c, below), maxInlineBelow: below.MaxInline, windows: reliable.NewPool[posted](c.params())}
	d.soft.Init("udrel", &d.mu, soft.Hooks{Sleep: d.sleep, Awake: d.awake, Progress: d.progressBeside, Posted: func() { d.idlePolls = 0 }})
	d.soft.InitRegions(rand.Reader, false)
	d.soft.Thread.Disabled, d.soft.Thread.Timers = c.NoThread, true
	if d.file = rdma.Notifier(cq, rdma.NotifyAny|rdma.NotifyFile); d.file != nil {
		d.soft.SetSource(d.file.File(), nil)
	}
	return d, nil
}

// complete fills in defaults and checks the values.
func (c *Config) complete(below *rdma.Attr) (err error) {
	if c.Name == "" {
		c.Name = "ud"
	}
	if c.Packet == 0 {
		c.Packet = min(below.MaxSend, maxInline+2*rdma.HeadMax)
	}
	if c.PeerTimeout == 0 {
		c.PeerTimeout = defaultPeerTimeout
	}
	if c.AckEvery == 0 {
		c.AckEvery = defaultAckEvery
	}
	if c.Least == 0 {
		c.Least = min(max(initialMemory/c.Packet, 128), 512)
	}
	if c.Most == 0 {
		c.Most = max(min(max(maxMemory/c.Packet, 128), 2048), c.Least)
	}
	if c.Packet < 4*rdma.HeadMax || c.Packet > below.MaxSend {
		return fmt.Errorf("udrel: a packet of %d bytes is out of range; device %s takes %d to %d", c.Packet, below.Name, 4*rdma.HeadMax, below.MaxSend)
	}
	if c.AckEvery < 0 || c.AckEvery > maxAckEvery {
		return fmt.Errorf("udrel: an ack for every %d packets is out of range; choose 1 to %d", c.AckEvery, maxAckEvery)
	}
	if c.MaxTransfer, err = ddp.MaxTransfer(c.MaxTransfer); err != nil {
		return fmt.Errorf("udrel: %w", err)
	}
	return nil
}

// attrOf returns the device's attributes. The peer's processor moves all memory.
func attrOf(c *Config, below *rdma.Attr) rdma.Attr {
	a := rdma.Attr{
		Name: c.Name, Transports: rdma.RD, Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		MaxSend: maxSend, MaxInline: maxInline, MaxTransfer: c.MaxTransfer, RemoteCPU: c.NoThread, Oversubscribed: below.Oversubscribed,
		SendCost: below.SendCost, RegCost: rdma.Cost{Fixed: 100}, EndCost: float64(ackDelay), // a short message requests no ack
	}
	// An access is a message in each direction.
	perByte := below.SendCost.PerByte + below.SendCost.Fixed/2/float64(c.Packet)
	a.SendCost.PerByte = perByte
	a.ReadCost = rdma.Cost{Fixed: 2 * below.SendCost.Fixed, PerByte: perByte}
	a.PutCost = a.ReadCost
	return a
}

// Attr returns the device's attributes.
func (d *Device) Attr() *rdma.Attr { return &d.attr }

// Resolve returns the handle for an address.
func (d *Device) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.soft.Closed {
		return 0, rdma.ErrClosed
	}
	id, err := d.below.Resolve(a)
	if err != nil {
		return id, err
	}
	for int(id) >= len(d.resolved) {
		d.resolved = append(d.resolved, false)
	}
	d.resolved[id] = true
	return id, nil
}

// tick reads the clock once per call.
func (d *Device) tick() {
	if !d.ticked {
		d.ticked = true
		d.now = time.Since(d.start)
	}
}

// idlePollsPerService is how many calls without arrivals pass between two checks of the
// timers.
const idlePollsPerService = 4

// progress processes arrivals and sends what may be sent. It reports whether anything
// arrived.
func (d *Device) progress() (came bool) {
	d.ticked, d.shows = false, false
	if came = d.takeIn(); came {
		d.cameAt = d.now
	}
	if came || d.idlePolls == 0 {
		d.idlePolls = idlePollsPerService
		for _, q := range d.pairs {
			if q != nil && (len(q.busy) > 0 || q.batch.n > 0 || !q.pool.Idle()) {
				d.tick()
				q.service()
			}
		}
	}
	d.idlePolls--
	return came
}

// progressBeside is progress for the progress thread.
func (d *Device) progressBeside() time.Duration {
	if d.idlePolls = 0; d.progress() {
		d.soft.MarkMoved() // there may be room for a post
	}
	return 0
}

const (
	// sendRetryDelay is how long to wait when the device below accepts no more packets.
	sendRetryDelay = 100 * time.Microsecond
	// minPollDelay and maxPollDelay bound the time between two polls when one cannot
	// sleep on the device below. The longer nothing arrives, the longer it is, and
	// longer in a wait without a limit, which is that of the progress thread.
	minPollDelay  = 100 * time.Microsecond
	maxPollDelay  = 8 * time.Millisecond
	idlePollDelay = 32 * time.Millisecond
)

// sleep prepares a sleep on the device below and returns how long it may last: until one
// of our timers is due, or one of that device.
func (d *Device) sleep(limit time.Duration) time.Duration {
	longest := maxPollDelay
	if limit == soft.Forever {
		longest = idlePollDelay
	}
	d.ticked = false
	d.tick()
	for _, q := range d.pairs {
		if q == nil {
			continue
		}
		if q.batch.n > 0 {
			limit = min(limit, sendRetryDelay)
		}
		for _, p := range q.busy {
			limit = min(limit, p.wake(d.now, d.cfg.PeerTimeout)-d.now)
		}
	}
	switch {
	case limit <= 0:
		d.idlePolls = 0
	case d.file == nil && d.progress(): // only a poll shows what has arrived below
		d.soft.MarkMoved()
		return 0
	case d.file == nil:
		return min(limit, max((d.now-d.cameAt)/4, minPollDelay), longest)
	default:
		limit = d.file.Arm(rdma.NotifyAny, limit)
	}
	return limit
}

// awake ends a sleep, perhaps because of a timer.
func (d *Device) awake() {
	d.idlePolls = 0
	if d.file != nil {
		d.file.Disarm()
	}
}

// Close closes the device, everything created with it, and the device below.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.soft.Closed {
		return nil
	}
	var err error
	for _, q := range d.pairs {
		if q != nil {
			err = errors.Join(err, q.shut())
		}
	}
	d.soft.Close()
	return errors.Join(err, d.below.Close())
}
