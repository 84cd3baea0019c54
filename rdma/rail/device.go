package rail

import (
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
)

// The device: Open makes it of others, Resolve finds a peer on all rails, Close ends it
// and them. What is needed often is kept here and given out again: buffers, operations,
// and the memory of flows that are busy.

// Rail is one of the devices.
type Rail struct {
	// Name is what it is called in reports, usually that of its interface.
	Name string
	// Network names the network it is on, such as 10.1.0.0/24. Rails with the same one
	// talk to each other. Empty: rails talk to those with the same place in the list.
	Network string
	// Device offers RD, and its sends complete when the peer's device has the message:
	// what was only handed to the kernel would be missed by nobody when a cable is cut.
	// Package rdma/dgram does so. It should be patient, since a peer is gone when all
	// devices say so, and a rail whose device has given it up is used again only if the
	// device can. It belongs to the rails and is closed with them.
	Device rdma.Device
}

// Config says what to make a device of.
type Config struct {
	Rails []Rail // 1 to 8
	// Name is the number by which peers know this process, in a job its rank.
	Name uint32
	// Timeout is how long a peer may be silent on all rails, while something is under way
	// to it, before it counts as gone. 0: until the devices of all rails say so.
	Timeout time.Duration
	// NoThread leaves the rails alone while nobody polls (attend.go). Reads and Writes of
	// peers then wait until this process polls again. It is always so where a rail cannot
	// be slept on.
	NoThread bool
}

const (
	maxRails = 8
	// pieceSize is the longest piece that is striped: short enough that rails end
	// together, and long enough that pieces cost little.
	pieceSize = 32 << 10
	batchSize = 32 // completions that are asked of a rail at a time
)

// peer is what is known of a peer, whichever queue pair talks to it.
type peer struct {
	incarnation uint64
	name        uint32
	inner       [maxRails]rdma.PeerID // handles of the rails
	reached     [maxRails]bool        // which of them count
	resolved    bool                  // it was resolved, not only heard
}

// Device is a device made of several.
type Device struct {
	attr     rdma.Attr
	rails    []Rail
	speeds   []float64 // what their devices say, in bytes a nanosecond
	name     uint32
	timeout  time.Duration
	maxPiece int
	clock    func() time.Duration

	mu             sync.Mutex // for the calls that may come while another goroutine waits
	progressThread progressThread
	parked         int // who wait for a queue, or are asleep on its file
	now            time.Duration
	closed         bool
	regions        regions
	guard          guard.Guard
	pairs          []*pair
	queues         []*queue
	peers          []peer // by PeerID
	known          map[uint64]rdma.PeerID
	scratch        [batchSize]rdma.Completion
	drops          Drops

	spare              *operation
	buffers            [bufferSizes][][]byte // for copies
	freePieces         []*pieces
	freeReorderBuffers []*reorderBuffer
	freeTickets        []*tickets
	freeRequests       []*requests
}

// Drops counts what came and was dropped, by the cause.
type Drops struct {
	Doubles   uint64 // pieces that had come before: the price of leaving a rail
	Outdated  uint64 // pieces from before the peer was given up
	Barred    uint64 // from a peer that has tried too often to reach memory that it may not
	Malformed uint64 // nothing that this version understands
}

var _ rdma.NamedDevice = (*Device)(nil)

// Open makes a device of others. If it fails, they are the caller's still.
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
	d.progressThread.disabled = c.NoThread
	for i := range d.rails {
		if d.progressThread.disabled {
			break
		}
		ok, err := canDrive(&d.rails[i])
		if err != nil {
			return nil, err
		}
		d.progressThread.disabled = !ok
	}
	d.attr.RemoteCPU = d.progressThread.disabled
	longest, together := int(^uint(0)>>1), 0.0
	for _, r := range d.rails {
		a := r.Device.Attr()
		switch {
		case a.Transports&rdma.RD == 0:
			return nil, fmt.Errorf("rail: %s (%s) offers no reliable datagrams, so it cannot be a rail", r.Name, a.Name)
		case a.LocalKeys:
			return nil, fmt.Errorf("rail: %s (%s) wants memory to be registered before it is sent, so it cannot be a rail", r.Name, a.Name)
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
	d.attr.CopyAbove = 0 // a copy costs less than to wait for the peer's ack
	d.attr.PutCost = rdma.Cost{Fixed: 2 * d.attr.SendCost.Fixed, PerByte: 1 / together}
	d.attr.ReadCost = d.attr.PutCost
	d.maxPiece = min(pieceSize, longest-dataLen)
	return d, nil
}

// Attr says what the device can do.
func (d *Device) Attr() *rdma.Attr { return &d.attr }

// Drops reports how much was dropped, and why.
func (d *Device) Drops() Drops {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drops
}

// RailCounts reports what a rail has carried, and what was done about it.
type RailCounts struct {
	Bytes uint64 // that were given to it, with what stands before each piece
	Left  uint64 // how often it was left for a peer because it did not answer
	Back  uint64 // how often it was used again
	Again uint64 // pieces that went again over others
}

// Counts tells it for each rail, in the order of Config.Rails.
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

// Register gives memory a key that nobody can guess. It holds for all rails.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.MR{}, rdma.ErrClosed
	}
	return d.regions.register(mem, acc)
}

// Deregister ends the registration.
func (d *Device) Deregister(mr rdma.MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.ErrClosed
	}
	d.keepResults(mr.RKey)
	d.guard.End(mr.RKey)
	return d.regions.deregister(mr)
}

// Resolve gives the handle for an address, and finds the peer on as many rails as can
// be. Whether it is there will be seen when it is talked to.
func (d *Device) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
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

// know gives the handle of a peer, old or new.
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

// NameOf is the number by which a peer is known in the job.
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
	if d.closed {
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	err := d.progressThread.stop()
	d.mu.Lock()
	for _, q := range d.pairs {
		err = errors.Join(err, q.end())
	}
	for _, c := range d.queues {
		err = errors.Join(err, c.end())
	}
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

// Memory for copies is kept by size: 2 KB, 4 KB ... 32 KB, and what the longest
// message takes.
const (
	minBuffer   = 2 << 10
	bufferSizes = 6
)

// sizeOfBuffer is the place in the list of sizes of a buffer for n bytes, and its size.
func (d *Device) sizeOfBuffer(n int) (index, size int) {
	index = bits.Len(uint(max(n, minBuffer)-1)) - bits.Len(uint(minBuffer-1))
	if index >= bufferSizes-1 {
		return bufferSizes - 1, d.attr.MaxSend + commonLen
	}
	return index, minBuffer << index
}

// takeBuffer gives memory for n bytes.
func (d *Device) takeBuffer(n int) []byte {
	i, size := d.sizeOfBuffer(n)
	if b, ok := last(&d.buffers[i]); ok {
		return b
	}
	return make([]byte, size)
}

// giveBack takes memory back that takeBuffer gave, or nothing.
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
