package engine

// Agreements of the ranks of a communicator that are alive. Ranks of several hosts agree by
// messages (ft.Group), ranks of one host in memory that they share (ft.Shared): a slot on
// the board. Each rank has a few slots. The first agreement of a communicator uses
// messages. In it the ranks also agree on a slot that all of them have free, so either all
// ranks use one from then on or none does, whoever fails. Shrink finds one for the new
// communicator likewise, in its second agreement.
//
// A rank may use a slot again for another communicator when all ranks of the first one
// have read what it has written there last.

import (
	"context"
	"math"
	"math/bits"

	"github.com/muster-mpi/muster/internal/ft"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/rankset"
)

const noSlot = -1

// slotState is the state of a slot of this rank.
type slotState uint8

const (
	slotFree    slotState = iota
	slotOffered           // to other ranks, in an agreement that is not decided
	slotUsed
	slotLeft // the communicator has been freed
)

// slot is a slot of this rank on the board.
type slot struct {
	state   slotState
	context uint32        // of the communicator that uses it, or did
	ranks   *rankset.List // of that
	size    int
	round   uint64 // the last one of that
}

// OfferSlots returns the free slots of this rank, as bits, for a communicator that is
// being made, given by the context of its collectives. SettleSlots must follow.
func (r *Engine) OfferSlots(ctx uint32) uint8 {
	e := r.lock()
	defer e.unlock()
	return e.offerSlots(ctx)
}

func (e *Held) offerSlots(ctx uint32) (offered uint8) {
	if _, dead := e.board.Dead(e.rank); dead || !e.board.IsShared() {
		return 0 // others may still read what an earlier process of this rank has written
	}
	for i := range e.ft.slots {
		p := &e.ft.slots[i]
		if p.state == slotLeft && e.isRead(i, p) {
			p.state = slotFree
		}
		if p.state == slotFree {
			*p = slot{state: slotOffered, context: ctx}
			e.board.ClearSlot(e.rank, i)
			offered |= 1 << i
		}
	}
	return offered
}

// isRead reports whether nobody reads what this rank has written to a slot.
func (e *Held) isRead(i int, p *slot) bool {
	for r := range p.size {
		world := p.ranks.At(r)
		if e.ft.dead[world] == nil && !e.board.Concluded(world, i, p.context, p.round) {
			return false
		}
	}
	return true
}

// SettleSlots ends what OfferSlots has begun: agreed are the slots that all ranks have
// offered. All ranks use the first one.
func (r *Engine) SettleSlots(ctx uint32, agreed uint8) {
	e := r.lock()
	defer e.unlock()
	e.settleSlots(ctx, agreed)
}

func (e *Held) settleSlots(ctx uint32, agreed uint8) {
	use := bits.TrailingZeros8(agreed) // 8: none
	for i := range e.ft.slots {
		if p := &e.ft.slots[i]; p.state == slotOffered && p.context == ctx {
			if p.state = slotFree; i == use {
				p.state = slotUsed
				e.board.Conclude(e.rank, i, ctx, 0)
			}
		}
	}
	if m := e.ft.members[ctx]; m != nil && use < pmi.Slots {
		e.useSlot(m, use)
	}
}

// useSlot makes the agreements of a communicator use a slot.
func (e *Held) useSlot(m *member, i int) {
	p := &e.ft.slots[i]
	p.ranks, p.size = m.comm.Ranks, m.comm.Size
	m.slot, m.shared = i, ft.NewShared(m.comm.Size, cells{e, m})
	for _, r := range m.failed {
		m.shared.Fail(r)
	}
}

// leaveSlot is called when a communicator is freed.
func (e *Held) leaveSlot(ctx uint32) {
	if m := e.ft.members[ctx]; m != nil && m.slot != noSlot {
		p := &e.ft.slots[m.slot]
		p.state, p.round = slotLeft, m.shared.Round()
		m.slot, m.shared = noSlot, nil
	}
}

// cells is the memory of the agreements of a communicator.
type cells struct {
	e *Held
	m *member
}

func (c cells) Load(rank int, round uint64) (cell ft.Cell, ok bool) {
	cell.Round = round
	cell.Flag, cell.Number, cell.Failures, ok = c.e.board.Contribution(c.m.comm.Ranks.At(rank), c.m.slot, round)
	return cell, ok
}

func (c cells) Store(cell ft.Cell) {
	c.e.board.Contribute(c.e.rank, c.m.slot, cell.Round, cell.Flag, cell.Number, cell.Failures)
}

func (c cells) Sleep(round uint64) { c.e.board.SleepInSlot(c.e.rank, c.m.slot, round) }

func (c cells) Wake(rank int, round uint64) {
	world := c.m.comm.Ranks.At(rank)
	if world != c.e.rank && c.e.board.WakeInSlot(world, c.m.slot, round) {
		c.e.m.Notify(c.e.link(world), c.m.comm.Ctx, c.m.comm.Rank, noteWake, nil)
		c.e.flush()
	}
}

