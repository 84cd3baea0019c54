package shm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/sparse"
	"github.com/muster-mpi/muster/rdma"
)

// Config configures a device.
type Config struct {
	// Host, when set, selects heap mode: the devices opened with the same Host
	// are ranks of one process. nil: each rank is a process.
	Host *Host
	// Index is this rank's number among the ranks of the node. Peers use it as the rank's
	// rdma.PeerID.
	Index int
	// Peers is the number of ranks on the node, including this one. It only determines
	// sizes. 0 means 2.
	Peers int
	// Cores is the number of cores that the ranks of the node share. 0: those
	// that are online (process mode) or GOMAXPROCS (heap mode).
	Cores int
	// RanksOnCores is the number of ranks that share them, if that is more than Peers.
	RanksOnCores int

	// RingBytes is the size of a ring's byte buffer for longer messages, rounded up to a
	// power of two. 0: 512 KB for up to 4 ranks, where memory does not matter, else 128
	// KB, which is enough to keep both sides copying.
	RingBytes int
	// Rings is the number of senders that may have a ring at this rank at the same time;
	// the others share one queue. 0: one for each peer, at most 16, and 4 for more than
	// 256 ranks of one process. Negative: none.
	Rings int

	// ShmDir is the directory for a segment that cannot be a memfd. "": /dev/shm.
	ShmDir string
	// NoMemfd makes the segment a file in ShmDir from the start. It is for ranks that see
	// each other's files but not each other's processes.
	NoMemfd bool
	// NoProcessVM disables process_vm_readv and process_vm_writev, as if the kernel
	// refused them. It is for tests.
	NoProcessVM bool
}

const (
	// ringAfter is the number of messages that a peer sends through the shared queue
	// before it claims a ring.
	ringAfter = 8
	// manyRanks is the number of goroutines as ranks above which rings are few and short: they
	// share cores, so a sender rarely meets another one in the shared queue, and with a ring of
	// 16 KB for each of 16 peers the rings would take most of a rank's memory.
	manyRanks = 256
	// maxIndex is limited by the size of its field in a cell.
	maxIndex = 1<<16 - 1
	// defaultDepth is the default number of work requests that may wait for their
	// completion.
	defaultDepth = 256
)

// Device is one rank's end of the shared memory of a node. Calls must be serialized, with
// two exceptions: the Wake of its CQ may be called at any time, and while one goroutine is
// in Wait others may call everything except Poll and Close.
type Device struct {
	// Poll uses these fields first.
	inbox   inbox // poll.go
	recv    receiveQueue
	done    completionFIFO
	copies  transferTable
	traffic traffic // counters.go
	closed  bool

	seg    *segment
	peers  sparse.Table[peer] // by index
	index  int
	fences fencing // wait.go
	// starved reports that PostSend found no room. Room is not always announced, so the
	// next Wait is short.
	starved atomic.Bool
	wakeup  wakeup
	// mu guards done, copies and peers between a Wait and concurrent posts. Poll is
	// concurrent with neither and does not lock.
	mu sync.Mutex

	cfg   Config
	attr  rdma.Attr
	addr  rdma.Addr
	nonce uint64
	regs  registrations
	owner segmentFile
	has   struct{ cq, srq, qp bool }
}

var _ rdma.Device = (*Device)(nil)

