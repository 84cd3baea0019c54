package nodecoll

import (
	"fmt"
	"strconv"
	"sync"
)

// Host connects the teams of ranks that are goroutines of one process. Their segments are
// ordinary memory, found by number until all ranks have attached.
type Host struct {
	mu       sync.Mutex
	last     uint64
	segments map[uint64]segment
	regions  map[uint64][]byte
	meetings map[MeetingKey]*Meeting // memory.go
}

// NewHost returns an empty host.
func NewHost() *Host {
	return &Host{segments: make(map[uint64]segment), regions: make(map[uint64][]byte)}
}

func (h *Host) create(size int) creation {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	id := h.last
	c := creation{nonce: id, address: strconv.FormatUint(id, 10)}
	c.seg = layOut(alignedBytes(segmentBytes(size)), size)
	h.segments[id] = c.seg
	c.hide = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.segments, id)
	}
	return c
}

func (h *Host) attach(address string) (m mapping, nonce uint64, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	nonce, err = strconv.ParseUint(address, 10, 64)
	seg, ok := h.segments[nonce]
	if err != nil || !ok {
		return mapping{}, 0, fmt.Errorf("there is no segment %q in this process; give all ranks the same Host", address)
	}
	return mapping{seg: seg}, nonce, nil
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
		return nil, fmt.Errorf("there is no memory %q in this process; give all ranks the same Host", address)
	}
	return mem, nil
}
