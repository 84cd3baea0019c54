package hybrid

import "github.com/muster-mpi/muster/rdma"

// Copies of bodies that were sent inline and are longer than the device below copies by
// itself. One long message is better than many of that length, and its sender continues at
// once. The request is posted without Inline, under an ID of ours; its completion releases
// the copy, and is shown to the user only if it is a failure.

const (
	mostInline = 16 << 10
	mostCopies = 128 // so 2 MB at most, allocated as needed
	slotBits   = 16
)

type copies struct {
	base uint64 // in the upper bits of our IDs: random, to differ from the user's
	list []copied
	free []uint16
	used int
}

type copied struct {
	id   uint64 // the user's
	buf  []byte
	keys [paths]uint32 // of buf, in strict mode
	busy bool
}

// takeCopy copies the body of a request and changes it. It returns false if all are in
// use.
func (d *Device) takeCopy(wr *rdma.SendWR, way path) bool {
	c := &d.copies
	n := len(c.free)
	if n == 0 {
		if len(c.list) == mostCopies {
			return false
		}
		one := copied{buf: make([]byte, mostInline)}
		var err error
		if one.keys, err = d.own(one.buf); err != nil {
			return false // no more memory can be locked: the existing copies must suffice
		}
		c.free = append(c.free, uint16(len(c.list)))
		c.list = append(c.list, one)
		n = 1
	}
	slot := c.free[n-1]
	c.free = c.free[:n-1]
	one := &c.list[slot]
	one.id, one.busy = wr.ID, true
	c.used++
	wr.ID, wr.Flags, wr.LKey = c.base<<slotBits|uint64(slot), wr.Flags&^rdma.Inline, one.keys[way]
	wr.Body = rdma.MemOf(one.buf[:copy(one.buf, wr.Body.Bytes())])
	return true
}

// end releases the copy of one of our IDs, and returns the user's ID.
func (c *copies) end(id uint64) (user uint64, ours bool) {
	slot := id & (1<<slotBits - 1)
	if c.used == 0 || id>>slotBits != c.base || slot >= uint64(len(c.list)) || !c.list[slot].busy {
		return 0, false
	}
	one := &c.list[slot]
	one.busy = false
	c.used--
	c.free = append(c.free, uint16(slot))
	return one.id, true
}

// memory returns the memory of the copies.
func (c *copies) memory() uint64 { return uint64(len(c.list)) * mostInline }

// finish releases the copy of a completion, if it has one, and reports whether the user is
// to see the completion.
func (c *copies) finish(done *rdma.Completion) (show bool) {
	if c.used == 0 || done.Op == rdma.OpRecv {
		return true
	}
	id, ours := c.end(done.ID)
	if !ours {
		return true
	}
	done.ID = id
	return done.Status != rdma.StatusOK
}

// filter removes the completions that the user is not to see.
func (c *copies) filter(list []rdma.Completion) (kept int) {
	for i := range list {
		if c.finish(&list[i]) {
			if kept < i {
				list[kept] = list[i]
			}
			kept++
		}
	}
	return kept
}
