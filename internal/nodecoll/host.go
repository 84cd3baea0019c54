package nodecoll

import (
	"fmt"
	"strconv"
	"sync"
)

// Host connects the ranks that are goroutines of one process. Their regions are ordinary
// memory, found by number until all ranks have attached.
type Host struct {
	mu       sync.Mutex
	last     uint64
	regions  map[uint64][]byte
	meetings map[MeetingKey]*Meeting // meeting.go
}

// NewHost returns an empty host.
func NewHost() *Host {
	return &Host{regions: make(map[uint64][]byte)}
}

// show makes memory available to find until hide is called.
func (h *Host) show(mem []byte) (address string, hide func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	id := h.last
	h.regions[id] = mem
	return strconv.FormatUint(id, 10), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.regions, id)
	}
}

func (h *Host) find(address string) ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, err := strconv.ParseUint(address, 10, 64)
	mem, ok := h.regions[id]
	if err != nil || !ok {
		return nil, fmt.Errorf("there is no segment %q in this process; give all ranks the same Host", address)
	}
	return mem, nil
}
