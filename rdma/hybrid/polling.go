package hybrid

import "github.com/muster-mpi/muster/rdma"

var _ rdma.PollingCQ = (*queue)(nil)

// Polling implements rdma.PollingCQ, for the devices below.
func (q *queue) Polling(on bool) {
	for _, cq := range []rdma.CQ{q.rd, q.rc} {
		if below, ok := cq.(rdma.PollingCQ); ok {
			below.Polling(on)
		}
	}
}
