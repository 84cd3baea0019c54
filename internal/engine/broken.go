package engine

// Failed collectives: ranks have made different calls, or a user function has panicked.
// No rank can trust a result then. The rank that detects it notifies all others, which
// ends their pending collectives and every later one (sticky, like MPI's ULFM revoke).
// A successful collective pays only for a comparison that it makes anyway:
//
//	message    carries the signature of its call; a receive compares it (p2p.Xfer.Sign)
//	segment    the words of package nodecoll carry the signature
//	long wait  a rank that has waited for askAfter asks the awaited rank whether its
//	           call number n was the same. So a wait that no message can end results
//	           in an error instead of a hang. At the gate, where it waits for no single
//	           rank, it asks the next one. A rank that is in Finalize replies that it will
//	           never make the call
//	gate       the last rank to arrive compares the sum of the ranks' calls
//	           (internal/pmi, gate.go) and asks all ranks
//
// Only package mpi knows what a call is and how it is named: it provides a Past.

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
)

// Past is the record of a rank's calls on a communicator. It may be read while the rank
// makes a call.
type Past interface {
	// Latest returns the latest call and its number.
	Latest() (number, what uint64)
	// Differs reports whether another rank's call of a number differs from this rank's,
	// as far as it is recorded.
	Differs(number, what uint64) bool
	// FirstDifference returns the first call of another rank, encoded by Calls, that
	// differs from this rank's; or the number of its latest call and 0, if it has made
	// more or fewer calls and the records do not show which differ.
	FirstDifference(calls []byte) (number, what uint64, differ bool)
	// Tolerates reports whether another rank's call, given by its signature, differs from
	// the call what with the signature mine in a way that the communicator tolerates.
	Tolerates(what uint64, mine, theirs uint32) bool
	// Disagrees reports whether the rank that sent a note has made other calls.
	Disagrees(note []byte) bool
	// NoteBroken is called when a note of another rank reports an error, with the lock held.
	NoteBroken(note []byte)
	// Calls returns this rank's calls, for another rank.
	Calls() []byte
	// Encode returns the note that reports an error to the other ranks, at most
	// p2p.MaxNote bytes.
	Encode(err error) []byte
}

// BrokenError reports that the collectives of a communicator have failed. Note is the
// report of the rank that detected it, nil if this rank did; then Err is the reason, and
// Reply the answer of a rank that has made other calls.
type BrokenError struct {
	Note     []byte
	Err      error
	Reply    []byte
	Peer     int  // rank in the communicator that replied
	timedOut bool // no rank replied in time
}

func (b *BrokenError) Error() string {
	if b.Err != nil {
		return b.Err.Error()
	}
	return fmt.Sprintf("another rank has ended the collectives of the communicator: %q", b.Note)
}

// Unwrap returns the cause, if this rank detected it.
func (b *BrokenError) Unwrap() error { return b.Err }

// MismatchError reports a message of another call.
type MismatchError struct {
	Call         string
	Peer         int // rank in the communicator
	Mine, Theirs uint32
	Got, Want    int // bytes
}

func (m *MismatchError) Error() string {
	return fmt.Sprintf("rank %d is in another collective call", m.Peer)
}

// AskedError reports that a rank that waits for this one is in another call.
type AskedError struct {
	Peer         int // rank in the communicator that asked
	Number, What uint64
}

func (a *AskedError) Error() string {
	return fmt.Sprintf("rank %d has made another call number %d", a.Peer, a.Number)
}

// LeftError reports that a rank is in Finalize and will not make a call of this rank.
type LeftError struct {
	Peer         int // rank in the communicator
	Number, What uint64
}

func (l *LeftError) Error() string {
	return fmt.Sprintf("rank %d has left in Finalize without call number %d", l.Peer, l.Number)
}

// RegisterComm registers a communicator before its first collective call.
func (e *Held) RegisterComm(c *Comm) {
	if e.colls.comms == nil {
		e.colls.comms = make(map[uint32]*Comm)
	}
	registered := *c
	e.colls.comms[c.Ctx] = &registered
}

