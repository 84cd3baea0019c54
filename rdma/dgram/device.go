package dgram

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/internal/pin"
)

// The device: Open makes it with its socket, progress is what every Poll does, Close
// ends it. One lock guards all of it; it is held while bytes move and never while
// somebody waits. Who is at the other end of a datagram is found by incarnation and queue pair,
// not by address, so a peer may be heard before it is resolved.

// Config says how to open a device.
type Config struct {
	// Bind is the address of the socket: an interface of this host and port 0 or a
	// port that is free. It is published as it is, so it must be one that peers reach.
	Bind netip.AddrPort
	// JobKey is the secret that all processes of the job share. A datagram that was
	// not sealed with it is dropped before anything is done for it.
	JobKey []byte
	// Encrypt makes datagrams unreadable to others, and protects every byte against who
	// can change them on their way. Peers must have the same setting.
	Encrypt bool
	// Name is a number that peers know this process by: NameOf tells them, also before they
	// resolve it. In a job it is the rank.
	Name uint32
	// Datagram is the size in which RD sends, without the headers of UDP and IP.
	// 0: 1472 bytes, which Ethernet carries in one piece, or as much as the longest message
	// needs on the loopback interface. A UD message is always one datagram, whatever its length.
	Datagram int
	// SocketBuffer is what to ask of the kernel for each direction, in bytes. 0: 4 MB.
	// The kernel may give less.
	SocketBuffer int
	// NoCRC leaves the bytes of the user out of the checksum of what this device sends;
	// headers are summed all the same. It is for hosts that talk to themselves, where
	// nothing can happen to bytes between two processes, and costs the half of a copy less.
	NoCRC bool
	// NoRuns lets every datagram go through the kernel by itself. Otherwise those of an
	// Ethernet go in runs, and a capture on this host may show a run as one long datagram.
	NoRuns bool
	// NoThread leaves the socket alone while nobody polls (attend.go). Reads and Writes of
	// peers then wait until this process polls again.
	NoThread bool
	// Strict is for tests and benchmarks of what adapters need: registering memory locks its
	// pages, and what is sent or received into must be registered (Attr.LocalKeys), except
	// what is sent inline. It needs Linux.
	Strict bool
	// MaxTransfer is the longest Read or Write (Attr.MaxTransfer). 0: 4 GB less one byte, as
	// long as RFC 5040 allows. Tests lower it.
	MaxTransfer int
	// PeerTimeout is how long a peer may be silent on RD, while something is under way to it,
	// before it counts as gone. 0: 30 s, and a second if the network says that its host
	// is out of reach. A device that is one rail of several is given more: a peer that
	// was given up is not heard again, and a link that was cut may be repaired.
	PeerTimeout time.Duration
}

const (
	ethernetDatagram = 1500 - 28
	loopbackDatagram = maxSend + longestHeader + ddp.UntaggedLen + sealLen
	minDatagram      = 576
	maxDatagram      = 65507
	socketBuffer     = 4 << 20

	maxSend    = 60 << 10 // fits into one datagram, for UD
	maxRegions = 1 << 20
	maxPairs   = 1 << 16
)

// Device is a device for UD and RD over one UDP socket.
type Device struct {
	mu             sync.Mutex
	progressThread progressThread
	queues         []*queue // completion queues
	parked         int      // of those, in Wait, asleep or standing by

	attr        rdma.Attr
	peerTimeout time.Duration // Config.PeerTimeout
	socket      *socket
	keys        *keyring
	name        uint32
	datagram    int // size of those that RD sends
	start       time.Time
	idlePolls   int // calls that may find nothing before timers are looked at
	// serviceAt is until when there is nothing to tend to, if nothing comes and nobody calls.
	serviceAt time.Duration
	now       time.Duration
	ticked    bool // now is that of the call under way
	closed    bool
	polled    bool // it is a Poll that makes progress
	shows     bool // and it has something for the program
	batching  bool // datagrams come faster than one in a call
	cameLast  bool // the last call found one

	store          store // of slots for datagrams that came
	part           slot  // of one that holds several datagrams, while it is taken in
	batch          []*slot
	outbox         outbox
	windowPool     windowPool
	reorderBuffers []*reorderBuffer
	freeRequests   []*requests
	joinBuffers    [][]byte // memory in which messages of several datagrams are joined
	joined         []*joining
	spare          []*message
	bodies         bodies

	table *ddp.Table
	pins  pin.Pages // in strict mode
	pairs []*pair
	peers []address              // by PeerID
	known map[uint64]rdma.PeerID // by incarnation and queue pair

	latest   uint64 // incarnation and queue pair that were looked for last, and what was found
	latestID rdma.PeerID

	drops    Drops
	traffic  traffic // counters.go
	refusals budget  // of error messages on UD
	inPlace  inPlace
	guard    guard.Guard
	// disturb, in tests, does to datagrams what a bad network does.
	disturb func(*outbox)
}

