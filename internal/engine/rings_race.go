//go:build race

package engine

import "github.com/muster-mpi/muster/rdma"

// orderAfterRing orders the following code after what the device has written so far. A
// packet in a ring shows that all earlier writes have arrived, which a software device
// may have done on a thread of its own. The race detector cannot see that order in the
// ring, whose memory is not Go's; it sees a lock of the device.
func (d *lane) orderAfterRing() {
	if qp, ok := d.qp.(rdma.DrainQP); ok {
		qp.Pending()
	}
}