// UnregisterComm removes a communicator.
func (r *Engine) UnregisterComm(ctx uint32) {
	e := r.lock()
	delete(e.colls.comms, ctx)
	e.leaveSlot(ctx)
	e.freeMember(ctx)
	e.unlock()
}

// CheckComm returns why the rank can no longer communicate, or why the collectives of a
// context have failed, or nil.
func (r *Engine) CheckComm(ctx uint32) error {
	e := r.lock()
	defer e.unlock()
	return e.errIn(ctx)
}

// errIn returns why collectives of a context cannot go on, or nil.
func (e *Held) errIn(ctx uint32) error {
	if e.failed != nil {
		return e.failed
	}
	return e.colls.err(ctx)
}

// Break ends the collectives of a communicator on all its ranks.
func (r *Engine) Break(c *Comm, err error) {
	e := r.lock()
	e.Break(c, err)
	e.unlock()
}

// Break ends the collectives of a communicator on all its ranks.
func (e *Held) Break(c *Comm, err error) {
	e.breakComm(c, err)
	e.settle()
}

// breakComm is Break inside the engine. The next takeNotes ends this rank's pending
// collectives: the caller may be in the middle of a run.
func (e *Held) breakComm(c *Comm, err error) {
	if e.colls.broken[c.Ctx] != nil || e.failed != nil || c.Past == nil {
		return
	}
	e.colls.fail(c.Ctx, &BrokenError{Err: err})
	e.notifyAll(c, noteBroken, c.Past.Encode(err))
	e.m.Out.Notes = append(e.m.Out.Notes, p2p.Note{Ctx: c.Ctx, Tag: noteBroken})
}

// notifyAll sends a note to all other ranks of a communicator.
func (e *Held) notifyAll(c *Comm, tag int32, note []byte) {
	for r := range c.Size {
		if world := c.Ranks.At(r); world != e.rank {
			e.m.Notify(e.link(world), c.Ctx, c.Rank, tag, note)
		}
	}
	e.flush()
}

// takeNotes handles notes from other ranks about communicators.
func (e *Held) takeNotes() {
	for i := 0; i < len(e.m.Out.Notes); i++ {
		n := e.m.Out.Notes[i]
		switch n.Tag {
		case noteBroken:
			e.colls.fail(n.Ctx, &BrokenError{Note: n.Data})
			if c := e.colls.comms[n.Ctx]; c != nil && n.Link != nil {
				c.Past.NoteBroken(n.Data)
				if c.Past.Disagrees(n.Data) {
					// Send the details of our calls: the message had no room for them.
					e.m.Notify(n.Link, n.Ctx, c.Rank, noteReply, c.Past.Calls())
					e.flush()
				}
			}
			e.endCollectives(n.Ctx)
		case noteRevoke, noteAgree, noteWake, notePart, noteFreed, noteReleased:
			e.memberNote(n)
		case noteReply:
			if b := e.colls.broken[n.Ctx]; b != nil && b.Reply == nil {
				b.Reply, b.Peer = n.Data, int(n.Source)
			}
		case noteAsk:
			e.answerAsk(&n)
		case noteLeft:
			number, what, ok := readAsk(n.Data)
			// While this rank is in Finalize too, the call is one that both make there.
			if c := e.colls.comms[n.Ctx]; ok && c != nil && n.Link != nil && !e.finalizing {
				e.breakComm(c, &LeftError{c.Ranks.Index(n.Link.Rank), number, what})
			}
		case noteAskAll:
			if c := e.colls.comms[n.Ctx]; c != nil {
				if number, what, differ := c.Past.FirstDifference(n.Data); differ {
					e.breakComm(c, &AskedError{int(n.Source), number, what})
				}
			}
		}
	}
	clear(e.m.Out.Notes)
	e.m.Out.Notes = e.m.Out.Notes[:0]
}

