package engine

// Communicators whose collectives have failed: ranks have made different calls, or an
// operation of the user has panicked. Then no rank can trust a result any more. The
// rank that finds it tells all others by a note, which ends the collectives that they
// have under way and every later one (sticky, like MPI's ULFM revoke). Nothing of this
// costs a collective that goes well more than a comparison that it makes anyway:
//
//	message    carries the signature of its call; a receive compares (p2p.Xfer.Sign)
//	segment    the words carry it (package nodecoll)
//	long wait  a rank that has waited for askAfter asks the rank that it waits for:
//	           "was this your call number n as well?" So a wait that no message can
//	           end is an error too, and not a hang
//
// What a call is and how it is named only package mpi knows: it gives a Past.

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
)

// Tags of notes, in the context of collectives.
const (
	noteBroken = math.MaxInt32 - 2
	noteAsk    = math.MaxInt32 - 3
	noteReply  = math.MaxInt32 - 4
)

// Past is what a rank has called on a communicator. It may be read while the rank
// makes a call.
type Past interface {
	// Latest is the latest call and its number.
	Latest() (number, what uint64)
	// Differs reports whether another rank's call of a number differs from this
	// rank's, as far as that is known.
	Differs(number, what uint64) bool
	// Disagrees reports whether the rank that wrote a note by Tell has made other calls.
	Disagrees(note []byte) bool
	// Broken is called when another rank has told of an error by a note. The lock is
	// held.
	Broken(note []byte)
	// Calls is this rank's calls, for another rank.
	Calls() []byte
	// Tell is what the other ranks are told of an error, at most p2p.MaxNote bytes.
	Encode(err error) []byte
}

// BrokenError says that the collectives of a communicator have failed. Note is what
// the rank that found it says, or nil if this rank did; then Err is why, and Reply what
// a rank that has made other calls has answered.
type BrokenError struct {
	Note     []byte
	Err      error
	Reply    []byte
	Peer     int  // who replied, rank in the communicator
	timedOut bool // nobody has replied in time
}

func (b *BrokenError) Error() string {
	if b.Err != nil {
		return b.Err.Error()
	}
	return fmt.Sprintf("another rank has ended the collectives of the communicator: %q", b.Note)
}

// Unwrap gives the cause, if this rank knows it.
func (b *BrokenError) Unwrap() error { return b.Err }

// MismatchError says that a message of another call has come.
type MismatchError struct {
	Call         string
	Peer         int // rank in the communicator
	Mine, Theirs uint32
	Got, Want    int // bytes
}

func (m *MismatchError) Error() string {
	return fmt.Sprintf("rank %d is in another collective call", m.Peer)
}

// AskedError says that a rank that waits for this one is in another call.
type AskedError struct {
	Peer         int // who asked, in the communicator
	Number, What uint64
}

func (a *AskedError) Error() string {
	return fmt.Sprintf("rank %d has made another call number %d", a.Peer, a.Number)
}

// RegisterComm makes a communicator known that is about to make its first collective call.
// The lock is held.
func (e *Engine) RegisterComm(c *Comm) {
	if e.comms == nil {
		e.comms = make(map[uint32]*Comm)
	}
	known := *c
	e.comms[c.Ctx] = &known
}

// UnregisterComm forgets a communicator.
func (e *Engine) UnregisterComm(ctx uint32) {
	e.lock()
	delete(e.comms, ctx)
	e.unlock()
}

// Broken is why the rank can no longer communicate, or why the collectives of a context
// have failed, or nil.
func (e *Engine) Broken(ctx uint32) error {
	e.lock()
	err := e.failed
	if err == nil && e.broken != nil {
		err = e.brokenError(ctx)
	}
	e.unlock()
	return err
}

func (e *Engine) brokenError(ctx uint32) error {
	if b := e.broken[ctx]; b != nil {
		return b
	}
	return nil
}

// Break ends the collectives of a communicator on all its ranks.
func (e *Engine) Break(c *Comm, err error) {
	e.lock()
	e.breakComm(c, err)
	e.settle()
	e.unlock()
}

// breakComm is Break inside of the engine. What is under way here ends when takeNotes
// is called next: the caller may be in the middle of a run.
func (e *Engine) breakComm(c *Comm, err error) {
	if e.broken[c.Ctx] != nil || e.failed != nil || c.Past == nil {
		return
	}
	e.noteBroken(c.Ctx, &BrokenError{Err: err})
	note := c.Past.Encode(err)
	for r := range c.Size {
		world := r
		if c.Ranks != nil {
			world = int(c.Ranks[r])
		}
		if world != e.rank {
			e.m.Notify(e.link(world), c.Ctx, c.Rank, noteBroken, note)
		}
	}
	e.flush()
	e.m.Out.Notes = append(e.m.Out.Notes, p2p.Note{Ctx: c.Ctx, Tag: noteBroken})
}

