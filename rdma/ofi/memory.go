//go:build ofi && cgo && linux

package ofi

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// registration is an active registration. Its index is the LKey.
type registration struct {
	region region
	mem    []byte // kept alive until Deregister; nil: the entry is free
	rkey   uint64
	base   uint64
}

// keyTries bounds the search for a free key; one in 2^64 is in use, more where keys are
// short.
const keyTries = 64

// Register makes mem accessible to peers. Where the provider lets us choose keys they are
// random, so that none can be guessed from another, and none is repeated.
func (d *device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	if d.closed {
		return rdma.MR{}, rdma.ErrClosed
	}
	if len(mem) == 0 {
		return rdma.MR{}, errors.New("ofi: cannot register memory without bytes")
	}
	if d.what.perEndpoint && len(d.qps) == 0 {
		return rdma.MR{}, fmt.Errorf("ofi: provider %s registers memory with an endpoint: create the queue pair first", d.what.provider)
	}
	var r registration
	var err error
	for range keyTries {
		key := uint64(0)
		if !d.what.providerKeys {
			key = d.keys.Uint64() >> (64 - 8*min(max(d.what.keySize, 1), 8))
		}
		if r.region, r.rkey, r.base, err = d.dom.register(mem, acc, key); err != errKeyTaken {
			break
		}
	}
	if err != nil {
		return rdma.MR{}, fmt.Errorf("ofi: provider %s registers %d bytes: %w", d.what.provider, len(mem), d.lockLimit(err))
	}
	r.mem = mem
	lkey := d.newLKey()
	if d.attr.LocalKeys {
		if err := d.dom.setLKey(lkey, r.region); err != nil {
			d.free = append(d.free, lkey)
			return rdma.MR{}, errors.Join(err, d.dom.deregister(r.region))
		}
	}
	d.regions[lkey] = r
	return rdma.MR{Base: r.base, Len: uint64(len(mem)), RKey: r.rkey, LKey: lkey}, nil
}

var errNoMemory = errors.New("out of memory")

// lockLimit adds the likely cause to an out-of-memory error where registration locks
// pages: the limit of locked memory.
func (d *device) lockLimit(err error) error {
	var limit unix.Rlimit
	if !d.attr.Pins || !errors.Is(err, errNoMemory) || unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return err
	}
	return fmt.Errorf("%w: registered memory is locked, and a process may lock %d KB here; raise the limit (ulimit -l)", err, limit.Cur>>10)
}

// newLKey returns a free index in the table.
func (d *device) newLKey() uint32 {
	if n := len(d.free); n > 0 {
		i := d.free[n-1]
		d.free = d.free[:n-1]
		return i
	}
	d.regions = append(d.regions, registration{})
	if cap(d.free) < cap(d.regions) { // so that Deregister does not allocate
		d.free = make([]uint32, 0, cap(d.regions))
	}
	return uint32(len(d.regions) - 1)
}

// Deregister ends a registration.
func (d *device) Deregister(mr rdma.MR) error {
	if d.closed {
		return rdma.ErrClosed
	}
	if int(mr.LKey) >= len(d.regions) || d.regions[mr.LKey].mem == nil || d.regions[mr.LKey].rkey != mr.RKey || d.regions[mr.LKey].base != mr.Base {
		return fmt.Errorf("ofi: no region is registered with the key %#x: was it deregistered before?", mr.RKey)
	}
	if d.attr.LocalKeys {
		if err := d.dom.setLKey(mr.LKey, region{}); err != nil {
			return err
		}
	}
	if err := d.dom.deregister(d.regions[mr.LKey].region); err != nil {
		return fmt.Errorf("ofi: provider %s deregisters %d bytes: %w", d.what.provider, mr.Len, err)
	}
	d.regions[mr.LKey] = registration{}
	d.free = append(d.free, mr.LKey)
	return nil
}