// Drops counts datagrams that were dropped, by the cause.
type Drops struct {
	Unsendable uint64 // going out, but the kernel refused them for good
	Corrupt    uint64 // the checksum was wrong: look at the cables
	Strangers  uint64 // not sealed with the job's key: somebody else uses the port
	Secrecy    uint64 // encrypted and we do not encrypt, or the other way round: see Config.Encrypt
	Malformed  uint64 // sealed by a peer, but nothing that this version understands
	Astray     uint64 // for a process or a queue pair that is no more
	Replayed   uint64 // sealed by a peer, but so long ago that somebody has recorded them
	Barred     uint64 // from a peer that has tried too often to reach memory that it may not
	Late       uint64 // pieces of a Write-Record that had ended
	NoRoom     uint64 // for want of a buffer; RD sends them again
}

var _ rdma.NamedDevice = (*Device)(nil)

// Open opens a socket and makes a device of it.
func Open(c Config) (*Device, error) {
	if c.Datagram == 0 {
		c.Datagram = ethernetDatagram
		if c.Bind.Addr().IsLoopback() {
			c.Datagram = loopbackDatagram
		}
	}
	if c.SocketBuffer == 0 {
		c.SocketBuffer = socketBuffer
	}
	if c.Datagram < minDatagram || c.Datagram > maxDatagram {
		return nil, fmt.Errorf("dgram: a datagram of %d bytes is out of range; choose one from %d to %d", c.Datagram, minDatagram, maxDatagram)
	}
	if !c.Bind.IsValid() {
		return nil, errors.New("dgram: no address to bind the socket to is given; set Config.Bind to an address of this host with port 0")
	}
	transfer, err := ddp.MaxTransfer(c.MaxTransfer)
	if err != nil {
		return nil, fmt.Errorf("dgram: %w", err)
	}
	keys, err := newKeyring(c.JobKey, c.Encrypt)
	if err != nil {
		return nil, err
	}
	s, err := openSocket(c.Bind, c.SocketBuffer)
	if err != nil {
		return nil, fmt.Errorf("dgram: open a UDP socket on %v: %w", c.Bind, err)
	}
	if !c.NoRuns {
		s.allowRuns(c.Datagram)
	}
	d := &Device{
		attr: rdma.Attr{
			Name: "dgram", Transports: rdma.RD | rdma.UD, Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead, rdma.OpWriteRecord),
			MaxSend: maxSend, MaxInline: maxInline, MaxTransfer: transfer, CopyAbove: strictMax, RemoteCPU: c.NoThread,
			LocalKeys: c.Strict, Pins: c.Strict,
		},
		socket: s, keys: keys, name: c.Name, peerTimeout: c.PeerTimeout, start: time.Now(),
		datagram: c.Datagram, batch: make([]*slot, 0, batchSize),
		outbox: newOutbox(),
		table:  ddp.NewTable(rand.Reader, maxRegions),
		pairs:  make([]*pair, 1), // 0 is no queue pair
		known:  map[uint64]rdma.PeerID{},
	}
	d.attr.SendCost, d.attr.ReadCost, d.attr.PutCost, d.attr.RegCost = costs(d.mss(), c.NoCRC && !c.Encrypt)
	d.attr.EndCost = float64(ackDelay) // a short message asks for no ack
	d.progressThread.disabled = c.NoThread
	if c.Strict {
		d.attr.MaxInline = strictMax
	}
	if c.NoCRC {
		d.keys.flags = flagPartial
	}
	return d, nil
}

