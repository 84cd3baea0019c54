package mpi

// Communicators whose collectives have failed, because ranks have made different calls or
// an operation has panicked (decision 039). Every later collective call on one returns the
// same error. The rank that detects the fault informs the others (internal/engine,
// broken.go): it sends its calls, for them to compare, and the fault as text.

import (
	"errors"
	"fmt"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/nodecoll"
	"github.com/muster-mpi/muster/internal/p2p"
)

// commHistory records the calls of this rank on a communicator: the engine's Past.
type commHistory struct {
	nodecoll.History
	ctx  uint32
	rank int
	team *nodecoll.Team // guarded by the engine's lock; nil if there is none
}

// initHistory registers the communicator with the engine before its first collective call.
func (c *Comm) initHistory(h *engine.Held) {
	if c.past == nil {
		c.past = &commHistory{ctx: c.co.Ctx, rank: int(c.co.Rank)}
		c.past.Tolerant = c.w.cfg.Advanced.TolerateLengths
		c.co.Past = c.past
		h.RegisterComm(&c.co)
	}
}

// noteCall adds a call to the history and returns its signature.
func (c *Comm) noteCall(h *engine.Held, call coll.Call) coll.Sign {
	c.initHistory(h)
	return c.past.Add(call)
}

// openHistory is initHistory for a caller without the lock.
func (c *Comm) openHistory() {
	if c.past == nil {
		h := c.e.Hold()
		c.initHistory(h)
		h.Release()
	}
}

// useTeam makes faults visible to calls in the segment of a team; nil ends that.
func (c *Comm) useTeam(t *nodecoll.Team) {
	h := c.e.Hold()
	if t != nil {
		t.ShareHistory()
	} else {
		c.past.team.HideHistory()
	}
	c.past.team = t
	h.Release()
}

// call describes a call by the arguments that must be the same on all ranks.
func (k *collCall) call(c *Comm, form coll.Form) coll.Call {
	kind, root, bytes := k.key.kind, coll.NoRoot, k.payload()
	if kind.Rooted() {
		root = k.key.root
	}
	if k.key.irregular || kind.Near() {
		bytes = coll.AnyBytes
	}
	if k.leaving {
		kind = coll.Finalize
	}
	if c.inter != nil { // the groups have different arguments
		root, bytes = coll.NoRoot, coll.AnyBytes
	}
	return coll.MakeCall(kind, form, root, bytes)
}

// Encode is what the other ranks are told of a fault: its class, this rank's calls, and
// the fault in words.
func (p *commHistory) Encode(err error) []byte {
	class, text := p.fault(err)
	if p.team != nil {
		p.team.SetFault(uint8(class), text)
	}
	b := p.Append([]byte{byte(class)})
	b = append(b, text...)
	return b[:min(len(b), p2p.MaxNote)]
}

// NoteBroken makes a fault that another rank has reported visible to calls in the segment.
func (p *commHistory) NoteBroken(note []byte) {
	if p.team != nil && len(note) > nodecoll.HistoryBytes {
		p.team.SetFault(note[0], string(note[1+nodecoll.HistoryBytes:]))
	}
}

// noteOperation records whether a user-defined operation is running.
func (p *commHistory) noteOperation(yes bool) {
	if p.team != nil {
		p.team.Operating(yes)
	}
}

// Calls returns this rank's calls, for another rank to compare.
func (p *commHistory) Calls() []byte { return p.Append(nil) }

// FirstDifference returns the first call of another rank that differs from this rank's, or
// how many calls it has made if that is all that is known.
func (p *commHistory) FirstDifference(calls []byte) (number, what uint64, differ bool) {
	if d, differ := p.Compare(calls); differ {
		return d.Number, uint64(d.Theirs), true
	}
	mine, _ := p.Latest()
	theirs := nodecoll.Number(calls)
	return theirs, 0, theirs != mine
}

// Disagrees reports whether the writer of a note has made other calls.
func (p *commHistory) Disagrees(note []byte) bool {
	if len(note) == 0 {
		return false
	}
	_, differ := p.Compare(note[1:])
	return differ
}

