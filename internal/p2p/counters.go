package p2p

// Counters of a rank beside those of its links: the lengths of sent messages by protocol
// (P3 section 3), and the memory of its state. A message costs two additions; everything
// else is computed on request.

import (
	"math/bits"
	"reflect"
	"strings"

	"github.com/muster-mpi/muster/rdma"
)

// SizeClasses is the number of classes of message lengths. Class 0 is for messages
// without data, class k for those of 2^(k-1) to 2^k - 1 bytes; maxTotal leaves the last
// ones empty.
const SizeClasses = 64

// SizeCount counts the messages of a class.
type SizeCount struct{ Messages, Bytes uint64 }

// Sizes counts the sent messages by protocol and class.
type Sizes [protocolCount][SizeClasses]SizeCount

func (s *Sizes) add(proto uint8, n int) {
	c := &s[proto][bits.Len64(uint64(n))%SizeClasses]
	c.Messages++
	c.Bytes += uint64(n)
}

// Sizes returns the counts of sent messages, valid until the next call.
func (m *Machine) Sizes() *Sizes { return m.sizes }

// Packets passes the packets sent, by kind, to visit: kinds that occurred, in lower case.
// An EAGER packet is a message by eager or a note, so links count them.
func (m *Machine) Packets(links func(visit func(*Link)), visit func(kind string, n uint64)) {
	sent := m.packets
	links(func(l *Link) { sent[kindEager] += l.Stats.ByProtocol[protoEager] })
	for k, n := range sent {
		if n > 0 {
			visit(strings.ToLower(kindNames[k]), n)
		}
	}
}

// kept counts the eager messages that have no receive yet.
type kept struct{ bytes, peak int }

func (k *kept) add(n int) {
	k.bytes += n
	k.peak = max(k.peak, k.bytes)
}

// Waiting returns the number of unexpected messages, and their bytes.
func (m *Machine) Waiting() (messages, bytes uint64) {
	for g := m.match.arrived.head; g != nil; g = g.nodes[listArrived].next {
		messages++
		bytes += uint64(g.Total)
	}
	return messages, bytes
}

// Footprint is the memory of a machine in bytes, as far as it depends on the program's
// communication.
type Footprint struct {
	Links          int // links, with packets that wait for the device
	Rings          int // rings that peers write packets into
	Operations     int // sends and receives, pending or pooled
	Matching       int // envelopes
	UnexpectedPeak int // greatest amount of unexpected data at one time
}

// Footprint computes the memory of a machine and of its links.
func (m *Machine) Footprint(links func(visit func(*Link))) (f Footprint) {
	f.Operations = len(m.slab) * sizeOf[Xfer]()
	for g := m.msgs; g != nil; g = g.free {
		f.Operations += sizeOf[Msg]() + cap(g.data)
	}
	for _, g := range m.bigMsgs {
		for ; g != nil; g = g.free {
			f.Operations += sizeOf[Msg]() + cap(g.data)
		}
	}
	f.Matching = len(m.match.buckets)*sizeOf[*entry]() + m.match.entries*sizeOf[entry]()
	for e := m.match.free; e != nil; e = e.chain {
		f.Matching += sizeOf[entry]()
	}
	f.UnexpectedPeak = m.kept.peak
	links(func(l *Link) {
		f.Links += l.footprint()
		if l.in != nil {
			f.Rings += len(l.in.mem)
		}
	})
	return f
}

func (l *Link) footprint() int {
	n := sizeOf[Link]() + cap(l.Wait)*sizeOf[rdma.SendWR]() +
		cap(l.partial)*sizeOf[partial]() + cap(l.offers)*sizeOf[offer]() + cap(l.held)*sizeOf[heldPacket]()
	for i := range l.held {
		n += cap(l.held[i].pkt)
	}
	if l.recent != nil {
		n += sizeOf[recent]()
	}
	if l.out != nil {
		n += sizeOf[ringOut]() + cap(l.out.stage)
	}
	return n
}

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }
