package launch

// Names of services (MPI-4.1 section 11.9.4), for a job and those that its ranks spawn.

import (
	"fmt"
	"sync"

	"github.com/muster-mpi/muster/internal/pmi"
)

// serviceNames are the published ports, by service.
type serviceNames struct {
	mu    sync.Mutex
	ports map[string]string
}

// answer serves a request of a rank.
func (n *serviceNames) answer(r *pmi.NameRequest) (port string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	port, published := n.ports[r.Service]
	switch {
	case r.Publish && published:
		return "", fmt.Errorf("the service %q has been published already; withdraw it first", r.Service)
	case r.Publish:
		if n.ports == nil {
			n.ports = map[string]string{}
		}
		n.ports[r.Service] = r.Port
	case !published:
		return "", fmt.Errorf("no port is published for the service %q", r.Service)
	case r.Withdraw:
		delete(n.ports, r.Service)
	}
	return port, nil
}