// costs are what was measured over loopback beside rdma/iwarp (speed_unsafe_test.go): a
// datagram costs a fixed time, and each of its bytes another. What a host sends itself
// without a checksum is copied once more if it is a message, and comes to its place if it
// is a Read or a Write (muster bench latency, rendezvous by get and put).
func costs(mss int, partial bool) (send, get, put, register rdma.Cost) {
	const half, perDatagram = 3400, 1900
	message, access := 0.19, 0.19
	if partial && mss >= inPlaceMin {
		message, access = 0.21, 0.125
	}
	each := perDatagram / float64(mss)
	return rdma.Cost{Fixed: half, PerByte: message + each}, rdma.Cost{Fixed: 2 * half, PerByte: access + each},
		rdma.Cost{Fixed: 2 * half, PerByte: access + each}, rdma.Cost{Fixed: 100}
}

// Attr says what the device can do.
func (d *Device) Attr() *rdma.Attr { return &d.attr }

// Drops reports how many datagrams were dropped, and why.
func (d *Device) Drops() Drops {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drops
}

// mss is what of an RD message goes into one datagram.
func (d *Device) mss() int {
	return d.datagram - longestHeader - ddp.UntaggedLen - sealLen
}

// Resolve gives the handle for an address.
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
	if !d.socket.reaches(parsed.at.addrPort) {
		return 0, fmt.Errorf("dgram: %v cannot be reached from the socket on %v, which is of the other IP version; bind both to the same", parsed.at.addrPort, d.socket.local)
	}
	id := d.peerID(parsed.incarnation, parsed.pair, parsed.name, &parsed.at.raw)
	d.peers[id].resolved = true
	d.peers[id].at = parsed.at // where a stranger was heard from may be another interface
	return id, nil
}

// NameOf is the number that a peer was opened with.
func (d *Device) NameOf(id rdma.PeerID) (name uint32, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(id) >= len(d.peers) {
		return 0, false
	}
	return d.peers[id].name, true
}

// know gives the handle of a peer, old or new.
func (d *Device) peerID(l incarnation, pair uint16, name uint32, from *rawAddress) rdma.PeerID {
	both := uint64(l)<<16 | uint64(pair)
	if both == d.latest && len(d.peers) > 0 {
		return d.latestID // who was heard last is often heard next
	}
	id, ok := d.known[both]
	if !ok {
		id = rdma.PeerID(len(d.peers))
		d.known[both] = id
		d.peers = append(d.peers, address{incarnation: l, pair: pair, name: name, at: endpoint{from.addrPort(), *from}})
	}
	d.latest, d.latestID = both, id
	return id
}

// find gives the handle of a peer that is known.
func (d *Device) find(l incarnation, pair uint16) (id rdma.PeerID, ok bool) {
	both := uint64(l)<<16 | uint64(pair)
	if both != d.latest || len(d.peers) == 0 {
		if id, ok = d.known[both]; !ok {
			return 0, false
		}
		d.latest, d.latestID = both, id
	}
	return d.latestID, true
}

// clock is the time since the device was opened.
func (d *Device) clock() time.Duration { return time.Since(d.start) }

// tick looks at the clock, once in a call: it costs as much as a short message may.
func (d *Device) tick() {
	if !d.ticked {
		d.ticked = true
		d.now = d.clock()
	}
}

// progress takes in what has come and sends what may go. It takes no more than a few
// batches, so that a flood does not keep the caller from its own work.
//
// Timers are looked at only now and then while nothing comes: who spins calls several
// times a microsecond, and reading the clock and asking each peer takes as long as the
// call of the kernel.
func (d *Device) progress() {
	d.ticked, d.shows = false, false
	came := d.receiveDatagrams()
	if came || d.idlePolls == 0 {
		d.idlePolls = idlePollsPerService
		d.socket.refusals(d.reject)
		if came || d.outbox.n > 0 || d.serviceDue() {
			d.service()
			d.flush()
			if d.serviceAt = 0; !came {
				d.serviceAt = d.nextTimer()
			}
		}
	}
	d.idlePolls--
}

// idlePollsPerService is how many calls that find nothing go by between two looks at the timers.
const idlePollsPerService = 4