func (e *Engine) noteBroken(ctx uint32, b *BrokenError) {
	if e.broken == nil {
		e.broken = make(map[uint32]*BrokenError)
	}
	if e.broken[ctx] == nil {
		e.broken[ctx] = b
	}
}

// takeNotes acts on what other ranks say of communicators.
func (e *Engine) takeNotes() {
	for i := 0; i < len(e.m.Out.Notes); i++ {
		n := e.m.Out.Notes[i]
		switch n.Tag {
		case noteBroken:
			e.noteBroken(n.Ctx, &BrokenError{Note: n.Data})
			if c := e.comms[n.Ctx]; c != nil && n.Link != nil {
				c.Past.Broken(n.Data)
				if c.Past.Disagrees(n.Data) {
					// The finder knows little of our call: a message has no room for more.
					e.m.Notify(n.Link, n.Ctx, c.Rank, noteReply, c.Past.Calls())
					e.flush()
				}
			}
			e.endCollectives(n.Ctx)
		case noteReply:
			if b := e.broken[n.Ctx]; b != nil && b.Reply == nil {
				b.Reply, b.Peer = n.Data, int(n.Source)
			}
		case noteAsk:
			c := e.comms[n.Ctx]
			if number, what, ok := readAsk(n.Data); ok && c != nil && c.Past.Differs(number, what) {
				e.breakComm(c, &AskedError{int(n.Source), number, what})
			}
		}
	}
	clear(e.m.Out.Notes)
	e.m.Out.Notes = e.m.Out.Notes[:0]
}

// endCollectives ends what is under way in a context.
func (e *Engine) endCollectives(ctx uint32) {
	b := e.broken[ctx]
	e.m.Drop(ctx, b)
	if len(e.m.Out.WR) > 0 {
		e.flush()
	}
	for i := len(e.active) - 1; i >= 0; i-- {
		if i >= len(e.active) || e.active[i].Comm.Ctx != ctx {
			continue
		}
		co := e.active[i]
		co.run.Fail(&PartError{Call: co.Call, Err: b})
		e.advanced(co)
	}
}

// replyWithin is how long the rank that finds a fault waits to hear more about it.
const replyWithin = 200 * time.Millisecond

// Reply is what a rank that has made other calls says, if it does so soon.
func (e *Engine) Reply(ctx uint32) (note []byte, peer int) {
	for end := time.Now().Add(replyWithin); ; {
		e.Lock()
		if e.undriven() {
			e.poll()
		}
		b := e.broken[ctx]
		over := b == nil || b.timedOut || b.Reply != nil
		if b != nil {
			note, peer = b.Reply, b.Peer
			b.timedOut = time.Now().After(end)
		}
		e.Unlock()
		if over {
			return note, peer
		}
		e.yieldCore(0)
	}
}

// How long a rank waits before it asks, and at most between two questions.
const (
	askAfter = 200 * time.Millisecond
	askMost  = 5 * time.Second
)

// asking is the questions of one wait.
type asking struct{ next time.Duration }

// after asks the rank that is waited for whether it has made the same call, if the
// wait is one of a collective and has lasted long enough.
func (a *asking) after(e *Engine, since time.Time, xs []*p2p.Xfer) {
	if e.comms == nil || since.IsZero() || time.Since(since) < max(a.next, askAfter) {
		return
	}
	a.next = time.Since(since) + min(max(a.next, askAfter), askMost)
	for _, x := range xs {
		if x == nil || x.Done() {
			continue
		}
		if co := e.collectiveOf(x); co != nil {
			if part := e.partAwaited(x); part != nil {
				e.ask(co.Comm, part.Link, co.Number, co.What)
			}
		} else if c := e.comms[x.Ctx]; c != nil && x.Link != nil { // asleep in a segment
			number, what := c.Past.Latest()
			e.ask(c, x.Link, number, what)
		}
	}
}

func (e *Engine) collectiveOf(x *p2p.Xfer) *Collective {
	for _, co := range e.active {
		if co.whole == x {
			return co
		}
	}
	return nil
}

func (e *Engine) ask(c *Comm, l *p2p.Link, number, what uint64) {
	if l.Rank == e.rank || number == 0 {
		return
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], number)
	binary.LittleEndian.PutUint64(b[8:], what)
	e.m.Notify(l, c.Ctx, c.Rank, noteAsk, b[:])
	e.settle()
}

func readAsk(b []byte) (number, what uint64, ok bool) {
	if len(b) != 16 {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), true
}
