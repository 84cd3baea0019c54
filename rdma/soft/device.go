package soft

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
	base "github.com/muster-mpi/muster/rdma/internal/soft"
)

// The device: Open opens its socket, progress is the work of every Poll, and Close
// closes it. One lock guards all of it; it is held while bytes move and never while a
// goroutine waits. The peer of a datagram is found by incarnation and queue pair, not
// by address, so a peer may send before it is resolved.

// Config holds the parameters of Open.
type Config struct {
	// Bind is the address of the socket: an interface of this host, and port 0 or a
	// free port. It is published as it is, so peers must be able to reach it.
	Bind netip.AddrPort
	// Paths are the interfaces to use together, 1 to 8, instead of Bind. Only RD uses more
	// than the first.
	Paths []Path
	// JobKey is the secret that all processes of the job share. A datagram that was not
	// sealed with it is dropped before anything is allocated for it.
	JobKey []byte
	// Encrypt encrypts datagrams and authenticates every byte. All peers must have the
	// same setting.
	Encrypt bool
	// Name is a number that identifies this process to peers. NameOf returns it, even
	// for a peer that was not resolved. In a job it is the rank.
	Name uint32
	// Label is the name by which users select the device (Attr.Name). "": "dgram".
	Label string
	// Device, if not nil, has UD queue pairs: the new device uses one of them instead of a
	// socket (carrier.go). It has RD alone, needs neither Bind nor JobKey, and closes
	// Device when it is closed.
	Device rdma.Device
	// AckEvery is how many packets share one ack, if no packet goes to the peer and none
	// is requested before. 0: 50 with Device (T1 6.6.1), otherwise 16.
	AckEvery int
	// Datagram is the size of RD datagrams, without the headers of UDP and IP. 0: 1472
	// bytes, which fit into one Ethernet frame, or on the loopback interface as much as
	// the longest message needs; with Device its longest message, but at most 16 KB and
	// headers. A UD message is always one datagram, whatever its length.
	Datagram int
	// SocketBuffer is the size to request from the kernel for received datagrams, in
	// bytes; an eighth of it is requested for those to send. 0: 2 MB. The kernel may grant
	// less.
	SocketBuffer int
	// NoCRC excludes the payload of sent datagrams from the checksum; headers are still
	// covered. It is for peers on the same host, where bytes are not corrupted between
	// two processes, and saves half the cost of a copy.
	NoCRC bool
	// NoRuns disables segmentation and receive offload (UDP_SEGMENT, UDP_GRO). With
	// offload, Ethernet datagrams pass through the kernel in runs, and a capture on
	// this host may show a run as one long datagram.
	NoRuns bool
	// NoThread disables the progress thread. Reads and Writes of peers
	// then wait until this process polls again.
	NoThread bool
	// Served means that the owner makes progress while the program computes (rdma.Attr.Served),
	// in place of a progress thread.
	Served bool
	// Strict emulates the requirements of adapters, for tests and benchmarks:
	// registration locks pages, and memory that is sent from or received into must be
	// registered (Attr.LocalKeys), unless it is sent inline. It needs Linux.
	Strict bool
	// MaxTransfer is the longest Read or Write (Attr.MaxTransfer). 0: 4 GB less one
	// byte, the maximum of RFC 5040. Tests lower it.
	MaxTransfer int
	// PeerTimeout is how long an RD peer may be silent, while something is in flight to
	// it, before it counts as gone. 0: 30 s, or one second if an ICMP error reports
	// that its host is unreachable. With several paths it must be silent on all of them.
	// A peer that was declared gone is not accepted again.
	PeerTimeout time.Duration
}

const (
	ethernetDatagram = 1500 - 28
	loopbackDatagram = maxSend + longestHeader + ddp.UntaggedLen + sealLen
	minDatagram      = 576
	maxDatagram      = 65507
	// socketBuffer has room for what peers send while a rank waits for a core: 1820
	// Ethernet datagrams, which is 21 ms at 1 Gbit/s. The kernel doubles the size, and
	// counts its own overhead.
	socketBuffer = 2 << 20
	// sendShare is the part of it that is requested for sending. Datagrams wait there
	// only while the cable is busy; a longer queue would delay later ones.
	sendShare = 8

	maxSend  = 60 << 10 // fits into one datagram, for UD
	maxPairs = 1 << 16
	domain   = base.Domain
)

