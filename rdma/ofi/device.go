//go:build ofi && cgo && linux

package ofi

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// A device: Open chooses among libfabric's offers and opens the domain, NewCQ, NewSRQ and
// NewQP (queues.go) create the rest, Close closes everything in the opposite order.

// Built reports whether this program was built with libfabric.
const Built = true

// libraryName is the name of libfabric for the dynamic linker.
const libraryName = "libfabric.so.1"

// device implements rdma.Device.
type device struct {
	cfg    Config
	lib    library
	dom    domain
	what   offered
	attr   rdma.Attr
	sizes  sizes
	closed bool

	regions []registration
	free    []uint32 // indices of regions
	keys    *rand.ChaCha8

	names map[rdma.PeerID]string // by peer: the name it was resolved from

	held []rdma.Mem // memory of outstanding work, by slot
	cqs  []*completionQueue
	srqs []*receiveQueue
	// posted are the receive queues by their tags. The slot of a closed queue is reused.
	posted []*receiveQueue
	qps    []*queuePair
}

// Open opens a device.
func Open(cfg Config) (rdma.Device, error) { return open(cfg, libraryName, 0) }

// open opens a device with the library of that name. Reads and writes are split into parts
// of the given length; 0: the provider's limit.
func open(cfg Config, name string, part int) (rdma.Device, error) {
	if cfg.Index < 0 || cfg.Index > maxIndex {
		return nil, fmt.Errorf("ofi: index %d: it must be in [0, %d]", cfg.Index, maxIndex)
	}
	if cfg.Transport == 0 {
		cfg.Transport = rdma.RD
	}
	lib, err := load(cfg, name)
	if err != nil {
		return nil, err
	}
	if cfg.Encrypt {
		lib.free()
		return nil, ErrEncrypt
	}
	d := &device{cfg: cfg, lib: lib, names: map[rdma.PeerID]string{}}
	if err := d.begin(part); err != nil {
		lib.free()
		return nil, err
	}
	return d, nil
}

func load(cfg Config, name string) (library, error) {
	lib, err := openLibrary(name, cfg.Peers)
	if err != nil {
		return lib, fmt.Errorf("%w: %v; install it (Debian: libfabric1) or use another network", ErrMissing, err)
	}
	return lib, nil
}

// begin chooses among the offers and opens the domain.
func (d *device) begin(part int) error {
	found, best, delivery, err := d.find()
	if err != nil {
		return err
	}
	defer found.free()
	d.what = found.list[best]
	d.sizes = sizesOf(d.what, d.cfg)
	job := sha256.Sum256([]byte(d.cfg.Job))
	d.dom, err = d.lib.open(found, best, setup{
		job: binary.LittleEndian.Uint64(job[:]), index: d.cfg.Index, peers: d.cfg.Peers,
		buffer: d.sizes.buffer, sends: d.sizes.sends, delivery: delivery, part: part, short: returnsAtOnce(d.what.provider),
	})
	if err != nil {
		return fmt.Errorf("ofi: open provider %s on %s: %w", d.what.provider, d.what.domain, err)
	}
	d.attr = attrOf(d.what, d.sizes, delivery)
	var seed [32]byte
	for i := 0; i < len(seed); i += 8 {
		binary.LittleEndian.PutUint64(seed[i:], rand.Uint64())
	}
	d.keys = rand.NewChaCha8(seed)
	return nil
}

// linkTime is how long an interface may take to come up. The kernel reports a new
// interface as running, as in a container that was just created, up to a second late, and
// libfabric offers only running ones.
const linkTime = 5 * time.Second

// find returns libfabric's offers, and which of them to use.
func (d *device) find() (found offers, best int, delivery bool, err error) {
	for began := time.Now(); ; time.Sleep(linkTime / 50) {
		// Writes are supported only if their completion can mean that the data has
		// arrived.
		delivery = d.cfg.Transport != rdma.UD
		found, err = d.lib.offers(d.cfg.Provider, d.cfg.Transport, delivery)
		if err == nil && len(found.list) == 0 && delivery {
			found.free()
			delivery = false
			found, err = d.lib.offers(d.cfg.Provider, d.cfg.Transport, delivery)
		}
		if err != nil {
			return found, 0, delivery, fmt.Errorf("ofi: libfabric cannot list its offers: %w", err)
		}
		host := thisHost()
		if best, err = choose(found.list, d.cfg, host); err != nil {
			found.free()
			return found, 0, delivery, err
		}
		if !d.cfg.Reach || d.cfg.Interface != "" || host.rate(found.list[best], d.cfg).nature != natureLoopback {
			return found, best, delivery, nil
		}
		found.free()
		if time.Since(began) > linkTime {
			return found, 0, delivery, errors.New("ofi: no interface is up but loopback, which other hosts cannot reach; bring one up (ip link), or name one explicitly (MUSTER_INTERFACE)")
		}
	}
}

func (d *device) Attr() *rdma.Attr { return &d.attr }

// Resolve adds a peer to the address table. The peer's number is the handle.
func (d *device) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	if d.closed {
		return 0, rdma.ErrClosed
	}
	if d.cfg.Transport == rdma.RC {
		return 0, fmt.Errorf("ofi: resolve %q: %w: connected queue pairs use Connect", a, rdma.ErrUnsupported)
	}
	where, err := parseAddress(a)
	if err != nil {
		return 0, fmt.Errorf("ofi: %w", err)
	}
	if where.provider != d.what.provider {
		return 0, fmt.Errorf("ofi: peer %d uses the provider %s, this device %s: they cannot communicate; name one provider for all",
			where.index, where.provider, d.what.provider)
	}
	if where.transport != d.cfg.Transport {
		return 0, fmt.Errorf("ofi: %q is not an address of this kind of queue pair (%s)", a, transportWord(d.cfg.Transport))
	}
	id := rdma.PeerID(where.index)
	if known, found := d.names[id]; found {
		if known != where.name {
			return 0, fmt.Errorf("ofi: peer %d has two addresses, %x and %x: do two ranks have one number?", id, known, where.name)
		}
		return id, nil
	}
	if err := d.dom.resolve(where.index, []byte(where.name)); err != nil {
		return 0, fmt.Errorf("ofi: provider %s: address of peer %d: %w", d.what.provider, id, err)
	}
	d.names[id] = where.name
	return id, nil
}

// Close closes all objects made with the device.
func (d *device) Close() error {
	if d.closed {
		return nil
	}
	var errs []error
	for len(d.qps) > 0 {
		errs = append(errs, d.qps[0].Close())
	}
	for len(d.srqs) > 0 {
		errs = append(errs, d.srqs[0].Close())
	}
	for len(d.cqs) > 0 {
		errs = append(errs, d.cqs[0].Close())
	}
	for i := range d.regions {
		if d.regions[i].mem != nil {
			errs = append(errs, d.dom.deregister(d.regions[i].region))
		}
	}
	d.closed = true
	d.dom.close()
	d.lib.free()
	d.regions, d.held = nil, nil
	return errors.Join(errs...)
}