// Open creates the segment of this rank.
func Open(cfg Config) (*Device, error) {
	if cfg.Index < 0 || cfg.Index > maxIndex {
		return nil, fmt.Errorf("shm: index %d is not in 0..%d", cfg.Index, maxIndex)
	}
	if cfg.Peers <= 0 {
		cfg.Peers = 2
	}
	if cfg.ShmDir == "" {
		cfg.ShmDir = "/dev/shm"
	}
	d := &Device{cfg: cfg, index: cfg.Index, nonce: rand.Uint64() | 1}
	if cfg.Host != nil {
		if err := d.openHeap(); err != nil {
			return nil, err
		}
	} else if err := d.openProcess(); err != nil {
		return nil, err
	}
	h := d.seg.head
	h.nonce.Publish(d.nonce)
	h.pid.Publish(uint64(os.Getpid()))
	h.base.Publish(addressOf(&h.magic))
	h.index = uint32(d.index)
	h.geo = d.seg.geo
	if d.wakeup.membarrier {
		h.flags |= flagMembarrier
	}
	h.magic.Publish(segmentMagic)
	d.inbox.queue = newQueueReader(d.seg)
	d.regs = newRegistrations(d.seg)
	d.describe()
	if cfg.Host != nil {
		if err := cfg.Host.enter(d); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// size returns the geometry for the configuration.
func (cfg *Config) size() geometry {
	g := geometry{
		cells: 1024, smallBlocks: 64, largeBlocks: 32, slots: 16384,
		ringCells: 256, ringBytes: 128 << 10, version: layoutVersion,
	}
	if cfg.Peers <= 4 {
		g.ringCells, g.ringBytes = 512, 512<<10
	}
	if cfg.RingBytes > 0 {
		for g.ringBytes = 128 << 10; int(g.ringBytes) < cfg.RingBytes && g.ringBytes < 1<<30; {
			g.ringBytes *= 2
		}
	}
	many := cfg.Host != nil && cfg.Peers > manyRanks
	switch {
	case cfg.Rings > 0:
		g.rings = uint32(min(cfg.Rings, maxRings))
	case cfg.Rings == 0 && many:
		g.rings = 4
	case cfg.Rings == 0:
		g.rings = uint32(min(max(cfg.Peers-1, 1), 16))
	}
	if cfg.Host != nil {
		// Go clears allocated memory: keep it small, since tests open many devices.
		g.cells, g.smallBlocks, g.largeBlocks = 512, 32, 8
		g.ringBytes = min(g.ringBytes, 128<<10)
	}
	if many {
		g.ringCells = 64
	}
	return g
}

// Attr describes the device.
func (d *Device) Attr() *rdma.Attr { return &d.attr }

// Resolve maps the segment of a peer, or finds it in the Host.
func (d *Device) Resolve(addr rdma.Addr) (rdma.PeerID, error) {
	if d.closed {
		return 0, rdma.ErrClosed
	}
	a, err := parseAddress(addr)
	if err != nil {
		return 0, err
	}
	if p := d.peer(rdma.PeerID(a.index)); p != nil {
		if p.nonce != a.nonce {
			return 0, fmt.Errorf("shm: address %q names another segment than the one that peer %d was resolved to before", addr, a.index)
		}
		return p.id, nil
	}
	d.fences.await()
	p := &peer{id: rdma.PeerID(a.index), nonce: a.nonce, pid: a.pid, path: a.path, pidfd: -1, ringAt: ringAfter}
	switch {
	case a.nonce == d.nonce && a.index == d.index:
		p.seg, p.mine = d.seg, true
		p.fenced = d.cfg.Host != nil || !d.wakeup.membarrier
		p.reach = d.ownReach()
	case d.cfg.Host != nil:
		err = d.resolveHeap(p, a)
	default:
		err = d.resolveProcess(p, a)
	}
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	d.peers.Set(int(p.id), p)
	d.mu.Unlock()
	return p.id, nil
}

// Close releases everything. Peers that send later find that this rank is gone. Messages
// that were not polled are lost.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	d.copies.flush(d)
	d.regs.endAll()
	var errs []error
	for _, p := range d.peers.All {
		errs = append(errs, d.closePeer(p))
	}
	d.peers, d.inbox.rings = sparse.Table[peer]{}, nil
	d.seg.head.sleeper.Store(closedWord)
	old := d.seg
	d.wakeup.closing(d)
	if d.cfg.Host != nil {
		d.cfg.Host.leave(d)
	} else {
		errs = append(errs, d.owner.remove(old))
	}
	return errors.Join(errs...)
}
