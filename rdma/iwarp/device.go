package iwarp

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// The device: a protection domain, a listener, and the objects made with it. One lock
// guards all of it; it is held while data is transferred and never while a goroutine
// waits.

const (
	maxSend = 64 << 10
	// zeroCopyAbove is the length from which a body is passed to the kernel in place.
	// Below it, gathering costs more than copying.
	zeroCopyAbove = 1 << 10

	defaultDepth = 128 // work requests of a queue pair
	readDepth    = 64  // outstanding Reads and Writes, each direction
)

type device struct {
	soft.Device
	mu       sync.Mutex
	cfg      Config
	attr     rdma.Attr
	strikes  map[netip.AddrPort]guard.Strikes // by peer, of those the user has named
	listener listener
	queues   []*queuePair
	sockets  sockets
	// admitGuest, if set, admits the callers that ask for token.
	admitGuest func(c conn, req *startup, from rdma.Addr) bool
	guestToken uint64
	buffers    [][]byte // not used by any queue pair now
	copies     [][]byte // memory for inline bodies, likewise
	lentOut    int      // lent to the user, with messages in them
	last       ddp.StreamID
	opened     time.Time
	gap        time.Duration // burstGap; tests change it
	holding    atomic.Int32  // connections that hold messages back
	combined   uint64        // messages that they have held back
	borrowing  bool          // the response to a Read waits for its socket, in the memory that was read

	handshakes sync.WaitGroup // of inbound connections that negotiate encryption
}

// ioBuffer is the size of a buffer between frames and a socket: it has room for a whole
// frame after the rest of another.
const ioBuffer = 2 * fpduMax

// takeBuffer lends a buffer to a queue pair that has bytes to transfer. Idle queue pairs
// have none: a thousand idle connections share a few.
func (d *device) takeBuffer() []byte {
	n := len(d.buffers)
	if n == 0 {
		return make([]byte, ioBuffer)
	}
	b := d.buffers[n-1]
	d.buffers = d.buffers[:n-1]
	return b
}

func (d *device) giveBuffer(b []byte) { d.buffers = append(d.buffers, b[:ioBuffer]) }

// Open opens a device.
func Open(cfg Config) (rdma.Device, error) {
	if cfg.Address == "" {
		cfg.Address = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("iwarp: Config.Address %q is not an IP address: %w", cfg.Address, err)
	}
	if cfg.Port < 0 || cfg.Port > 1<<16-1 {
		return nil, fmt.Errorf("iwarp: Config.Port %d is not a port: choose one below 65536, or 0", cfg.Port)
	}
	if cfg.Encrypt && len(cfg.Key) == 0 {
		return nil, errors.New("iwarp: Config.Encrypt without Config.Key: give both ends the same key, which authenticates them")
	}
	if cfg.Retain && !retains {
		return nil, fmt.Errorf("iwarp: Config.Retain needs sockets that report acks, which only Linux has: %w", rdma.ErrUnsupported)
	}
	if cfg.MaxSend == 0 {
		cfg.MaxSend = maxSend
	}
	if cfg.MaxSend < rdma.HeadMax || cfg.MaxSend > maxSend {
		return nil, fmt.Errorf("iwarp: Config.MaxSend %d is out of range: choose between %d and %d, or 0", cfg.MaxSend, rdma.HeadMax, maxSend)
	}
	transfer, err := ddp.MaxTransfer(cfg.MaxTransfer)
	if err != nil {
		return nil, fmt.Errorf("iwarp: %w", err)
	}
	d := &device{cfg: cfg, opened: time.Now(), gap: burstGap}
	d.Init("iwarp", &d.mu, soft.Hooks{Sleep: d.sleep, Progress: d.progressBeside, Deregister: d.settle})
	d.InitRegions(bufio.NewReader(rand.Reader), cfg.Strict) // every Read draws a tag: read random bytes in bulk
	d.Thread.Disabled = cfg.NoThread || cfg.Served
	d.attr = rdma.Attr{
		Name: "iwarp", Transports: rdma.RC, Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead),
		MaxSend: cfg.MaxSend, MaxInline: min(maxInline, cfg.MaxSend), MaxTransfer: transfer,
		RemoteCPU: cfg.NoThread, Served: cfg.Served, LocalKeys: cfg.Strict, Pins: cfg.Strict, WaitEarly: waitEarly,
	}
	if cfg.Strict {
		d.attr.MaxInline = min(strictMax, cfg.MaxSend)
	}
	d.attr.SendCost, d.attr.ReadCost, d.attr.PutCost, d.attr.RegCost = cfg.costs()
	if err := d.listener.open(d, netip.AddrPortFrom(ip, uint16(cfg.Port))); err != nil {
		return nil, err
	}
	if err := d.sockets.open(d); err != nil {
		d.listener.close()
		return nil, fmt.Errorf("iwarp: create the set of sockets: %w", err)
	}
	return d, nil
}

// costs returns the costs that speed_linux_test.go measures over loopback: a message is
// half a round trip, a Read or a Write a whole one, and the cost per byte is that of a
// stream of megabytes.
func (cfg *Config) costs() (send, get, put, register rdma.Cost) {
	half, read, write := 4500.0, 0.30, 0.22
	switch {
	case cfg.Encrypt:
		half, read, write = 6500, 1.3, 1.2
	case cfg.NoCRC:
		half, read, write = 4000, 0.16, 0.16 // muster bench latency, rendezvous by get and put: both are equal
	}
	return rdma.Cost{Fixed: half, PerByte: write}, rdma.Cost{Fixed: 2 * half, PerByte: read},
		rdma.Cost{Fixed: 2 * half, PerByte: write}, rdma.Cost{Fixed: 250}
}

func (d *device) Attr() *rdma.Attr { return &d.attr }

// Resolve is for datagrams.
func (d *device) Resolve(rdma.Addr) (rdma.PeerID, error) { return 0, rdma.ErrUnsupported }

// settle makes pending responses independent of the memory that they read.
func (d *device) settle(uint64) {
	if d.borrowing {
		d.borrowing = false
		for _, q := range d.queues {
			q.out.settle()
		}
	}
}

// Close closes all objects made with the device, and returns when everything is released.
func (d *device) Close() error {
	d.mu.Lock()
	if !d.Closed {
		for len(d.queues) > 0 {
			d.queues[0].close()
		}
		d.listener.close()
		d.Device.Close()
		d.sockets.close()
	}
	d.mu.Unlock()
	d.handshakes.Wait()
	d.sockets.wait()
	return nil
}
