package dgram

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

var _ rdma.ExplainingDevice = (*Device)(nil)

// errNoProcess is what an ICMP message of the peer's host says (RFC 792, port unreachable).
var errNoProcess = errors.New("its host answers, and says that no process receives there: the process has ended")

// Explain says why a peer was given up.
func (d *Device) Explain(id rdma.PeerID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.pairs {
		if q == nil {
			continue
		}
		d, ok := q.silences[id]
		switch {
		case !ok:
		case int(id) < len(q.peers) && q.peers[id] != nil && q.peers[id].rejected:
			return fmt.Errorf("nothing was heard for %v; %w", d.Round(100*time.Millisecond), errNoProcess)
		default:
			return &rdma.SilenceError{For: d}
		}
	}
	return nil
}
