package udrel

import (
	"github.com/muster-mpi/muster/rdma"
)

// Explain returns why a peer was declared gone.
func (d *Device) Explain(id rdma.PeerID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.pairs {
		if q != nil && int(id) < len(q.peers) && q.peers[id] != nil && q.peers[id].givenUp > 0 {
			return &rdma.SilenceError{For: q.peers[id].givenUp}
		}
	}
	return nil
}