// receiveDatagrams takes in what has come: one datagram, or batches of them if they come so fast
// that the call before found one too. Long ones that are expected come one by one, each to
// its place.
func (d *Device) receiveDatagrams() (came bool) {
	if d.expects() {
		for range batchSize {
			if !d.receiveInPlace() {
				break
			}
			if came = true; !d.expects() {
				break
			}
		}
		return came
	}
	if !d.batching {
		one := d.receiveOne()
		d.batching, d.cameLast = one && d.cameLast, one
		return one
	}
	n := 0
	for range 4 {
		n = d.receive()
		came = came || n > 0
		if n < d.socket.maxMessages() {
			break
		}
	}
	d.batching = n > 1
	return came
}

// reject notes that the network says nobody is at an address. It may be a forgery, so
// it only makes us less patient with peers there that are silent (peer.go). process says
// that the host is there and the process is not.
func (d *Device) reject(at netip.AddrPort, process bool) {
	if !process && d.peerTimeout > 0 {
		return // a link may be repaired
	}
	for id := range d.peers {
		if d.peers[id].at.addrPort != at {
			continue
		}
		for _, q := range d.pairs {
			if q != nil && id < len(q.peers) && q.peers[id] != nil {
				q.peers[id].rejected = true
			}
		}
	}
}

// receiveOne takes in one datagram.
func (d *Device) receiveOne() bool {
	if !d.fillBatch(1) {
		return false
	}
	last := len(d.batch) - 1
	s := d.batch[last]
	if !d.socket.receiveOne(s) {
		return false
	}
	d.orderAfterReceiving()
	if d.takeIn(s) {
		d.batch[last] = nil // the slot is kept
		d.batch = d.batch[:last]
	}
	return true
}

// fillBatch takes slots for so many datagrams, and reports whether there is one.
func (d *Device) fillBatch(n int) bool {
	for len(d.batch) < n {
		s := d.store.take()
		if s == nil {
			break
		}
		d.batch = append(d.batch, s)
	}
	return len(d.batch) > 0
}

// receive takes in one batch of datagrams, and says how many messages of the kernel it was.
func (d *Device) receive() int {
	most := d.socket.maxMessages()
	d.fillBatch(most)
	n := d.socket.receive(d.batch[:min(most, len(d.batch))])
	if n > 0 {
		d.orderAfterReceiving()
	}
	for i, s := range d.batch[:n] {
		if !d.takeIn(s) {
			continue
		}
		d.batch[i] = nil // the slot is kept
	}
	kept := d.batch[:0]
	for _, s := range d.batch {
		if s != nil {
			kept = append(kept, s)
		}
	}
	d.batch = kept
	return n
}

// tend does what is due for every peer that is not idle.
func (d *Device) service() {
	for _, q := range d.pairs {
		if q != nil && q.working() {
			d.tick()
			q.service()
		}
	}
}

// rested reports whether it is time to tend. Where nothing is under way the clock is not asked.
func (d *Device) serviceDue() bool {
	if d.serviceAt == never {
		return false
	}
	d.tick()
	return d.now >= d.serviceAt
}

// restless is until when tend has nothing to do, if nothing comes and nobody calls. What
// waits for a buffer is tried again each time.
func (d *Device) nextTimer() time.Duration {
	for _, q := range d.pairs {
		if q == nil {
			continue
		}
		if len(q.records) > 0 {
			return 0
		}
		for _, p := range q.busy {
			if p.waiting() {
				return 0
			}
		}
	}
	return d.wake()
}

// wake is when tend has something to do again.
func (d *Device) wake() time.Duration {
	at := never
	for _, q := range d.pairs {
		if q == nil {
			continue
		}
		at = min(at, q.recordsDue())
		for _, p := range q.busy {
			at = min(at, p.sender.wake(), p.receiver.wake(d.now), p.probeAt())
		}
	}
	return at
}

// Close closes what was made with the device, and returns when nothing of it is left.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	for _, q := range d.pairs {
		if q != nil {
			q.shut()
		}
	}
	for len(d.queues) > 0 {
		d.queues[0].shut()
	}
	d.unlockAll()
	d.closed = true
	d.mu.Unlock()
	d.progressThread.stop()
	return d.socket.close()
}