// Device implements UD and RD over one UDP socket, or RD over another device.
type Device struct {
	mu   sync.Mutex
	soft base.Device

	attr        rdma.Attr
	peerTimeout time.Duration // Config.PeerTimeout
	name        uint32
	datagram    int // size of RD datagrams

	net      network // paths.go
	keys     *keyring
	clock    clock // timers.go
	polls    pollState
	incoming receiveSide // receive.go
	outgoing sendSide    // outbox.go

	table *ddp.Table // of soft
	pairs []*pair
	peers peerTable // address.go

	drops    Drops
	traffic  traffic // counters.go
	refusals budget  // for error messages on UD
	inPlace  inPlace
	guard    *guard.Guard // of soft
}

// Drops counts dropped datagrams by cause.
type Drops struct {
	Unsendable uint64 // outgoing, rejected by the kernel
	Corrupt    uint64 // wrong checksum: check the cables
	Strangers  uint64 // not sealed with the job's key, or changed after that: somebody else uses the port
	Secrecy    uint64 // encrypted although we do not encrypt, or the reverse: see Config.Encrypt
	Malformed  uint64 // sealed by a peer, but not valid in this version
	Astray     uint64 // for a process or queue pair that no longer exists
	Replayed   uint64 // sealed by a peer, but so long ago that it must be a replay
	Barred     uint64 // from a peer with too many refused memory accesses
	Late       uint64 // pieces of a Write-Record that had ended
	NoRoom     uint64 // no free buffer; RD retransmits them
}

// Open opens a socket and returns a device that uses it, or one that uses Config.Device.
func Open(c Config) (*Device, error) {
	if c.Device != nil {
		return openOver(c)
	}
	if len(c.Paths) > reliable.MaxPaths {
		return nil, fmt.Errorf("soft: a device has 1 to %d paths, not %d", reliable.MaxPaths, len(c.Paths))
	}
	if len(c.Paths) > 0 {
		c.Bind = c.Paths[0].Bind
	}
	if c.Datagram == 0 {
		c.Datagram = ethernetDatagram
		if c.Bind.Addr().IsLoopback() && !slices.ContainsFunc(c.Paths, func(p Path) bool { return !p.Bind.Addr().IsLoopback() }) {
			c.Datagram = loopbackDatagram
		}
	}
	if c.SocketBuffer == 0 {
		c.SocketBuffer = socketBuffer
	}
	if c.Datagram < minDatagram || c.Datagram > maxDatagram {
		return nil, fmt.Errorf("soft: a datagram of %d bytes is out of range; choose one from %d to %d", c.Datagram, minDatagram, maxDatagram)
	}
	if !c.Bind.IsValid() {
		return nil, errors.New("soft: no address to bind the socket to is given; set Config.Bind to an address of this host with port 0")
	}
	transfer, err := ddp.MaxTransfer(c.MaxTransfer)
	if err != nil {
		return nil, fmt.Errorf("soft: %w", err)
	}
	keys, err := newKeyring(c.JobKey, c.Encrypt)
	if err != nil {
		return nil, err
	}
	s, err := openSocket(c.Bind, c.SocketBuffer)
	if err != nil {
		return nil, fmt.Errorf("soft: open a UDP socket on %v: %w", c.Bind, err)
	}
	if !c.NoRuns {
		s.allowRuns(c.Datagram)
	}
	d := newDevice(&c, keys, maxDatagram, transfer)
	d.net.first = s
	d.attr.SendCost, d.attr.ReadCost, d.attr.PutCost, d.attr.RegCost = costs(d.mss(), c.NoCRC && !c.Encrypt)
	d.soft.SetSource(s.source())
	d.outgoing.windowPool = reliable.NewPool[posted](runParams(d.datagram, d.mss(), s.runs(), c.Encrypt))
	if c.AckEvery > 0 {
		d.outgoing.windowPool.AckEvery = c.AckEvery
	}
	if c.NoCRC {
		d.keys.flags = flagPartial
	}
	if c.Encrypt {
		d.outgoing.image = make([]byte, 0, maxDatagram)
	}
	if err := d.openPaths(&c); err != nil {
		_ = d.net.close() // the first error matters
		return nil, err
	}
	return d, nil
}

