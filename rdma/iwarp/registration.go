//go:build linux

package iwarp

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Registration of memory. In strict mode it locks the pages, and send and receive buffers
// must be registered too.

func (d *device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.MR{}, rdma.ErrClosed
	}
	if d.attr.LocalKeys {
		if err := d.pins.Lock(mem, rdma.MemOf(mem).Addr()); err != nil {
			return rdma.MR{}, fmt.Errorf("iwarp: register %d bytes: %w", len(mem), err)
		}
	}
	mr, err := d.table.RegisterMemory(mem, acc, domain)
	if err != nil && d.attr.LocalKeys {
		d.pins.Unlock(mem, rdma.MemOf(mem).Addr())
	}
	return mr, err
}

func (d *device) Deregister(mr rdma.MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.ErrClosed
	}
	if d.borrowing {
		d.borrowing = false
		for _, q := range d.queues {
			q.out.settle()
		}
	}
	d.strikes.guard.End(mr.RKey)
	if !d.attr.LocalKeys {
		return d.table.DeregisterMemory(mr)
	}
	mem := d.table.MemoryOf(ddp.Tag(mr.RKey))
	if err := d.table.DeregisterMemory(mr); err != nil {
		return err
	}
	d.pins.Unlock(mem.Bytes(), mem.Addr())
	return nil
}

// checkLocal rejects memory that is not registered, in strict mode.
func (d *device) checkLocal(what string, body rdma.Mem, lkey uint32) error {
	if !d.attr.LocalKeys || body.Len() == 0 || d.table.Holds(ddp.Tag(lkey), body) {
		return nil
	}
	return fmt.Errorf("iwarp: the %d bytes of a %s lie in no region with the local key %#x; strict mode requires them to be registered, or sent inline", body.Len(), what, lkey)
}

// unlockAll unlocks all registered memory, for Close.
func (d *device) unlockAll() {
	if d.attr.LocalKeys {
		d.table.EachMemory(func(m rdma.Mem) { d.pins.Unlock(m.Bytes(), m.Addr()) })
	}
}
