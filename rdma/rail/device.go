package rail

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// The device: Open combines other devices, Resolve finds a peer on all rails, and Close
// closes it and them. The device also keeps free memory for reuse: buffers, operations,
// and the state of busy flows.

// Rail is one of the devices.
type Rail struct {
	// Name is its name in reports, usually that of its interface.
	Name string
	// Network names the network it is on, such as 10.1.0.0/24. Rails of the same
	// network communicate with each other. Empty: rails at the same index of
	// Config.Rails do.
	Network string
	// Device provides RD, and its sends complete when the peer's device has the
	// message: what was only handed to the kernel would be lost unnoticed when a cable
	// is cut. Package rdma/dgram does so. Its peer timeout should be long, since a peer
	// is gone when all devices report it, and a rail whose device has declared the peer
	// gone is used again only if the device supports that. The device belongs to the
	// rails and is closed with them.
	Device rdma.Device
}

// Config holds the parameters of Open.
type Config struct {
	Rails []Rail // 1 to 8
	// Name is a number that identifies this process to peers, in a job its rank.
	Name uint32
	// Timeout is how long a peer that something is in flight to may be silent on all
	// rails before it counts as gone. 0: until the devices of all rails report it.
	Timeout time.Duration
	// NoThread disables the progress thread. Reads and Writes of peers
	// then wait until this process polls again. It is implied where a goroutine cannot
	// sleep on a rail.
	NoThread bool
}

const (
	maxRails = 8
	// pieceSize is the longest piece of a striped operation: short enough that rails
	// finish together, and long enough that pieces are inexpensive.
	pieceSize = 32 << 10
	batchSize = 32 // completions polled from a rail at a time
)

// peer is the state of a peer that all queue pairs share.
type peer struct {
	incarnation uint64
	name        uint32
	inner       [maxRails]rdma.PeerID // handles on the rails
	reached     [maxRails]bool        // which handles are valid
	resolved    bool                  // false: it has only sent to us
}

// Device is a device made of several.
type Device struct {
	attr     rdma.Attr
	rails    []Rail
	speeds   []float64 // from the devices' cost estimates, in bytes per nanosecond
	name     uint32
	timeout  time.Duration
	maxPiece int
	clock    func() time.Duration

	mu      sync.Mutex // for calls while another goroutine waits
	soft    soft.Device
	below   soft.Below // what the progress thread sleeps on
	now     time.Duration
	pairs   []*pair
	queues  []*queue
	peers   []peer // by PeerID
	known   map[uint64]rdma.PeerID
	scratch [batchSize]rdma.Completion
	drops   Drops

	spare              *operation
	buffers            [bufferSizes][][]byte // for copies
	freePieces         []*pieces
	freeReorderBuffers []*reorderBuffer
	freeTickets        []*tickets
	freeRequests       []*requests
}

// Drops counts dropped pieces by cause.
type Drops struct {
	Doubles   uint64 // received before: the cost of leaving a rail
	Outdated  uint64 // from before the peer was declared gone
	Barred    uint64 // from a peer with too many refused memory accesses
	Malformed uint64 // not valid in this version
}

var _ rdma.NamedDevice = (*Device)(nil)