// newDevice returns a device without a carrier. longest is the longest datagram that it
// sends.
func newDevice(c *Config, keys *keyring, longest, transfer int) *Device {
	d := &Device{
		attr: rdma.Attr{
			Name: cmp.Or(c.Label, "dgram"), Transports: rdma.RD | rdma.UD, Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead, rdma.OpWriteRecord),
			MaxSend: maxSend, MaxInline: maxInline, MaxTransfer: transfer, RemoteCPU: c.NoThread, Served: c.Served,
			EndCost:   float64(ackDelay), // a short message requests no ack
			LocalKeys: c.Strict, Pins: c.Strict,
		},
		keys: keys, name: c.Name, peerTimeout: c.PeerTimeout, clock: clock{start: time.Now()},
		datagram: c.Datagram, incoming: receiveSide{batch: make([]*slot, 0, batchSize)},
		outgoing: sendSide{outbox: newOutbox(longest)},
		pairs:    make([]*pair, 1), // 0 is no queue pair
		peers:    peerTable{known: map[uint64]rdma.PeerID{}},
	}
	if c.Strict {
		d.attr.MaxInline = strictMax
	}
	d.soft.Init("soft", &d.mu, base.Hooks{Sleep: d.sleep, Awake: d.awake, Progress: d.progressBeside, Posted: d.polls.recordPosted})
	d.soft.InitRegions(rand.Reader, c.Strict)
	d.table, d.guard = d.soft.Table, &d.soft.Guard
	d.soft.Thread.Disabled, d.soft.Thread.Timers = c.NoThread || c.Served, true
	return d
}

// costs returns the cost estimates, measured over loopback beside rdma/iwarp
// (speed_unsafe_test.go): a fixed time per datagram, and a time per byte. On one host
// and without a checksum, a message is copied once more, and a Read or Write is
// received in place (muster bench latency, rendezvous by get and put).
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

// Attr returns the device's attributes.
func (d *Device) Attr() *rdma.Attr { return &d.attr }

// Drops returns how many datagrams were dropped, by cause.
func (d *Device) Drops() Drops {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.drops
}

// mss returns how many bytes of an RD message fit into one datagram.
func (d *Device) mss() int {
	n := d.datagram - longestHeader - ddp.UntaggedLen
	if d.net.below == nil {
		n -= sealLen
	}
	return n
}

// Resolve returns the handle for an address.
func (d *Device) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.soft.Closed {
		return 0, rdma.ErrClosed
	}
	if d.net.below != nil {
		return d.resolveBelow(a)
	}
	parsed, theirs, err := parseAddress(a)
	if err != nil {
		return 0, err
	}
	ends := match(d.net.paths, theirs)
	for i := range ends {
		if s := d.net.socketOf(i); !s.reaches(ends[i].addrPort) {
			return 0, fmt.Errorf("soft: %v cannot be reached from the socket on %v, which has another IP version; bind both to the same", ends[i].addrPort, s.local)
		}
	}
	id := d.peers.id(parsed.incarnation, parsed.pair, parsed.name, &ends[0].raw)
	known := &d.peers.list[id]
	known.resolved, known.at = true, ends[0].raw // it may have sent from another interface
	if d.net.several() {
		*d.net.endsOf(id) = ends
		for _, q := range d.pairs {
			if q != nil && int(id) < len(q.peers) && q.peers[id] != nil {
				q.reachPaths(q.peers[id])
			}
		}
	}
	return id, nil
}

// NameOf returns the Config.Name of a peer.
func (d *Device) NameOf(id rdma.PeerID) (name uint32, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(id) >= len(d.peers.list) {
		return 0, false
	}
	return d.peers.list[id].name, true
}

