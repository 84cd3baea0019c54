package soft

import (
	"reflect"

	"github.com/muster-mpi/muster/rdma"
	base "github.com/muster-mpi/muster/rdma/internal/soft"
)

// Caps returns what the device can do in addition to rdma.Device.
func (d *Device) Caps() rdma.Caps {
	return rdma.Caps{
		Notify: base.Notify | rdma.NotifyBeside, Rails: d.Rails(),
		NameOf: d.NameOf, Explain: d.Explain, Abandon: d.Abandon, Count: d.Count,
	}
}

// traffic counts datagrams. The data path only increments counters; memory use is computed
// when Count is called. The window pool, which all senders of the device share,
// counts retransmissions.
type traffic struct {
	sent       uint64
	received   uint64 // for a queue pair of ours
	duplicates uint64 // of those, received before
	acks       uint64 // sent alone
}

// Count reports the device's counters and memory use.
func (d *Device) Count(add func(name rdma.Counter, value uint64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, drops := &d.traffic, &d.drops
	add(rdma.DatagramsRetransmitted, d.outgoing.windowPool.Retransmitted)
	add(rdma.DatagramsProbes, d.outgoing.windowPool.Probes)
	add(rdma.DatagramsTimeouts, d.outgoing.windowPool.Timeouts)
	add(rdma.DatagramsDuplicate, t.duplicates)
	if d.net.below != nil {
		d.countBelow(add)
	} else {
		d.countSockets(add)
	}
	add(rdma.DatagramsRefused, drops.Corrupt+drops.Strangers+drops.Secrecy+drops.Malformed+drops.Astray+drops.Replayed+drops.Barred)
	d.countPaths(add)
	add(rdma.LowWater, d.soft.LowWaters)
	if d.soft.Closed {
		return
	}
	add(rdma.MemoryReceive, d.receiveMemory())
	add(rdma.MemorySend, d.sendMemory())
	add(rdma.MemoryPeers, d.peerMemory())
	add(rdma.MemoryTables, d.table.Memory())
}

// countSockets reports what countBelow reports over another device: datagrams, peers, and what
// the kernel knows of the sockets.
func (d *Device) countSockets(add func(name rdma.Counter, value uint64)) {
	add(rdma.DatagramsSent, d.traffic.sent)
	add(rdma.DatagramsReceived, d.traffic.received)
	if d.soft.Closed {
		return
	}
	add(rdma.Sockets, uint64(d.net.sockets()))
	add(rdma.PeersKnown, uint64(len(d.peers.list)))
	var kernel, dropped uint64
	for on := range d.net.sockets() {
		kernel += d.net.socketOf(on).kernelMemory()
		dropped += d.net.socketOf(on).kernelDrops()
	}
	add(rdma.MemoryKernel, kernel)
	add(rdma.DatagramsDropped, dropped)
}

// receiveMemory returns the size of the slots, as far as datagrams have filled them,
// and of the reassembly buffers.
func (d *Device) receiveMemory() uint64 {
	n := uint64(d.incoming.store.filled)
	if d.net.below != nil {
		n = d.net.below.pool.Stats().Bytes
	}
	n += uint64(len(d.incoming.joinBuffers)) * sizeOf[joinBuffer]()
	n += uint64(len(d.incoming.reorderBuffers)) * sizeOf[reorderBuffer]()
	return n + d.soft.QueueMemory()
}

// sendMemory returns the size of the packets and of the messages, in use and free.
func (d *Device) sendMemory() uint64 {
	n := uint64(d.outgoing.outbox.most) * uint64(wholePages(d.datagram))
	count := func(m *message) { n += sizeOf[message]() }
	for _, m := range d.outgoing.spare {
		count(m)
	}
	d.eachPeer(func(p *peer) {
		for m := p.Oldest(); m != nil; m = m.Following {
			count(m)
		}
	})
	return n + uint64(d.outgoing.windowPool.Memory()) + uint64(d.outgoing.bodies.made)
}

// peerMemory returns the size of the peers' state.
func (d *Device) peerMemory() uint64 {
	n := uint64(cap(d.peers.list))*sizeOf[address]() + uint64(len(d.peers.known))*(sizeOf[uint64]()+sizeOf[rdma.PeerID]()) +
		uint64(len(d.incoming.requests))*sizeOf[requests]()
	for _, ends := range d.net.endpoints {
		n += uint64(cap(ends)) * sizeOf[endpoint]()
	}
	d.eachPeer(func(p *peer) {
		n += sizeOf[peer]() + uint64(p.PathMemory())
		if p.requests != nil {
			n += sizeOf[requests]()
		}
		if p.reorderBuffer != nil {
			n += sizeOf[reorderBuffer]()
		}
	})
	for _, q := range d.pairs {
		if q != nil {
			n += uint64(cap(q.peers)) * sizeOf[*peer]()
		}
	}
	return n
}

func (d *Device) eachPeer(visit func(*peer)) {
	for _, q := range d.pairs {
		if q == nil {
			continue
		}
		for _, p := range q.peers {
			if p != nil {
				visit(p)
			}
		}
	}
}

func sizeOf[T any]() uint64 { return uint64(reflect.TypeFor[T]().Size()) }