// Agree agrees with the ranks of a communicator that are alive on the bitwise and of flag,
// the maximum of number, and the failed ranks. It works on a revoked communicator too.
func (r *Engine) Agree(ctx context.Context, c *Comm, op string, flag, number uint64) (ft.Value, error) {
	e := r.lock()
	defer e.unlock()
	e.checkDeaths()
	m := e.ft.members[c.Ctx]
	if e.failed != nil || m == nil {
		return ft.Value{}, e.failed
	}
	x := e.m.New()
	x.Ctx, x.Source, x.Tag = math.MaxUint32, Nobody, p2p.AnyTag
	m.waiting = x
	shared := m.shared != nil
	if shared {
		m.shared.Enter(flag, number)
	} else {
		slots := uint8(0)
		if m.local {
			slots = e.offerSlots(c.Ctx)
		}
		m.number = m.group.Enter(flag, number, slots)
	}
	e.sendAgreement(m)
	e.settle()
	if shared && !x.Done() {
		e.awaitSlot(m, x)
	}
	if ctx != nil {
		if err := e.waitSlow(ctx, c, op, x); err != nil && !x.Done() {
			m.waiting = nil
			e.m.Refuse(x, err)
		}
	} else if !x.Done() {
		e.waitOne(x, c, op)
	}
	err := x.Err
	e.m.Free(x)
	if shared {
		v, _ := m.shared.Decision()
		return v, err
	}
	v, _ := m.group.Decision(m.number)
	if m.local {
		e.settleSlots(c.Ctx, v.Slots)
	}
	return v, err
}

// Abandon revokes a new communicator, and takes part in its first agreement without waiting:
// other ranks may wait for this one there, and it will make no further call.
func (r *Engine) Abandon(ctx uint32) {
	e := r.lock()
	defer e.unlock()
	if m := e.ft.members[ctx]; m != nil && e.failed == nil {
		e.revoke(m, &RevokedError{int(m.comm.Rank)})
		m.group.Enter(0, 0, 0)
		e.sendAgreement(m)
		e.settle()
	}
}

// awaitSlot looks at the slot of a communicator for as long as a wait spins and yields. If
// the agreement is not decided by then, a note will wake the rank.
func (e *Held) awaitSlot(m *member, x *p2p.Xfer) {
	awake := e.pollUntil(func() bool {
		e.checkDeaths()
		e.sendAgreement(m)
		return x.Done() || e.failed != nil
	})
	if !awake {
		m.shared.Sleep()
		e.sendAgreement(m)
	}
}

// sendAgreement sends the messages of the agreements of a communicator, looks at its slot,
// and completes the call that waits for an agreement.
func (e *Held) sendAgreement(m *member) {
	if len(m.group.Out) > 0 {
		e.sendMessages(m)
	}
	if m.waiting == nil {
		return
	}
	decided := false
	if m.shared != nil && m.shared.Waiting() {
		decided = e.lookInSlot(m)
	} else {
		_, decided = m.group.Decision(m.number)
	}
	if decided {
		x := m.waiting
		m.waiting = nil
		e.m.Refuse(x, nil)
	}
}

// lookInSlot looks at the slot of a communicator. It records its conclusion last: from then
// on another communicator may use the slot, whose sleepers this rank must not wake.
func (e *Held) lookInSlot(m *member) (decided bool) {
	if decided = m.shared.Look(); decided {
		e.board.Conclude(e.rank, m.slot, m.comm.Ctx, m.shared.Round())
	}
	return decided
}

// sendMessages sends the messages of the agreements of a communicator. One that is longer
// than a note, because many ranks have failed, goes as several: notes of a rank arrive in
// order.
func (e *Held) sendMessages(m *member) {
	for i := range m.group.Out {
		s := &m.group.Out[i]
		l, b := e.link(m.comm.Ranks.At(int(s.To))), s.Append(nil)
		for ; len(b) > p2p.MaxNote; b = b[p2p.MaxNote:] {
			e.m.Notify(l, m.comm.Ctx, m.comm.Rank, notePart, b[:p2p.MaxNote])
		}
		e.m.Notify(l, m.comm.Ctx, m.comm.Rank, noteAgree, b)
	}
	m.group.Out = m.group.Out[:0]
	e.flush()
}

// agreementNote handles a note with a message of an agreement, or a part of one.
func (e *Held) agreementNote(m *member, n p2p.Note) {
	if uint32(n.Source) >= uint32(m.comm.Size) || n.Source == m.comm.Rank {
		return
	}
	data := n.Data
	if before := m.parts[n.Source]; before != nil {
		data = append(before, data...)
		delete(m.parts, n.Source)
	}
	if n.Tag == notePart {
		if len(data) <= ft.MaxMessage(m.comm.Size) {
			if m.parts == nil {
				m.parts = make(map[int32][]byte)
			}
			m.parts[n.Source] = data
		}
		return
	}
	if msg, ok := ft.Parse(data, m.comm.Size); ok {
		m.group.Receive(int(n.Source), msg)
		e.sendAgreement(m)
	}
}

// failAgreements ends the calls that wait for an agreement.
func (e *Held) failAgreements(err error) {
	for _, m := range e.ft.members {
		m.alarm.Store(true)
		if m.waiting != nil {
			e.m.Refuse(m.waiting, err)
			m.waiting = nil
		}
	}
}
