package shm

import (
	"fmt"
	"os"
	"sync"

	"github.com/muster-mpi/muster/rdma"
)

// Host connects the devices of one process in heap mode.
type Host struct {
	mu      sync.Mutex
	devices map[int]*Device
}

// NewHost returns an empty host.
func NewHost() *Host { return &Host{devices: make(map[int]*Device)} }

func (h *Host) enter(d *Device) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.devices[d.index] != nil {
		return fmt.Errorf("shm: index %d is already open on this Host; give each rank its own", d.index)
	}
	h.devices[d.index] = d
	return nil
}

func (h *Host) leave(d *Device) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.devices[d.index] == d {
		delete(h.devices, d.index)
	}
}

func (h *Host) find(index int) *Device {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.devices[index]
}

// openHeap creates the segment in ordinary memory.
func (d *Device) openHeap() error {
	d.seg = newHeapSegment(d.cfg.size())
	d.addr = rdma.Addr(address{heap: true, index: d.index, nonce: d.nonce}.String())
	return nil
}

// resolveHeap finds the segment of a peer of the same process.
func (d *Device) resolveHeap(p *peer, a address) error {
	if !a.heap {
		return fmt.Errorf("shm: peer %d is another process, but this device was opened with a Host; open both with or both without", a.index)
	}
	other := d.cfg.Host.find(a.index)
	if other == nil || other.nonce != a.nonce {
		return fmt.Errorf("shm: no device with index %d and this address is open on the Host; it was closed, or opened on another Host", a.index)
	}
	p.seg = other.seg
	p.pid = os.Getpid()
	p.fenced = true
	p.reach = d.ownReach()
	return nil
}

// ownReach returns how the memory of this process itself is accessed.
func (d *Device) ownReach() reach {
	switch {
	case d.cfg.NoProcessVM:
		return reachMessages
	case d.cfg.Host != nil:
		return reachHeap
	}
	return reachKernel
}
