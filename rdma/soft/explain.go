package soft

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// errNoProcess is the meaning of an ICMP port unreachable message from the peer's host
// (RFC 792).
var errNoProcess = errors.New("its host answers, and says that no process receives there: the process has ended")

// Explain returns why a peer was declared gone.
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
