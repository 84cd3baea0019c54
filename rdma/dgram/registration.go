package dgram

import (
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
	return d.table.RegisterMemory(mem, acc, domain)
}

// Deregister ends the registration.
func (d *Device) Deregister(mr rdma.MR) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return rdma.ErrClosed
	}
	return d.table.DeregisterMemory(mr)
}
