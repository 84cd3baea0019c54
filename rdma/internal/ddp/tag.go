package ddp

import (
	"errors"
	"fmt"
	"io"

	"github.com/muster-mpi/muster/rdma"
)

// Steering tags. Peers name memory by tags, so everything that protects memory is here:
// Register creates a tag, reach checks an access by a peer and is the only path to the
// memory of a tag, Deregister and Invalidate end it.
//
// A tag is 32 random bits and no part of it is sequential: a peer that has some tags
// learns nothing about the others (RFC 5042 section 6.1.1, RFC 5040 section 8.1.1; ReDMArk
// exploits the predictable keys of hardware). The table uses open addressing: the tag is
// its own hash, because it is random.

// Tag is a steering tag (STag). 0 names nothing.
type Tag uint32

// Domain is a protection domain: RFC 5042 section 2.2.4.
type Domain uint32

// StreamID identifies a connection or peer within a device. 0 is none.
type StreamID uint32

// Region is registered memory.
type Region struct {
	Mem    rdma.Mem
	Base   uint64 // the address of its first byte, as peers use it
	Access rdma.Access
	Domain Domain
	// Stream, when not 0, is the only stream that may use the tag.
	Stream StreamID
	// Invalidable permits the peer of Stream to end the registration, with a Send with
	// Invalidate. A region that several streams may use must not be ended by one of them
	// (RFC 5042 section 6.4.5), so Stream is not 0.
	Invalidable bool
}

// refusal is the reason why an access is refused. The layers have different codes for it.
type refusal uint8

const (
	granted refusal = iota
	refusedTag
	refusedBounds
	refusedAccess
	refusedStream
	refusedWrap
)

// refusedPlacement has the faults of a tagged segment. DDP has no access rights (RFC 5041
// section 7.2): for the peer, a tag without the right is the same as none.
var refusedPlacement = [...]Fault{
	granted: NoFault, refusedTag: FaultTag, refusedBounds: FaultTagBounds,
	refusedAccess: FaultTag, refusedStream: FaultTagStream, refusedWrap: FaultTagWrap,
}

// refusedSource has the faults of the source of a read and the target of an atomic.
var refusedSource = [...]Fault{
	granted: NoFault, refusedTag: FaultSourceTag, refusedBounds: FaultSourceBounds,
	refusedAccess: FaultSourceAccess, refusedStream: FaultSourceStream, refusedWrap: FaultSourceWrap,
}

// Table holds the tags of a device.
type Table struct {
	random  io.Reader
	draw    [4]byte
	slots   []slot // length is a power of two
	used    int
	maximum int
}

type slot struct {
	tag    Tag // 0: free
	region Region
}

const fewestSlots = 16

// NewTable returns a table of at most maximum regions, whose tags are drawn from random:
// crypto/rand.Reader, except in tests.
func NewTable(random io.Reader, maximum int) *Table {
	return &Table{random: random, maximum: maximum}
}

// Len returns the number of regions.
func (t *Table) Len() int { return t.used }

// Register registers a region under a tag that cannot be guessed.
func (t *Table) Register(r Region) (Tag, error) { return t.registerAs(0, r) }

// registerAs registers a region under a tag that another table has drawn, or 0.
func (t *Table) registerAs(tag Tag, r Region) (Tag, error) {
	if r.Base+uint64(r.Mem.Len()) < r.Base {
		return 0, fmt.Errorf("ddp: a region of %d bytes at %#x leaves the 64-bit address space; give it a lower base", r.Mem.Len(), r.Base)
	}
	if r.Invalidable && r.Stream == 0 {
		return 0, errors.New("ddp: a region that all streams may use cannot be invalidated by one of them; name its stream")
	}
	if t.used >= t.maximum {
		return 0, fmt.Errorf("ddp: all %d steering tags are in use; deregister something first: %w", t.maximum, rdma.ErrNoResources)
	}
	if 2*(t.used+1) > len(t.slots) {
		t.grow()
	}
	if tag == 0 {
		var err error
		if tag, err = t.Draw(); err != nil {
			return 0, err
		}
	} else if t.find(tag) >= 0 {
		return 0, fmt.Errorf("ddp: the steering tag %#x is in use", uint32(tag))
	}
	t.insert(slot{tag, r})
	t.used++
	return tag, nil
}

// Draw returns a tag that no region has. The sink of a read has such a tag: it is valid
// only for that read and never in the table.
func (t *Table) Draw() (Tag, error) {
	for {
		if _, err := io.ReadFull(t.random, t.draw[:]); err != nil {
			return 0, fmt.Errorf("ddp: no random number for a steering tag: %w; check the system's random source", err)
		}
		tag := Tag(t.draw[0])<<24 | Tag(t.draw[1])<<16 | Tag(t.draw[2])<<8 | Tag(t.draw[3])
		if tag != 0 && t.find(tag) < 0 {
			return tag, nil
		}
	}
}

func (t *Table) grow() {
	old := t.slots
	t.slots = make([]slot, max(fewestSlots, 2*len(old)))
	for _, s := range old {
		if s.tag != 0 {
			t.insert(s)
		}
	}
}

