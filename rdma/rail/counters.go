package rail

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// Counters and memory use: Count for profiles, including the counters of the rails, and
// Paths for users who want to see how a peer is reached.

var _ rdma.CountingDevice = (*Device)(nil)

// Count reports counters and memory use of the device and its rails.
func (d *Device) Count(add func(name rdma.Counter, value uint64)) {
	known := uint64(0)
	for _, r := range d.rails {
		if c, ok := r.Device.(rdma.CountingDevice); ok {
			c.Count(func(name rdma.Counter, value uint64) {
				if name == rdma.PeersKnown {
					known = max(known, value) // each rail has the same peers
					return
				}
				add(name, value)
			})
		}
	}
	for i, c := range d.Counts() {
		add(rdma.Counter("rail-bytes."+d.rails[i].Name), c.Bytes)
		add("rails.left", c.Left)
		add("rails.back", c.Back)
		add("rails.again", c.Again)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	add("rails.doubles", d.drops.Doubles)
	d.soft.Thread.Count(add)
	add(rdma.PeersKnown, max(known, uint64(len(d.peers))))
	if d.soft.Closed {
		return
	}
	add(rdma.MemoryPeers, d.peerMemory())
	copies := 0
	for i := range d.buffers {
		for _, b := range d.buffers[i] {
			copies += len(b)
		}
	}
	add(rdma.MemorySend, uint64(copies))
	add(rdma.MemoryTables, d.soft.Table.Memory())
}

// peerMemory is what is kept of peers, and the memory of those that are busy or were.
func (d *Device) peerMemory() uint64 {
	n := uint64(cap(d.peers))*sizeOf[peer]() +
		uint64(len(d.freePieces))*sizeOf[pieces]() + uint64(len(d.freeReorderBuffers))*sizeOf[reorderBuffer]() +
		uint64(len(d.freeTickets))*sizeOf[tickets]() + uint64(len(d.freeRequests))*sizeOf[requests]()
	for _, q := range d.pairs {
		for _, f := range q.flows {
			if f == nil {
				continue
			}
			n += sizeOf[flow]() + uint64(len(f.paths))*sizeOf[path]()
			if f.out.ring != nil {
				n += sizeOf[pieces]()
			}
			if f.in.reorderBuffer != nil {
				n += sizeOf[reorderBuffer]()
			}
			if f.requests != nil {
				n += sizeOf[requests]()
			}
			for i := range f.paths {
				if f.paths[i].tickets != nil {
					n += sizeOf[tickets]()
				}
			}
		}
	}
	return n
}

func sizeOf[T any]() uint64 { return uint64(reflect.TypeFor[T]().Size()) }

// Rails returns the number of rails.
func (d *Device) Rails() int { return len(d.rails) }

// Paths describes in one line how a peer is reached: each rail with its state.
func (d *Device) Paths(id rdma.PeerID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if int(id) >= len(d.peers) {
		return fmt.Sprintf("no peer has the handle %d", id)
	}
	var words []string
	for i, r := range d.rails {
		state := "not reached"
		for _, q := range d.pairs {
			if int(id) >= len(q.flows) || q.flows[id] == nil || !q.flows[id].paths[i].reached {
				continue
			}
			p := &q.flows[id].paths[i]
			state = p.state.String()
			if p.measured {
				state = fmt.Sprintf("%s, %.0f MB/s", state, p.speed*1000)
			}
		}
		words = append(words, fmt.Sprintf("%s (%s)", r.Name, state))
	}
	return fmt.Sprintf("peer %d over %s", d.peers[id].name, strings.Join(words, ", "))
}