// progress processes arrivals and sends what may be sent. It processes at most a few
// batches, so that a flood does not keep the caller from its own work.
//
// While nothing arrives, timers are checked only now and then: a spinning caller calls
// several times a microsecond, and reading the clock and checking each peer takes as
// long as the system call.
func (d *Device) progress() (came bool) {
	d.clock.fresh, d.polls.shows = false, false
	came = d.receiveAll()
	if came {
		d.clock.tick()
	}
	d.polls.recordArrivals(came, d.clock.now)
	if came || d.polls.idle == 0 {
		d.polls.idle = idlePollsPerService
		for on := range d.net.sockets() {
			d.net.socketOf(on).refusals(d.reject)
		}
		if came || d.outgoing.outbox.n > 0 || d.serviceDue() {
			d.service()
			d.flush()
			if d.polls.serviceAt = 0; !came {
				d.polls.serviceAt = d.nextTimer()
			}
		}
	}
	d.polls.idle--
	return came
}

// idlePollsPerService is how many calls without arrivals pass between two checks of the
// timers.
const idlePollsPerService = 4

// receiveDatagrams processes what has arrived: one datagram, or batches of them if the
// call before found one too. Long expected datagrams are received one by one, each in
// place.
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
	from := d.net.socketOf(d.net.on)
	if from.bulk > 0 { // each is processed while it is in the cache
		for range bulkBatch {
			if !d.receiveOne(from) {
				break
			}
			came = true
		}
		return came
	}
	if !from.batching {
		one := d.receiveOne(from)
		from.batching, from.cameLast = one && from.cameLast, one
		return one
	}
	n := 0
	for range 4 {
		n = d.receive(from)
		came = came || n > 0
		if n < from.maxMessages() {
			break
		}
	}
	from.batching = n > 1
	return came
}

// reject records an ICMP error for an address. It may be forged, so it only shortens
// the timeout of silent peers there (peer.go). process means that the host is reachable
// and the process is not.
func (d *Device) reject(at netip.AddrPort, process bool) {
	if !process && d.peerTimeout > 0 {
		return // a link may be repaired
	}
	for id := range d.peers.list {
		a := &d.peers.list[id]
		if a.at.addrPort() != at && !d.net.leadsTo(rdma.PeerID(id), at) {
			continue
		}
		for _, q := range d.pairs {
			if q != nil && id < len(q.peers) && q.peers[id] != nil {
				q.peers[id].rejected = true
			}
		}
	}
}

// receiveOne processes one datagram.
func (d *Device) receiveOne(from *socket) bool {
	if !d.incoming.fillBatch(1) {
		return false
	}
	last := len(d.incoming.batch) - 1
	s := d.incoming.batch[last]
	if !from.receiveOne(s) {
		return false
	}
	race.OrderAfterReceiving()
	if d.takeIn(s) {
		d.incoming.batch[last] = nil // the slot is kept
		d.incoming.batch = d.incoming.batch[:last]
	}
	return true
}

// receive processes one batch of datagrams and returns how many kernel messages it had.
func (d *Device) receive(from *socket) int {
	most := from.maxMessages()
	d.incoming.fillBatch(most)
	n := from.receive(d.incoming.batch[:min(most, len(d.incoming.batch))])
	if n > 0 {
		race.OrderAfterReceiving()
	}
	for i, s := range d.incoming.batch[:n] {
		if !d.takeIn(s) {
			continue
		}
		d.incoming.batch[i] = nil // the slot is kept
	}
	kept := d.incoming.batch[:0]
	for _, s := range d.incoming.batch {
		if s != nil {
			kept = append(kept, s)
		}
	}
	d.incoming.batch = kept
	return n
}

// service does what is due for every busy peer.
func (d *Device) service() {
	d.polls.returned = false
	for _, q := range d.pairs {
		if q != nil && q.working() {
			d.clock.tick()
			q.service()
		}
	}
}

// Close closes the device and everything created with it.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.soft.Closed {
		return nil
	}
	for _, q := range d.pairs {
		if q != nil {
			q.shut()
		}
	}
	d.soft.Close()
	return d.net.close()
}