// Open combines devices. If it fails, they still belong to the caller.
func Open(c Config) (*Device, error) {
	if len(c.Rails) == 0 || len(c.Rails) > maxRails {
		return nil, fmt.Errorf("rail: a device is made of 1 to %d rails, not of %d", maxRails, len(c.Rails))
	}
	start := time.Now()
	d := &Device{
		rails: append([]Rail(nil), c.Rails...), name: c.Name, timeout: c.Timeout,
		known: map[uint64]rdma.PeerID{},
		clock: func() time.Duration { return time.Since(start) },
	}
	d.attr = rdma.Attr{
		Name: "rail", Transports: rdma.RD, Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		RegCost: rdma.Cost{Fixed: 100},
	}
	d.soft.Init("rail", &d.mu, soft.Hooks{Sleep: d.sleep, Awake: d.below.Awake, Progress: d.progressBeside, Deregister: d.keepResults})
	d.soft.InitRegions(bufio.NewReader(rand.Reader), false)
	d.soft.Thread.Disabled, d.soft.Thread.Timers = c.NoThread, true
	for i := range d.rails {
		if d.soft.Thread.Disabled {
			break
		}
		ok, err := canDrive(&d.rails[i])
		if err != nil {
			return nil, err
		}
		d.soft.Thread.Disabled = !ok
	}
	d.attr.RemoteCPU = d.soft.Thread.Disabled
	longest, together := int(^uint(0)>>1), 0.0
	for _, r := range d.rails {
		a := r.Device.Attr()
		switch {
		case a.Transports&rdma.RD == 0:
			return nil, fmt.Errorf("rail: %s (%s) provides no reliable datagrams, so it cannot be a rail", r.Name, a.Name)
		case a.LocalKeys:
			return nil, fmt.Errorf("rail: %s (%s) requires registered memory for sends, so it cannot be a rail", r.Name, a.Name)
		case a.MaxSend < 2*rdma.HeadMax+dataLen:
			return nil, fmt.Errorf("rail: %s (%s) sends at most %d bytes, so it cannot be a rail", r.Name, a.Name, a.MaxSend)
		}
		speed := 1.0
		if a.SendCost.PerByte > 0 {
			speed = 1 / a.SendCost.PerByte
		}
		d.speeds = append(d.speeds, speed)
		together += speed
		longest = min(longest, a.MaxSend)
		d.attr.Oversubscribed = d.attr.Oversubscribed || a.Oversubscribed
		if d.attr.SendCost.Fixed == 0 || a.SendCost.Fixed < d.attr.SendCost.Fixed {
			d.attr.SendCost = a.SendCost
		}
	}
	d.attr.MaxSend = longest - commonLen
	d.attr.MaxInline = min(maxInline, d.attr.MaxSend-rdma.HeadMax)
	d.attr.CopyAbove = 0 // a copy costs less than waiting for the peer's ack
	d.attr.PutCost = rdma.Cost{Fixed: 2 * d.attr.SendCost.Fixed, PerByte: 1 / together}
	d.attr.ReadCost = d.attr.PutCost
	d.maxPiece = min(pieceSize, longest-dataLen)
	if err := d.below.Open(); err != nil {
		return nil, fmt.Errorf("rail: sleep on the rails: %w", err)
	}
	d.soft.SetSource(d.below.FD(), nil)
	return d, nil
}

// Attr returns the device's attributes.
func (d *Device) Attr() *rdma.Attr { return &d.attr }

// Drops returns how many pieces were dropped, by cause.
func (d *Device) Drops() Drops {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drops
}

// RailCounts counts what a rail has carried.
type RailCounts struct {
	Bytes uint64 // sent, including headers
	Left  uint64 // times it was left for a peer because it did not deliver
	Back  uint64 // times it was used again
	Again uint64 // its pieces that were sent again over others
}

// Counts returns the counts of each rail, in the order of Config.Rails.
func (d *Device) Counts() []RailCounts {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]RailCounts, len(d.rails))
	for _, q := range d.pairs {
		for i := range q.rails {
			c := &q.rails[i].RailCounts
			list[i].Bytes += c.Bytes
			list[i].Left += c.Left
			list[i].Back += c.Back
			list[i].Again += c.Again
		}
	}
	return list
}

// Register registers memory under an unguessable key that is valid on all rails: this
// package places what arrives itself, and nothing is registered with their devices.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	return d.soft.Register(mem, acc)
}

// Deregister ends a registration.
func (d *Device) Deregister(mr rdma.MR) error { return d.soft.Deregister(mr) }

// reachMemory returns a part of a region if the whole access of total bytes at address is
// allowed; otherwise no byte may move. A zero-length access is not checked (RFC 5040
// sections 5.1 and 5.2).
func (d *Device) reachMemory(key, address, total, offset uint64, n int, need rdma.Access) ([]byte, bool) {
	if total == 0 {
		return nil, n == 0
	}
	access := d.soft.Table.Placement
	if need == rdma.RemoteRead {
		access = d.soft.Table.Source
	}
	mem, fault := access(soft.Domain, 0, ddp.Tag(key), address, total)
	if key>>32 != 0 || fault != ddp.NoFault || offset > total || uint64(n) > total-offset {
		return nil, false
	}
	return mem[offset : offset+uint64(n)], true
}

