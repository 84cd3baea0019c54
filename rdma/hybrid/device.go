package hybrid

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
	base "github.com/muster-mpi/muster/rdma/internal/soft"
	"github.com/muster-mpi/muster/rdma/iwarp"
	"github.com/muster-mpi/muster/rdma/soft"
)

// The device: Open combines two devices, progress runs in every Poll, Close ends it.

// Device is a device for RD queue pairs, combining datagrams and connections.
type Device struct {
	cfg    Config
	attr   rdma.Attr
	rd     *soft.Device
	rc     iwarp.SharingDevice
	queues []*queue
	pair   *pair // the one queue pair
	closed bool

	policy     policy
	peers      []*peerState // by PeerID
	byControl  []*peerState // by the handle of their control queue pair
	candidates []*peerState // may be due for a connection, or for its end
	conns      connections  // peer.go
	changing   int          // peers whose path is being changed
	polls      uint
	start      time.Time
	ticks      time.Duration // intervals that have passed
	ids        requestIDs

	deferred     []*peerState // with steps that wait for room
	deferredWork atomic.Int32 // deferred and ending, for waiters

	dialer dialer // connect.go
	losses losses
}

// requestIDs are the IDs of requests that the user has not made, drawn at random.
type requestIDs struct{ fence, notice, replay uint64 }

func newRequestIDs() (requestIDs, error) {
	var b [24]byte
	if _, err := rand.Read(b[:]); err != nil {
		return requestIDs{}, fmt.Errorf("hybrid: no random numbers for internal request IDs: %w", err)
	}
	return requestIDs{fence: binary.BigEndian.Uint64(b[:8]), notice: binary.BigEndian.Uint64(b[8:]), replay: binary.BigEndian.Uint64(b[16:])}, nil
}

// losses counts what became of connections that broke.
type losses struct {
	broken   uint64
	repaired uint64 // of those, continued by datagrams without loss
	peers    uint64 // failed because messages were lost
}

// Open opens a device.
func Open(c Config) (*Device, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	ids, err := newRequestIDs()
	if err != nil {
		return nil, err
	}
	rd, rc, err := c.openDevices()
	if err != nil {
		return nil, err
	}
	d := &Device{cfg: c, rd: rd, rc: rc, policy: policy{rules: c.rules()}, start: time.Now(), attr: c.attr(rd.Attr(), rc.Attr()), ids: ids}
	d.dialer.open()
	return d, nil
}

// Attr describes the device.
func (d *Device) Attr() *rdma.Attr { return &d.attr }

// Caps returns what the device can do in addition to rdma.Device.
func (d *Device) Caps() rdma.Caps {
	held := d.rc.Caps().Urgent
	return rdma.Caps{
		Notify: base.Notify, Rails: d.rd.Rails(), NameOf: d.rd.NameOf, Explain: d.Explain, Abandon: d.Abandon, Count: d.Count,
		Urgent: func() bool { return d.changing > 0 || held() }, // requests to a peer wait while its path is changed
	}
}

// An address consists of the addresses of the data queue pair and the control queue pair.
const addressSign = "+"

// Resolve returns the handle for an address.
func (d *Device) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	data, control, ok := strings.Cut(string(a), addressSign)
	if !ok {
		return 0, fmt.Errorf("hybrid: %q is not the address of a queue pair with connections; open all devices with the same channel", string(a))
	}
	id, err := d.rd.Resolve(rdma.Addr(data))
	if err != nil {
		return id, err
	}
	if m := d.peer(id); m.controlAddr == "" {
		m.controlAddr = rdma.Addr(strings.Clone(control))
	}
	return id, nil
}

// Register makes memory accessible to peers, with the same key over either device.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	mr, err := d.rd.Register(mem, acc)
	if err != nil {
		return mr, err
	}
	if err := d.rc.RegisterAs(mr, mem, acc); err != nil {
		_ = d.rd.Deregister(mr) // it was registered a moment ago
		return rdma.MR{}, err
	}
	return mr, nil
}

// Deregister ends a registration.
func (d *Device) Deregister(mr rdma.MR) error {
	return errors.Join(d.rd.Deregister(mr), d.rc.Deregister(mr))
}

// progress does what is due, in every Poll.
func (d *Device) progress(clock bool) {
	d.polls++
	if d.dialer.hasResult() {
		d.takeResult(<-d.dialer.results)
	}
	if len(d.deferred) > 0 {
		d.retryDeferred()
	}
	if len(d.candidates) > 0 {
		d.decide()
	}
	if clock || d.polls%256 == 0 {
		d.tick()
	}
}

// tick advances the policy's clock, and finds peers that may get a connection.
func (d *Device) tick() {
	passed := time.Since(d.start) / d.cfg.Interval
	if passed == d.ticks {
		return
	}
	for range min(passed-d.ticks, 32) {
		d.policy.tick()
	}
	d.ticks = passed
	for _, s := range d.policy.known {
		if !s.holds && d.policy.earns(s) {
			d.candidates = append(d.candidates, d.peers[s.peer])
		}
	}
}

// decide lets the policy decide about the candidates.
func (d *Device) decide() {
	for i, m := range d.candidates {
		d.candidates[i] = nil
		if d.pair == nil || d.pair.closed || m.controlAddr == "" || m.phase == failed || m.phase != noConnection && m.phase != joined {
			continue // it was not resolved: the peer may offer; or a change is in progress
		}
		switch v, evicting := d.policy.consider(&m.score); v {
		case promote:
			d.decideFirst(m)
			m.want()
			d.run(m)
		case demote:
			d.demotePeer(&m.score)
		case evict:
			d.demotePeer(evicting)
		}
	}
	d.candidates = d.candidates[:0]
}

// decideFirst determines whose offer wins.
func (d *Device) decideFirst(m *peerState) { m.first = d.pair.control.Addr() < m.controlAddr }

// demotePeer moves a peer back to datagrams.
func (d *Device) demotePeer(s *score) {
	m := d.peers[s.peer]
	if m.phase != joined { // a change is in progress
		s.evicting = false
		return
	}
	m.leave()
	d.run(m)
}

// Counters in addition to those of package rdma.
const (
	CountRefused  rdma.Counter = "connections.refused"  // times that there was no room for a peer
	CountFailed   rdma.Counter = "connections.failed"   // not established, or broken
	CountBroken   rdma.Counter = "connections.broken"   // of those, broken
	CountRepaired rdma.Counter = "connections.repaired" // broken, and continued by datagrams without loss
	CountLost     rdma.Counter = "peers.lost"           // failed because messages were lost
)

// Count reports the counters of the device and of those below.
func (d *Device) Count(add func(rdma.Counter, uint64)) {
	d.rd.Count(add)
	d.rc.Caps().Count(add)
	add(rdma.ConnectionsMade, d.policy.up)
	add(rdma.ConnectionsClosed, d.policy.down)
	add(CountRefused, d.policy.refused)
	add(CountFailed, d.policy.failed)
	add(CountBroken, d.losses.broken)
	add(CountRepaired, d.losses.repaired)
	add(CountLost, d.losses.peers)
	add(rdma.MemoryPeers, d.peerMemory())
	add(rdma.MemorySend, d.conns.memory())
}

// Close closes all objects made with the device.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	if d.pair != nil {
		_ = d.pair.Close() // it cannot fail
	}
	d.dialer.cancel()
	err := errors.Join(d.rd.Close(), d.rc.Close())
	d.dialer.running.Wait()
	for _, q := range d.queues {
		_ = q.Close() // likewise
	}
	return err
}
