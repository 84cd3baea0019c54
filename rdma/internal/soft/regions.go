package soft

import (
	"fmt"
	"io"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/pin"
)

// Domain is the only protection domain of a device.
const Domain ddp.Domain = 1

const maxRegions = 1 << 20

// Regions is the registered memory of a device, under unguessable steering tags. In strict
// mode registration locks the pages, and memory that is sent from or received into must be
// registered too, as adapters require.
type Regions struct {
	Table  *ddp.Table
	strict bool
	pins   pin.Pages
}

// InitRegions makes the table of regions. Tags are drawn from random.
func (d *Device) InitRegions(random io.Reader, strict bool) {
	d.Table, d.strict = ddp.NewTable(random, maxRegions), strict
}

// Register registers memory.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	return d.register(0, mem, acc)
}

// RegisterAs registers memory that another device has registered, under the same key.
func (d *Device) RegisterAs(mr rdma.MR, mem []byte, acc rdma.Access) error {
	_, err := d.register(ddp.Tag(mr.RKey), mem, acc)
	return err
}

func (d *Device) register(tag ddp.Tag, mem []byte, acc rdma.Access) (rdma.MR, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Closed {
		return rdma.MR{}, rdma.ErrClosed
	}
	if d.strict {
		if err := d.pins.Lock(mem, rdma.MemOf(mem).Addr()); err != nil {
			return rdma.MR{}, fmt.Errorf("%s: register %d bytes: %w", d.name, len(mem), err)
		}
	}
	mr, err := d.Table.RegisterMemory(tag, mem, acc, Domain)
	if err != nil && d.strict {
		d.pins.Unlock(mem, rdma.MemOf(mem).Addr())
	}
	return mr, err
}

// Deregister ends a registration.
func (d *Device) Deregister(mr rdma.MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Closed {
		return rdma.ErrClosed
	}
	if d.hooks.Deregister != nil {
		d.hooks.Deregister(mr.RKey)
	}
	d.Guard.End(mr.RKey)
	if !d.strict {
		return d.Table.DeregisterMemory(mr)
	}
	mem := d.Table.MemoryOf(ddp.Tag(mr.RKey))
	if err := d.Table.DeregisterMemory(mr); err != nil {
		return err
	}
	d.pins.Unlock(mem.Bytes(), mem.Addr())
	return nil
}

// CheckLocal rejects memory that is not registered, in strict mode.
func (d *Device) CheckLocal(what string, body rdma.Mem, lkey uint32) error {
	if !d.strict || body.Len() == 0 || d.Table.Holds(ddp.Tag(lkey), body) {
		return nil
	}
	return fmt.Errorf("%s: the %d bytes of a %s lie in no region with the local key %#x; strict mode requires them to be registered, or sent inline", d.name, body.Len(), what, lkey)
}

// LockedPages returns the number of locked pages.
func (d *Device) LockedPages() int { return d.pins.Len() }

// unlockAll unlocks all registered memory.
func (d *Device) unlockAll() {
	if d.strict {
		d.Table.EachMemory(func(m rdma.Mem) { d.pins.Unlock(m.Bytes(), m.Addr()) })
	}
}