// Resolve returns the handle for an address, and resolves the peer on as many rails as
// possible. Whether it is reachable shows when messages are sent.
func (d *Device) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.soft.Closed {
		return 0, rdma.ErrClosed
	}
	parsed, err := parseAddress(a)
	if err != nil {
		return 0, err
	}
	found := false
	var failures error
	var inner [maxRails]rdma.PeerID
	var reached [maxRails]bool
	for i, j := range match(d.rails, parsed.rails) {
		if inner[i], err = d.rails[i].Device.Resolve(parsed.rails[j].at); err != nil {
			failures = errors.Join(failures, fmt.Errorf("%s: %w", d.rails[i].Name, err))
			continue
		}
		reached[i], found = true, true
	}
	if !found {
		return 0, fmt.Errorf("rail: peer %d cannot be reached over any rail: %w", parsed.name, failures)
	}
	id := d.peerID(parsed.incarnation, parsed.name)
	p := &d.peers[id]
	p.resolved = true
	for i := range d.rails {
		if reached[i] && !p.reached[i] {
			p.inner[i], p.reached[i] = inner[i], true
		}
	}
	for _, q := range d.pairs {
		if int(id) < len(q.flows) && q.flows[id] != nil {
			d.reach(q.flows[id])
		}
	}
	return id, nil
}

// peerID returns the handle of a peer and creates one if needed.
func (d *Device) peerID(incarnation uint64, name uint32) rdma.PeerID {
	id, ok := d.known[incarnation]
	if !ok {
		id = rdma.PeerID(len(d.peers))
		d.known[incarnation] = id
		d.peers = append(d.peers, peer{incarnation: incarnation, name: name})
	}
	return id
}

// reach opens the paths of a flow on which its peer can be addressed.
func (d *Device) reach(f *flow) {
	for i := range f.paths {
		f.paths[i].reached = d.peers[f.peer].reached[i]
	}
}

// NameOf returns the Config.Name of a peer.
func (d *Device) NameOf(id rdma.PeerID) (name uint32, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(id) >= len(d.peers) {
		return 0, false
	}
	return d.peers[id].name, true
}

// Close closes the queue pairs and the rails.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.soft.Closed {
		return nil
	}
	d.soft.Closed = true
	var err error
	for _, q := range d.pairs {
		err = errors.Join(err, q.end())
	}
	for len(d.queues) > 0 {
		d.queues[0].close()
	}
	d.soft.Close()
	d.below.Close()
	for i := range d.rails {
		err = errors.Join(err, d.rails[i].Device.Close())
	}
	return err
}

func last[T any](list *[]T) (v T, ok bool) {
	n := len(*list)
	if n == 0 {
		return v, false
	}
	v = (*list)[n-1]
	*list = (*list)[:n-1]
	return v, true
}

// Memory for copies is kept by size: 2 KB, 4 KB ... 32 KB, and the size of the longest
// message.
const (
	minBuffer   = 2 << 10
	bufferSizes = 6
)

// sizeOfBuffer returns the index of the size class for n bytes, and its size.
func (d *Device) sizeOfBuffer(n int) (index, size int) {
	index = bits.Len(uint(max(n, minBuffer)-1)) - bits.Len(uint(minBuffer-1))
	if index >= bufferSizes-1 {
		return bufferSizes - 1, d.attr.MaxSend + commonLen
	}
	return index, minBuffer << index
}

// takeBuffer returns memory for n bytes.
func (d *Device) takeBuffer(n int) []byte {
	i, size := d.sizeOfBuffer(n)
	if b, ok := last(&d.buffers[i]); ok {
		return b
	}
	return make([]byte, size)
}

// giveBack returns memory from takeBuffer, or nil.
func (d *Device) giveBack(b []byte) {
	if b != nil {
		i, _ := d.sizeOfBuffer(len(b))
		d.buffers[i] = append(d.buffers[i], b)
	}
}

func (d *Device) takePieces() *pieces {
	if p, ok := last(&d.freePieces); ok {
		return p
	}
	return new(pieces)
}

func (d *Device) takeReorderBuffer() *reorderBuffer {
	if s, ok := last(&d.freeReorderBuffers); ok {
		return s
	}
	return new(reorderBuffer)
}

func (d *Device) takeTickets() *tickets {
	if t, ok := last(&d.freeTickets); ok {
		return t
	}
	return new(tickets)
}

func (d *Device) takeRequests() *requests {
	if a, ok := last(&d.freeRequests); ok {
		return a
	}
	return new(requests)
}
