package udrel

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// The device: Open creates it over another device, progress is the work of every Poll,
// and Close closes it. One lock guards all of it, because of the progress goroutine
// (progress.go). It is not held while a goroutine waits.

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
	// MaxTransfer is the longest Read or Write (Attr.MaxTransfer). 0: 2 GB less one
	// byte. Tests lower it.
	MaxTransfer int
	// NoThread disables the progress goroutine.
	NoThread bool
}

const (
	maxSend            = 60 << 10
	maxTransfer        = 1<<31 - 1
	defaultPeerTimeout = 30 * time.Second
	initialMemory      = 2 << 20
	maxMemory          = 8 << 20
)

// Device implements RD over another device's UD.
type Device struct {
	mu        sync.Mutex
	cfg       Config
	below     rdma.Device
	attr      rdma.Attr
	queues    []*queue
	pairs     []*pair
	start     time.Time
	now       time.Duration
	ticked    bool // now is the time of the current call
	idlePolls int  // polls without arrivals left before timers are checked
	calls     uint // by the application, for the progress goroutine
	parked    int  // queues in Wait
	closed    bool
	// inBackground reports that the progress goroutine is running progress.
	inBackground bool

	windowPool     windowPool
	messagePool    messagePool
	regions        table
	guard          guard.Guard
	resolved       []bool   // by PeerID; false: it has only sent to us
	joins          [][]byte // memory in which messages of several packets are reassembled
	joinings       []*joining
	reorderBuffers []*reorderBuffer
	batch          batch // packets about to be sent
	comps          [pollBatch]rdma.Completion
	traffic        traffic
	closing        chan struct{} // closed with the device
	progressDone   sync.WaitGroup
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
	d := &Device{cfg: c, below: c.Device, start: time.Now(), closing: make(chan struct{}), attr: attrOf(&c, below)}
	return d, nil
}

// complete fills in defaults and checks the values.
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

// attrOf returns the device's attributes. The peer's processor moves all memory.
func attrOf(c *Config, below *rdma.Attr) rdma.Attr {
	a := rdma.Attr{
		Name: c.Name, Transports: rdma.RD, Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		MaxSend: maxSend, MaxInline: maxInline, MaxTransfer: c.MaxTransfer, RemoteCPU: true, Oversubscribed: below.Oversubscribed,
		SendCost: below.SendCost, RegCost: rdma.Cost{Fixed: 100},
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
// arrived. It skips a queue with a waiter, unless the waiter itself calls.
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

// service drives the peers of all queue pairs.
func (d *Device) service() {
	for _, q := range d.pairs {
		if q != nil && (len(q.busy) > 0 || !q.pool.Idle()) {
			d.tick()
			q.service()
		}
	}
}

// wake returns when service has work.
func (d *Device) wake() time.Duration {
	at := never
	for _, q := range d.pairs {
		if q != nil {
			at = min(at, q.wake())
		}
	}
	return at
}

// wakeAll lets waiters check the timers again.
func (d *Device) wakeAll() {
	for _, c := range d.queues {
		if c.parked > 0 {
			c.below.Wake()
		}
	}
}

// Close closes the device, everything created with it, and the device below.
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
