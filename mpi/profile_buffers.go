package mpi

// How often short messages are sent from the same buffer (T1 table 5.1). This is a property
// of the program. What the library makes of it on a device that requires registered memory
// is counted elsewhere (prof.BuffersDirect).

import "github.com/muster-mpi/muster/prof"

// bufferSlots bounds the number of buffers that are counted at the same time.
const bufferSlots = 256

// bufferUses counts the uses of buffers. The table is direct-mapped: a buffer that comes
// back after another one took its place counts as new, so the share of reused buffers is a
// lower bound.
type bufferUses struct {
	sends, reused uint64
	slots         [bufferSlots]bufferUse
	most          bufferUse
}

type bufferUse struct {
	address uintptr
	length  int
	uses    uint64
}

// shortSend is the length up to which messages count: the usual limit of eager messages.
const shortSend = 32 << 10

// sends notes that the call sends b.
func (h *hookedCall) sends(b []byte) *hookedCall {
	if h != nil && len(b) > 0 && len(b) <= shortSend {
		h.timed.buffer, h.timed.length = addressOf(b), len(b)
	}
	return h
}

func (u *bufferUses) count(address uintptr, length int) {
	u.sends++
	s := &u.slots[uint64(address)*0x9e3779b97f4a7c15>>56]
	if s.address != address {
		*s = bufferUse{address: address, length: length, uses: 1}
		return
	}
	u.reused++
	s.uses++
	s.length = max(s.length, length)
	if s.uses > u.most.uses {
		u.most = *s
	}
}

func (u *bufferUses) addTo(c *prof.Counters) {
	c.Add(prof.BuffersSent, u.sends)
	c.Add(prof.BuffersReused, u.reused)
	c.Add(prof.BuffersMostUses, u.most.uses)
	c.Add(prof.BuffersMostBytes, uint64(u.most.length))
}
