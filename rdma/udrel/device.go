package udrel

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// The device: Open makes it of another, progress is what every Poll does, Close ends it.
// One lock guards all of it, because of the goroutine that attends (attend.go). It is not
// held while somebody waits.

// Config says how to open a device.
type Config struct {
	// Device has the UD queue pairs. It is closed with the device.
	Device rdma.Device
	// Name is what Attr says. "": ud.
	Name string
	// Packet is the longest packet, our header included. 0: what Device sends at once, at
	// most 16 KB and a header. Over an Ethernet it should fit into a frame: of a packet
	// that was fragmented, one lost fragment loses all.
	Packet int
	// PeerTimeout is how long a peer may be silent, while something is under way to it,
	// before it counts as gone for good. 0: 30 s.
	PeerTimeout time.Duration
	// Least and Most are how many packets there is room for at first, and when more come
	// at once than that. 0: 2 MB and 8 MB of them, but not less than 128 and not more
	// than 512 and 2048.
	Least, Most int
	// MaxTransfer is the longest Read or Write (Attr.MaxTransfer). 0: 2 GB less one byte.
	// Tests lower it.
	MaxTransfer int
	// NoThread leaves the packets alone while nobody polls.
	NoThread bool
}

const (
	maxSend            = 60 << 10
	maxTransfer        = 1<<31 - 1
	defaultPeerTimeout = 30 * time.Second
	initialMemory      = 2 << 20
	maxMemory          = 8 << 20
)

// Device is a device for RD over another one's UD.
type Device struct {
	mu        sync.Mutex
	cfg       Config
	below     rdma.Device
	attr      rdma.Attr
	queues    []*queue
	pairs     []*pair
	start     time.Time
	now       time.Duration
	ticked    bool // now is that of the call under way
	idlePolls int  // calls that may find nothing before timers are looked at
	calls     uint // of the program, for the progress goroutine
	parked    int  // queues in Wait
	closed    bool
	// attending says that the progress goroutine is at work.
	inBackground bool

	windowPool     windowPool
	messagePool    messagePool
	regions        table
	guard          guard.Guard
	resolved       []bool   // by PeerID: it was resolved, not only heard
	joins          [][]byte // memory in which messages of several packets are joined
	joinings       []*joining
	reorderBuffers []*reorderBuffer
	batch          batch // packets that are about to leave
	comps          [pollBatch]rdma.Completion
	traffic        traffic
	closing        chan struct{} // closed with the device
	progressDone   sync.WaitGroup
}

const pollBatch = 32

var _ rdma.CountingDevice = (*Device)(nil)

// named is a Device that knows the names of its peers, because the one below does.
type named struct {
	*Device
	names rdma.NamedDevice
}

func (n named) NameOf(p rdma.PeerID) (uint32, bool) { return n.names.NameOf(p) }

// Open makes a device of another. It is an rdma.NamedDevice if that is one.
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
		return nil, fmt.Errorf("udrel: device %s has no UD queue pairs; take one that has, such as package dgram's: %w", below.Name, rdma.ErrUnsupported)
	case below.LocalKeys:
		return nil, fmt.Errorf("udrel: device %s sends from registered memory alone, which users of this one do not give: %w", below.Name, rdma.ErrUnsupported)
	}
	if err := c.complete(below); err != nil {
		return nil, err
	}
	d := &Device{cfg: c, below: c.Device, start: time.Now(), closing: make(chan struct{}), attr: attrOf(&c, below)}
	return d, nil
}

// complete fills in what was left open, and refuses what cannot be.
func (c *Config) complete(below *rdma.Attr) error {
	if c.Name == "" {
		c.Name = "ud"
	}
	if c.Packet == 0 {
		c.Packet = min(below.MaxSend, maxInline+2*rdma.HeadMax)
	}
	if c.PeerTimeout == 0 {
		c.PeerTimeout = defaultPeerTimeout
	}
	if c.MaxTransfer == 0 {
		c.MaxTransfer = maxTransfer
	}
	if c.MaxTransfer < 0 || c.MaxTransfer > maxTransfer {
		return fmt.Errorf("udrel: Config.MaxTransfer is %d; want 1 to %d, or 0 for the most", c.MaxTransfer, maxTransfer)
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
	return nil
}

// attrOf is what the device can do. The peer's processor moves all memory.
func attrOf(c *Config, below *rdma.Attr) rdma.Attr {
	a := rdma.Attr{
		Name: c.Name, Transports: rdma.RD, Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		MaxSend: maxSend, MaxInline: maxInline, MaxTransfer: c.MaxTransfer, RemoteCPU: true, Oversubscribed: below.Oversubscribed,
		SendCost: below.SendCost, RegCost: rdma.Cost{Fixed: 100},
	}
	// An access is a message there and one back.
	perByte := below.SendCost.PerByte + below.SendCost.Fixed/2/float64(c.Packet)
	a.SendCost.PerByte = perByte
	a.ReadCost = rdma.Cost{Fixed: 2 * below.SendCost.Fixed, PerByte: perByte}
	a.PutCost = a.ReadCost
	return a
}

// Attr says what the device can do.
func (d *Device) Attr() *rdma.Attr { return &d.attr }

// Resolve gives the handle for an address.
func (d *Device) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
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

// tick looks at the clock, once in a call.
func (d *Device) tick() {
	if !d.ticked {
		d.ticked = true
		d.now = time.Since(d.start)
	}
}

// idlePollsPerService is how many calls that find nothing go by between two looks at the timers.
const idlePollsPerService = 4

// progress takes in what has come and sends what may go. It reports whether anything came.
// A queue in which somebody waits is left to who waits, but for the one that calls.
func (d *Device) progress(by *queue) (came bool) {
	d.ticked = false
	for _, c := range d.queues {
		if c.parked == 0 || c == by {
			came = c.takeIn() || came
		}
	}
	if came || d.idlePolls == 0 {
		d.idlePolls = idlePollsPerService
		d.service()
	}
	d.idlePolls--
	return came
}

// tend serves the peers of all queue pairs.
func (d *Device) service() {
	for _, q := range d.pairs {
		if q != nil && (len(q.busy) > 0 || !q.pool.Idle()) {
			d.tick()
			q.service()
		}
	}
}

// wake is when tend has something to do.
func (d *Device) wake() time.Duration {
	at := never
	for _, q := range d.pairs {
		if q != nil {
			at = min(at, q.wake())
		}
	}
	return at
}

// rouse lets those who wait look at the timers again.
func (d *Device) wakeAll() {
	for _, c := range d.queues {
		if c.parked > 0 {
			c.below.Wake()
		}
	}
}

// Close ends the device, what was made with it, and the one below.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	var err error
	for _, q := range d.pairs {
		if q != nil {
			err = errors.Join(err, q.shut())
		}
	}
	d.closed = true
	close(d.closing)
	d.wakeAll()
	for _, c := range d.queues {
		c.closed = true
	}
	d.mu.Unlock()
	d.progressDone.Wait()
	return errors.Join(err, d.below.Close())
}