func (t *Table) insert(s slot) {
	i := t.home(s.tag)
	for t.slots[i].tag != 0 {
		i = t.nextSlot(i)
	}
	t.slots[i] = s
}

func (t *Table) home(tag Tag) int     { return int(tag) & (len(t.slots) - 1) }
func (t *Table) nextSlot(i int) int   { return (i + 1) & (len(t.slots) - 1) }
func (t *Table) gap(from, to int) int { return (to - from) & (len(t.slots) - 1) }

// find returns the slot of a tag, or -1. Half of the slots are free, so the search ends.
func (t *Table) find(tag Tag) int {
	if t.used == 0 || tag == 0 {
		return -1
	}
	for i := t.home(tag); ; i = t.nextSlot(i) {
		switch t.slots[i].tag {
		case tag:
			return i
		case 0:
			return -1
		}
	}
}

// remove frees a slot and closes the gap, so that no search ends there too early.
func (t *Table) remove(i int) {
	t.used--
	for j := t.nextSlot(i); t.slots[j].tag != 0; j = t.nextSlot(j) {
		// The entry at j may move to i if i is no further from its home.
		if h := t.home(t.slots[j].tag); t.gap(h, i) < t.gap(h, j) {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = slot{}
}

// reach returns the memory that a peer of a stream names by a tag, an address and a
// length, if it has all the rights in need. Every placement and every source of a read is
// checked here (RFC 5042 section 6.2.1 and 6.3.1). n is at least 1: an empty access is not
// checked (RFC 5041 section 5.2).
func (t *Table) reach(d Domain, s StreamID, tag Tag, to, n uint64, need rdma.Access) ([]byte, refusal) {
	i := t.find(tag)
	if i < 0 {
		return nil, refusedTag
	}
	r := &t.slots[i].region
	switch {
	case r.Domain != d || r.Stream != 0 && r.Stream != s:
		return nil, refusedStream
	case r.Access&need != need:
		return nil, refusedAccess
	case to+n < to:
		return nil, refusedWrap
	}
	off, size := to-r.Base, uint64(r.Mem.Len()) // an address below Base wraps and is too large
	if off > size || n > size-off {
		return nil, refusedBounds
	}
	return r.Mem.Bytes()[off : off+n : off+n], granted
}

// Placement returns the memory for n bytes that a peer writes: RFC 5041 section 7.1.
func (t *Table) Placement(d Domain, s StreamID, tag Tag, to, n uint64) ([]byte, Fault) {
	mem, r := t.reach(d, s, tag, to, n, rdma.RemoteWrite)
	return mem, refusedPlacement[r]
}

// Source returns the memory of n bytes that a peer reads: RFC 5040 section 7.2.
func (t *Table) Source(d Domain, s StreamID, tag Tag, to, n uint64) ([]byte, Fault) {
	mem, r := t.reach(d, s, tag, to, n, rdma.RemoteRead)
	return mem, refusedSource[r]
}

// Target returns the 8 bytes that a peer changes by an atomic: RFC 7306 section 8.2. The
// memory must be aligned, whatever its address is to peers.
func (t *Table) Target(d Domain, s StreamID, tag Tag, to uint64) ([]byte, Fault) {
	mem, r := t.reach(d, s, tag, to, 8, rdma.RemoteRead|rdma.RemoteWrite)
	if r == granted && rdma.MemOf(mem).Addr()%8 != 0 {
		return nil, FaultAlignment
	}
	return mem, refusedSource[r]
}

// Deregister ends a registration by its owner. It returns false if there is no such tag.
func (t *Table) Deregister(tag Tag) bool {
	i := t.find(tag)
	if i < 0 {
		return false
	}
	t.remove(i)
	return true
}

// RegisterMemory is Register for a device: the addresses are those of the memory, and all
// streams of its domain may use it. A tag other than 0 is one that another table has drawn.
func (t *Table) RegisterMemory(tag Tag, mem []byte, acc rdma.Access, d Domain) (rdma.MR, error) {
	m := rdma.MemOf(mem)
	tag, err := t.registerAs(tag, Region{Mem: m, Base: m.Addr(), Access: acc, Domain: d})
	if err != nil {
		return rdma.MR{}, err
	}
	return rdma.MR{Base: m.Addr(), Len: uint64(len(mem)), RKey: uint64(tag), LKey: uint32(tag)}, nil
}

// DeregisterMemory ends a registration by RegisterMemory.
func (t *Table) DeregisterMemory(mr rdma.MR) error {
	if mr.RKey>>32 != 0 || !t.Deregister(Tag(mr.RKey)) {
		return fmt.Errorf("ddp: no region is registered with the key %#x; it may have been deregistered before", mr.RKey)
	}
	return nil
}

// Invalidate ends a registration for a peer: RFC 5040 section 5.3. A peer may end only
// what it may use, and only if the owner permits it.
func (t *Table) Invalidate(d Domain, s StreamID, tag Tag) Fault {
	i := t.find(tag)
	if i < 0 {
		return FaultSourceTag
	}
	r := &t.slots[i].region
	if !r.Invalidable || r.Domain != d || r.Stream != s {
		return FaultInvalidate
	}
	t.remove(i)
	return NoFault
}
