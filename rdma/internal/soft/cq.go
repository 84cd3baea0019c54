package soft

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma"
)

// CQ is the common part of a completion queue. L describes a buffer that is lent with a
// completion. The device's type embeds it and adds Poll:
//
//	lent, ok := c.Begin()   the buffers to take back; not ok: the queue is closed
//	...                     make progress, which calls Push and Lend
//	return c.Take(out)
type CQ[L any] struct {
	waits
	giveBack func(L)
	ready    []entry[L]
	first    int // index of the first entry of ready not yet returned
	// lent has what Poll lent, to the application and to a goroutine beside it.
	lent   [2][]L
	beside int // 1: the calls come from beside the application
}

type entry[L any] struct {
	completion rdma.Completion
	loan       L
	lends      bool
}

const fewestReady = 64

// Open opens the queue. giveBack takes back a buffer that Begin does not return, because
// the queue is closed.
func (c *CQ[L]) Open(d *Device, giveBack func(L)) error {
	if d.Closed {
		return rdma.ErrClosed
	}
	c.giveBack = giveBack
	c.ready = make([]entry[L], 0, fewestReady)
	if err := c.waits.open(d, c); err != nil {
		return fmt.Errorf("%s: open the descriptors of a completion queue: %w; see the limit of open files (ulimit -n)", d.name, err)
	}
	return nil
}

// Len returns the number of completions that were not polled.
func (c *CQ[L]) Len() int { return len(c.ready) - c.first }

// Push adds a completion.
func (c *CQ[L]) Push(done rdma.Completion) {
	if e := c.push(); e != nil {
		e.completion = done
	}
}

// Lend adds a completion with a lent buffer.
func (c *CQ[L]) Lend(done rdma.Completion, loan L) {
	if e := c.push(); e != nil {
		e.completion, e.loan, e.lends = done, loan, true
	} else {
		c.giveBack(loan)
	}
}

// push returns a new entry, nil if the queue is closed.
func (c *CQ[L]) push() *entry[L] {
	if c.closed {
		return nil
	}
	if c.first > 0 && len(c.ready) == cap(c.ready) {
		n := copy(c.ready, c.ready[c.first:])
		clear(c.ready[n:])
		c.ready, c.first = c.ready[:n], 0
	}
	c.ready = append(c.ready, entry[L]{})
	c.queued++
	c.wakeSleepers() // another goroutine may make progress
	return &c.ready[len(c.ready)-1]
}

// Begin begins a Poll. It returns the buffers that the application, or the goroutine
// beside it, gives back by calling Poll. They are valid until Take.
func (c *CQ[L]) Begin() (lent []L, ok bool) {
	if c.closed {
		return nil, false
	}
	c.moved = false
	c.EndArming()
	c.dev.CountCall()
	lent = c.lent[c.beside]
	c.lent[c.beside] = lent[:0]
	if c.beside == 0 && len(c.lent[1]) > 0 {
		lent = append(lent, c.lent[1]...)
		c.lent[1] = c.lent[1][:0]
	}
	return lent, true
}

// Take moves completions to out and records what they lend.
func (c *CQ[L]) Take(out []rdma.Completion) (n int) {
	for n < len(out) && c.first < len(c.ready) {
		e := &c.ready[c.first]
		out[n] = e.completion
		if e.lends {
			c.lent[c.beside] = append(c.lent[c.beside], e.loan)
		}
		*e = entry[L]{}
		c.first++
		n++
	}
	if c.first == len(c.ready) {
		c.ready, c.first = c.ready[:0], 0
	}
	c.queued -= n
	return n
}

// SetBeside declares that the following Polls come from a second goroutine: what the
// application has been lent stays lent.
func (c *CQ[L]) SetBeside(on bool) {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.beside = 0; on {
		c.beside = 1
	}
}

// IsBeside reports whether the current Poll comes from a second goroutine.
func (c *CQ[L]) IsBeside() bool { return c.beside != 0 }

// EachUnpolled calls do for each completion that was not polled, with what it lends.
func (c *CQ[L]) EachUnpolled(do func(done *rdma.Completion, loan *L)) {
	for i := c.first; i < len(c.ready); i++ {
		do(&c.ready[i].completion, &c.ready[i].loan)
	}
}

func (c *CQ[L]) memory() uint64 { return uint64(cap(c.ready)) * sizeOf[entry[L]]() }

// drop gives back everything lent, when the queue is closed.
func (c *CQ[L]) drop() {
	for _, lent := range c.lent {
		for _, l := range lent {
			c.giveBack(l)
		}
	}
	for i := range c.ready[c.first:] {
		if e := &c.ready[c.first+i]; e.lends {
			c.giveBack(e.loan)
		}
	}
	c.ready, c.first, c.lent = nil, 0, [2][]L{}
}
