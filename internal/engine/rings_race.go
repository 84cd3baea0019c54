//go:build race

package engine

import "github.com/muster-mpi/muster/rdma"

// orderAfterRing orders what follows behind what a device has done up to now. A packet in
// a ring tells that what was written before it has come too, which a device of software
// may have done on a thread of its own. The race detector does not see that in the ring,
// whose memory is not Go's; it sees a lock of the device.
func (d *lane) orderAfterRing() {
	if qp, ok := d.qp.(rdma.DrainQP); ok {
		qp.Pending()
	}
}
