package rdmatest

import (
	"context"
	"fmt"
	"sync"

	"github.com/muster-mpi/muster/rdma"
)

// The reference device, in the order in which a program uses it: opening the devices,
// registering memory, creating queues, resolving addresses, closing. reference_post.go
// accepts work, reference_poll.go reports completions, reference_notify.go has the
// waits of a second goroutine, and reference_copy.go holds the cooperative copies.
//
// All state is on the heap behind one lock. Nothing is fast or clever: where a rule of
// package rdma leaves a choice, the reference takes the simpler one, and where a user
// could rely on more than the rules promise, it deliberately breaks that expectation (see
// refCQ.endLending).

// Compile-time proof that the reference is a device.
var (
	_ rdma.Device = (*refDevice)(nil)
	_ rdma.QP     = (*refQP)(nil)
	_ rdma.CQ     = (*refCQ)(nil)
	_ rdma.SRQ    = (*refSRQ)(nil)
)

// refDepth bounds the outstanding requests of a queue pair, and the messages that may wait
// for one receiver from one sender. It is small so that tests often see ErrAgain.
const refDepth = 64

// refPushes bounds how many OpPush of a queue pair may wait for a pull.
const refPushes = 48

// ReferenceAttr returns the attributes of NewReference's devices: all transports, all
// operations, and limits small enough to be exceeded in a test.
func ReferenceAttr() rdma.Attr {
	return rdma.Attr{
		Name:        "reference",
		Transports:  rdma.RC | rdma.RD | rdma.UD,
		Ops:         rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead, rdma.OpPull, rdma.OpPush, rdma.OpWriteRecord),
		MaxSend:     32 << 10,
		MaxInline:   128,
		MaxTransfer: 6 << 20,
		MaxPush:     refPushes,
		SegmentHint: 8 << 10,
		SendCost:    rdma.Cost{Fixed: 300, PerByte: 0.20},
		ReadCost:    rdma.Cost{Fixed: 900, PerByte: 0.12},
		PutCost:     rdma.Cost{Fixed: 900, PerByte: 0.12},
		PullCost:    rdma.Cost{Fixed: 1500, PerByte: 0.07},
		RegCost:     rdma.Cost{Fixed: 100},
	}
}

// NewReference returns n devices that can reach each other.
func NewReference(n int) []rdma.Device { return NewReferenceOf(n, ReferenceAttr()) }

// NewReferenceOf returns n devices with the given attributes. The devices obey attr: they
// reject operations that are not in Ops, require local keys if LocalKeys is set, and
// transfer memory only while the target polls if RemoteCPU is set.
func NewReferenceOf(n int, attr rdma.Attr) []rdma.Device {
	fab := &refFabric{}
	devs := make([]rdma.Device, n)
	for i := range devs {
		d := &refDevice{fab: fab, index: i, attr: attr, regions: map[uint64]*refRegion{}}
		fab.devices = append(fab.devices, d)
		devs[i] = d
	}
	return devs
}

// refFabric is the state that the devices share.
type refFabric struct {
	mu      sync.Mutex // guards everything below, in all devices
	devices []*refDevice
}

type refDevice struct {
	fab             *refFabric
	index           int
	attr            rdma.Attr
	closed          bool
	regions         map[uint64]*refRegion // by RKey
	lastKey         uint64                // keys are never used twice
	qps             []*refQP              // in order of creation, closed ones too
	cqs             []*refCQ
	peers           []*refQP   // by PeerID: in order of first use, so that a handle does not reveal a rank
	copies          []*refCopy // cooperative copies that involve this device
	pendingAccesses []func()   // if RemoteCPU: accesses by peers that wait for a Poll
}

type refRegion struct {
	mr     rdma.MR
	mem    []byte
	access rdma.Access
	copies []*refCopy
}

func (d *refDevice) Attr() *rdma.Attr { return &d.attr }

func (d *refDevice) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	d.fab.mu.Lock()
	defer d.fab.mu.Unlock()
	if d.closed {
		return rdma.MR{}, fmt.Errorf("register %d bytes with reference device %d: %w", len(mem), d.index, rdma.ErrClosed)
	}
	d.lastKey++
	mr := rdma.MR{
		Base: rdma.MemOf(mem).Addr(),
		Len:  uint64(len(mem)),
		RKey: uint64(d.index+1)<<40 | d.lastKey,
		LKey: uint32(d.lastKey),
	}
	d.regions[mr.RKey] = &refRegion{mr: mr, mem: mem, access: acc}
	return mr, nil
}

func (d *refDevice) Deregister(mr rdma.MR) error {
	d.fab.mu.Lock()
	defer d.fab.mu.Unlock()
	region := d.regions[mr.RKey]
	if region == nil {
		return fmt.Errorf("deregister key %#x with reference device %d: no such registration (was it ended before?)", mr.RKey, d.index)
	}
	d.endRegion(region)
	return nil
}

// endRegion ends the registration, including its unfinished copies.
func (d *refDevice) endRegion(region *refRegion) {
	delete(d.regions, region.mr.RKey)
	for _, cp := range append([]*refCopy(nil), region.copies...) {
		cp.end(rdma.StatusRemoteAccess)
	}
}