// fault describes a fault that this rank has detected.
func (p *commHistory) fault(err error) (Class, string) {
	var (
		users   *opError
		differ  *engine.MismatchError
		asked   *engine.AskedError
		segment *nodecoll.Mismatch
		checked *checkError
		amiss   *gateError
		left    *engine.LeftError
	)
	switch {
	case errors.As(err, &left):
		return ErrOther, fmt.Sprintf("rank %d has left in Finalize while rank %d waits for it in %s (collective call %d on the communicator)",
			left.Peer, p.rank, coll.Call(left.What), left.Number)
	case errors.As(err, new(*engine.PeerDeadError)):
		return ErrProcFailed, err.Error()
	case errors.As(err, new(*engine.RevokedError)):
		return ErrRevoked, err.Error()
	case errors.As(err, &amiss):
		return ErrOther, amiss.Error()
	case errors.As(err, &checked):
		return checked.class, checked.text
	case errors.As(err, &users):
		return ErrOp, fmt.Sprintf("on rank %d %s", p.rank, users.short)
	case errors.As(err, &differ):
		return p.differs(differ)
	case errors.As(err, &asked) && asked.What == 0:
		mine, _ := p.Latest()
		return ErrOther, fmt.Sprintf("rank %d has made %d collective calls on the communicator, rank %d %d", asked.Peer, asked.Number, p.rank, mine)
	case errors.As(err, &asked):
		mine, _ := p.At(asked.Number)
		return classOfCalls(mine, coll.Call(asked.What)), differentCalls(asked.Number, asked.Peer, coll.Call(asked.What), p.rank, mine)
	case errors.As(err, &segment) && segment.Text != "":
		return Class(segment.Class), segment.Text
	case errors.As(err, &segment) && segment.Number != 0:
		return classOfCalls(segment.Mine, segment.Theirs), differentCalls(segment.Number, segment.Peer, segment.Theirs, segment.Rank, segment.Mine)
	}
	return ErrOther, err.Error()
}

// differs describes the fault that a message of another call reveals.
func (p *commHistory) differs(m *engine.MismatchError) (Class, string) {
	mine, theirs := coll.Sign(m.Mine), coll.Sign(m.Theirs)
	switch a, b := theirs.Describe(), mine.Describe(); {
	case a != b:
		return ErrOther, fmt.Sprintf("rank %d is in %s, rank %d in %s", m.Peer, a, p.rank, b)
	case m.Got != m.Want:
		return ErrTruncate, fmt.Sprintf("rank %d sent %d bytes where rank %d expects %d in the same %s: the counts differ between ranks", m.Peer, m.Got, p.rank, m.Want, mine.Kind().CallName())
	default:
		return ErrOther, fmt.Sprintf("the counts differ between rank %d and rank %d, both in %s, or they have made different collective calls before it", m.Peer, p.rank, a)
	}
}

func classOfCalls(a, b coll.Call) Class {
	if a.Kind() == b.Kind() && a.Root() == b.Root() && a.Form() == b.Form() {
		return ErrTruncate
	}
	return ErrOther
}

func differentCalls(number uint64, a int, is coll.Call, b int, was coll.Call) string {
	s := fmt.Sprintf("rank %d is in %s, rank %d in %s (collective call %d on the communicator)", a, is, b, was, number)
	if classOfCalls(is, was) == ErrTruncate {
		s += ": the counts differ between ranks"
	}
	return s
}

// The remedies.
const (
	sameCalls = "make the same collective calls on all ranks, in the same order, with the same root and counts (Dup, Split and windows make " +
		"such calls too); no collective call is possible on this communicator any more"
	mendOperation = "mend the operation; no collective call is possible on this communicator any more"
)

// faultError returns the error of a fault.
func (c *Comm) faultError(op string, class Class, text string) error {
	if class == ErrProcFailed || class == ErrRevoked {
		return c.lossError(op, class, errors.New(text))
	}
	e := &Error{Class: class, Op: op, Comm: c.Name(), Rank: c.rank, Peer: ProcNull, Tag: noTag, Err: errors.New(text), Hint: sameCalls}
	if class == ErrOp {
		e.Hint = mendOperation
	}
	return e
}

// mismatchFailure returns the error of a message of another call.
func (c *Comm) mismatchFailure(op string, m *engine.MismatchError) error {
	class, text := c.past.fault(m)
	reply, peer := c.e.Reply(c.co.Ctx)
	if d, differ := c.past.Compare(reply); differ {
		class, text = classOfCalls(d.Theirs, d.Mine), differentCalls(d.Number, peer, d.Theirs, c.past.rank, d.Mine)
	}
	return c.faultError(op, class, text)
}

// segmentFailure returns the error of another call in the shared segment.
func (c *Comm) segmentFailure(op string, m *nodecoll.Mismatch) error {
	class, text := c.past.fault(m)
	return c.faultError(op, class, text)
}

// brokenFailure returns the error of a call on a communicator whose collectives have
// failed.
func (c *Comm) brokenFailure(op string, b *engine.BrokenError) error {
	var differ *engine.MismatchError
	if err := c.lostFailure(op, b.Err); err != nil {
		return err
	}
	switch {
	case errors.As(b.Err, &differ): // detected by this rank
		return c.mismatchFailure(op, differ)
	case b.Err != nil:
		class, text := c.past.fault(b.Err)
		return c.faultError(op, class, text)
	}
	if len(b.Note) < 1+nodecoll.HistoryBytes {
		return c.faultError(op, ErrOther, b.Error())
	}
	text := string(b.Note[1+nodecoll.HistoryBytes:])
	if c.past != nil && Class(b.Note[0]) != ErrOp {
		if d, differ := c.past.Compare(b.Note[1:]); differ {
			text += fmt.Sprintf("; collective call %d is %s on the rank that found it, and %s on this rank", d.Number, d.Theirs, d.Mine)
		}
	}
	return c.faultError(op, Class(b.Note[0]), text)
}
