package dgram

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// domain is the protection domain of a device: it has only one.
const domain ddp.Domain = 1

// Register gives memory a steering tag that nobody can guess.
func (d *Device) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.MR{}, rdma.ErrClosed
	}
	m := rdma.MemOf(mem)
	tag, err := d.table.Register(ddp.Region{Mem: m, Base: m.Addr(), Access: acc, Domain: domain})
	if err != nil {
		return rdma.MR{}, err
	}
	return rdma.MR{Base: m.Addr(), Len: uint64(len(mem)), RKey: uint64(tag), LKey: uint32(tag)}, nil
}

// Deregister ends the registration.
func (d *Device) Deregister(mr rdma.MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.ErrClosed
	}
	if mr.RKey>>32 != 0 || !d.table.Deregister(ddp.Tag(mr.RKey)) {
		return fmt.Errorf("dgram: no region is registered with the key %#x; it may have been deregistered before", mr.RKey)
	}
	return nil
}