// endCollectives ends the pending collectives of a context.
func (e *Held) endCollectives(ctx uint32) {
	b := e.colls.broken[ctx]
	e.m.Drop(ctx, b)
	if len(e.m.Out.WR) > 0 {
		e.flush()
	}
	for i := len(e.colls.active) - 1; i >= 0; i-- {
		if i >= len(e.colls.active) || e.colls.active[i].Comm.Ctx != ctx {
			continue
		}
		co := e.colls.active[i]
		co.run.Fail(&PartError{Call: co.Call, Err: b})
		e.checkRun(co)
	}
}

// replyWithin is how long the rank that detects a mismatch waits for details, amissWithin
// how long it waits if it has none itself.
const (
	replyWithin = 200 * time.Millisecond
	amissWithin = 2 * time.Second
)

// Reply returns the calls of a rank that has made other calls, if it reports them within
// replyWithin.
func (r *Engine) Reply(ctx uint32) (note []byte, peer int) {
	e := r.lock()
	defer e.Release()
	inTime := e.pollFor(replyWithin, func() bool {
		b := e.colls.broken[ctx]
		return b == nil || b.timedOut || b.Reply != nil
	})
	b := e.colls.broken[ctx]
	if b == nil {
		return nil, 0
	}
	b.timedOut = !inTime
	return b.Reply, b.Peer
}

// BreakAmiss ends the collectives of a communicator whose ranks have made different calls,
// if it is not known which. It asks all ranks: the first whose call differs ends them with
// an error that has both calls. If none does within amissWithin, because the difference is
// older than the records, err ends them. It returns the error.
func (r *Engine) BreakAmiss(c *Comm, err error) error {
	e := r.lock()
	defer e.Release()
	e.notifyAll(c, noteAskAll, c.Past.Calls())
	if !e.pollFor(amissWithin, func() bool { return e.errIn(c.Ctx) != nil }) {
		e.Break(c, err)
	}
	return e.errIn(c.Ctx)
}

// askAfter is how long a rank waits before it asks, askMost the longest interval between two questions.
const (
	askAfter = 200 * time.Millisecond
	askMost  = 5 * time.Second
)

// asking schedules the questions of one wait.
type asking struct{ next time.Duration }

// ask asks the awaited rank whether it has made the same call, if the wait is that of a
// collective and has lasted long enough.
func (a *asking) ask(e *Held, since time.Duration, xs []*p2p.Xfer) {
	waited := e.clock() - since
	if e.colls.comms == nil || since == 0 || waited < max(a.next, askAfter) {
		return
	}
	a.next = waited + min(max(a.next, askAfter), askMost)
	for _, x := range xs {
		if x == nil || x.Done() {
			continue
		}
		if co := e.colls.find(x); co != nil {
			if part := co.partAwaited(); part != nil {
				e.ask(co.Comm, part.Link, co.Number, co.What)
			}
		} else if c := e.colls.comms[x.Ctx]; c != nil { // asleep in a shared segment or at the gate
			l := x.Link
			if l == nil {
				// At the gate: some rank that waits precedes one in another call.
				l = e.link((e.rank + 1) % e.size)
			}
			number, what := c.Past.Latest()
			e.ask(c, l, number, what)
		}
	}
}

func (e *Held) ask(c *Comm, l *p2p.Link, number, what uint64) {
	if l.Rank == e.rank || number == 0 {
		return
	}
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], number)
	binary.LittleEndian.PutUint64(b[8:], what)
	e.m.Notify(l, c.Ctx, c.Rank, noteAsk, b[:])
	e.settle()
}

// answerAsk handles the question of another rank whether this rank has made a call.
func (e *Held) answerAsk(n *p2p.Note) {
	number, what, ok := readAsk(n.Data)
	c, made := e.colls.comms[n.Ctx], uint64(0)
	if c != nil {
		made, _ = c.Past.Latest()
	}
	switch {
	case !ok:
	case c != nil && c.Past.Differs(number, what):
		e.breakComm(c, &AskedError{int(n.Source), number, what})
	case e.finalizing && made < number:
		e.m.Notify(n.Link, n.Ctx, 0, noteLeft, n.Data)
		e.flush()
	}
}

func readAsk(b []byte) (number, what uint64, ok bool) {
	if len(b) != 16 {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), true
}
