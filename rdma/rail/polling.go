package rail

import "github.com/muster-mpi/muster/rdma"

var _ rdma.PollingCQ = (*queue)(nil)

// Polling implements rdma.PollingCQ, for this device and for the rails.
func (c *queue) Polling(on bool) {
	c.CQ.Polling(on)
	for _, q := range c.pairs {
		for i := range q.rails {
			if below, ok := q.rails[i].cq.(rdma.PollingCQ); ok {
				below.Polling(on)
			}
		}
	}
}