func (d *refDevice) NewCQ(depth int) (rdma.CQ, error) {
	d.fab.mu.Lock()
	defer d.fab.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("new completion queue on reference device %d: %w", d.index, rdma.ErrClosed)
	}
	c := &refCQ{dev: d, token: make(chan struct{}, 1), beside: make(chan struct{}, 1)}
	d.cqs = append(d.cqs, c)
	return c, nil
}

func (d *refDevice) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	d.fab.mu.Lock()
	defer d.fab.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("new shared receive queue on reference device %d: %w", d.index, rdma.ErrClosed)
	}
	return newRefSRQ(d, cfg), nil
}

func (d *refDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	d.fab.mu.Lock()
	defer d.fab.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("new queue pair on reference device %d: %w", d.index, rdma.ErrClosed)
	}
	if d.attr.Transports&cfg.Type == 0 {
		return nil, fmt.Errorf("new queue pair on reference device %d: transport %d: %w", d.index, cfg.Type, rdma.ErrUnsupported)
	}
	sendCQ, ok1 := cfg.SendCQ.(*refCQ)
	recvCQ, ok2 := cfg.RecvCQ.(*refCQ)
	if !ok1 || !ok2 || sendCQ.dev != d || recvCQ.dev != d {
		return nil, fmt.Errorf("new queue pair on reference device %d: its completion queues must be of the same device", d.index)
	}
	q := &refQP{dev: d, number: len(d.qps), kind: cfg.Type, sendCQ: sendCQ, recvCQ: recvCQ, depth: cfg.Depth}
	if q.depth == 0 {
		q.depth = refDepth
	}
	if cfg.SRQ != nil {
		q.srq = cfg.SRQ.(*refSRQ)
	} else {
		q.own = newRefSRQ(d, rdma.SRQConfig{})
	}
	d.qps = append(d.qps, q)
	return q, nil
}

func (d *refDevice) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	d.fab.mu.Lock()
	defer d.fab.mu.Unlock()
	q, err := d.fab.find(a)
	if err != nil {
		return 0, err
	}
	return d.handle(q), nil
}

// find parses an address that refQP.Addr returned.
func (f *refFabric) find(a rdma.Addr) (*refQP, error) {
	var dev, number int
	if _, err := fmt.Sscanf(string(a), "reference/%d/%d", &dev, &number); err == nil &&
		dev >= 0 && dev < len(f.devices) && number >= 0 && number < len(f.devices[dev].qps) {
		if q := f.devices[dev].qps[number]; q.Addr() == a {
			return q, nil
		}
	}
	return nil, fmt.Errorf("no reference queue pair has the address %q: take addresses from QP.Addr of a device made by the same call", a)
}

// handle returns the PeerID of a queue pair, a new one at first use.
func (d *refDevice) handle(q *refQP) rdma.PeerID {
	for i, known := range d.peers {
		if known == q {
			return rdma.PeerID(i)
		}
	}
	d.peers = append(d.peers, q)
	return rdma.PeerID(len(d.peers) - 1)
}

func (d *refDevice) Close() error {
	d.fab.mu.Lock()
	defer d.fab.mu.Unlock()
	for _, region := range d.regions {
		d.endRegion(region)
	}
	for _, q := range d.qps {
		q.close()
	}
	for _, c := range d.cqs {
		c.closed = true
		c.signal()
	}
	d.closed = true
	return nil
}

// refQP is a queue pair. Messages wait in the receiver's inbox.
type refQP struct {
	dev            *refDevice
	number         int
	kind           rdma.Transport
	sendCQ, recvCQ *refCQ
	srq            *refSRQ // nil: own holds the posted buffers
	own            *refSRQ
	depth          int
	outstanding    int    // accepted, and completion not yet polled, without OpPush
	pushes         int    // OpPush, likewise
	partner        *refQP // RC: the peer passed to Connect
	inbox          []refMessage
	closed         bool
}

type refMessage struct {
	from *refQP
	data []byte
}

func (q *refQP) Addr() rdma.Addr {
	return rdma.Addr(fmt.Sprintf("reference/%d/%d", q.dev.index, q.number))
}

func (q *refQP) Pending() int { return 0 }

func (q *refQP) Connect(_ context.Context, peer rdma.Addr) error {
	q.dev.fab.mu.Lock()
	defer q.dev.fab.mu.Unlock()
	if q.kind != rdma.RC {
		return nil
	}
	partner, err := q.dev.fab.find(peer)
	if err != nil {
		return err
	}
	q.partner = partner
	q.dev.handle(partner)
	return nil
}

func (q *refQP) Close() error {
	q.dev.fab.mu.Lock()
	defer q.dev.fab.mu.Unlock()
	q.close()
	return nil
}

// close ends the outstanding copies of this side and its peers.
func (q *refQP) close() {
	if q.closed {
		return
	}
	q.closed = true
	q.inbox = nil
	for _, cp := range append([]*refCopy(nil), q.dev.copies...) {
		if cp.puller == q || cp.owner == q {
			cp.closedBy(q)
		}
	}
}

// receives returns the queue that provides buffers for this queue pair's messages.
func (q *refQP) receives() *refSRQ {
	if q.srq != nil {
		return q.srq
	}
	return q.own
}
