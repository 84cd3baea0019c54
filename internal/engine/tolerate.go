package engine

// Jobs that survive a failure (Config.Tolerate), after the MPI Forum's proposal for fault
// tolerance (ULFM). Only what involves a failed rank fails:
//
//	messages     the link to the rank fails (p2p.Machine.FailLink)
//	any source   receives from any source fail until the program acknowledges the failure,
//	             because the rank may have been the sender
//	collectives  those of every communicator of the rank fail, now and later, as if it was
//	             broken (broken.go)
//	windows      those of such a communicator fail likewise
//
// A program then revokes the communicator, so that ranks that wait for others than the
// failed one return too, and agrees on a communicator of the ranks alive (package ft).
// Both use notes, so they need no receive, and a rank serves them in any call.

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/ft"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/rankset"
)

// PartitionedContext marks the contexts of partitioned messages: that of a communicator's
// messages for their pairing, that of its collectives for their data.
const PartitionedContext = 1 << 31

// RevokedError reports that a rank has revoked the communicator.
type RevokedError struct{ By int } // rank in the communicator

func (r *RevokedError) Error() string {
	return fmt.Sprintf("rank %d has revoked the communicator", r.By)
}

// member is the membership of this rank in a communicator of a tolerant job.
type member struct {
	comm    Comm          // of collectives
	pt      uint32        // context of other messages
	peers   *rankset.List // world rank of their sources and destinations
	group   *ft.Group
	failed  []int // failed ranks of comm, in the order in which this rank learned of them
	acked   int   // of these, acknowledged by the program
	revoked *RevokedError
	alarm   atomic.Bool      // see Engine.Alarm
	drop    bool             // at a failure, all messages: it is that of a window or a file
	local   bool             // all its ranks are on this host
	slot    int              // on the board, or noSlot: agreements use messages (agree.go)
	shared  *ft.Shared       // agreements in this slot
	number  uint32           // of the agreement by messages that a call waits for
	parts   map[int32][]byte // of messages of agreements that are longer than a note, by rank
	waiting *p2p.Xfer        // represents the agreement that a call waits for; nil: no call waits
	freed   int              // this rank and subtrees below it that have freed it (release.go)
}

// contexts returns the contexts of messages that are not of collectives.
func (m *member) contexts() [3]uint32 {
	return [...]uint32{m.pt, m.pt | PartitionedContext, m.comm.Ctx | PartitionedContext}
}

// tolerance is the state of a rank of a tolerant job.
type tolerance struct {
	dead    map[int]*PeerDeadError // by rank in the world; nil: none
	order   []*PeerDeadError       // the same in the order of the board
	slots   [pmi.Slots]slot
	members map[uint32]*member    // by context of collectives
	freed   []*member             // freed ones with operations under way
	early   map[uint32][]p2p.Note // for communicators that this rank has not made yet
	revoked map[uint32]error      // contexts of messages of revoked communicators; nil: none
}

// Tolerates reports whether the job survives failures.
func (r *Engine) Tolerates() bool { return r.held.cfg.Tolerate }

// RegisterMember registers a new communicator of a tolerant job. pt is its context of
// messages that are not of collectives, peers the ranks that they go to. local means that
// all its ranks are on this host.
func (r *Engine) RegisterMember(c Comm, pt uint32, peers *rankset.List, local bool) {
	e := r.lock()
	defer e.unlock()
	if m := e.ft.members[c.Ctx]; m != nil {
		m.comm.Name = c.Name
		return
	}
	if e.ft.members == nil {
		e.ft.members = make(map[uint32]*member)
	}
	m := &member{comm: c, pt: pt, peers: peers, group: ft.NewGroup(int(c.Rank), c.Size, ft.Arity), local: local && e.board.IsShared(), slot: noSlot}
	e.ft.members[c.Ctx] = m
	for i := range e.ft.slots { // Shrink may have found one
		if p := &e.ft.slots[i]; p.state == slotUsed && p.context == c.Ctx {
			e.useSlot(m, i)
		}
	}
	for _, err := range e.ft.order {
		e.memberDied(m, err)
	}
	for _, n := range e.ft.early[c.Ctx] {
		e.memberNote(n)
	}
	delete(e.ft.early, c.Ctx)
	e.settle()
}

// rankDied ends what involves a failed rank.
func (e *Held) rankDied(err *PeerDeadError) {
	if e.ft.dead[err.Rank] != nil || err.Rank == e.rank {
		return
	}
	if e.ft.dead == nil {
		e.ft.dead = make(map[int]*PeerDeadError)
	}
	e.ft.dead[err.Rank] = err
	e.ft.order = append(e.ft.order, err)
	if l := e.links.byRank[err.Rank]; l != nil {
		e.m.FailLink(l, err)
		if d := e.lanes[l.Dev]; d.caps.Abandon != nil && l.Open {
			d.caps.Abandon(l.Peer)
		}
	}
	for _, m := range e.ft.members {
		e.memberDied(m, err)
	}
	e.settle()
	e.wakeProbers()
}

// memberDied ends what involves a failed rank of a communicator, if it is one.
func (e *Held) memberDied(m *member, err *PeerDeadError) {
	r := m.comm.indexOf(err.Rank)
	if r < 0 || slices.Contains(m.failed, r) {
		return
	}
	m.failed = append(m.failed, r)
	e.m.FailAny(m.pt, err)
	e.giveUp(m, err)
	if m.drop {
		e.dropMessages(m)
	}
	m.group.Fail(r)
	if m.shared != nil {
		m.shared.Fail(r)
	}
	if m.revoked != nil {
		e.forwardRevoke(m)
	}
	e.sendAgreement(m)
}

// DropAtFailure makes the failure of a rank of a communicator end all its waits, also those for
// messages of ranks that are alive. It is for the communicators of windows and files: a
// rank that learns of the failure leaves their calls, so the others need not revoke anything.
func (r *Engine) DropAtFailure(ctx uint32) {
	e := r.lock()
	defer e.unlock()
	if m := e.ft.members[ctx+1]; m != nil {
		e.dropAtFailure(m)
	}
}

func (e *Held) dropAtFailure(m *member) {
	if m.drop = true; len(m.failed) > 0 {
		e.dropMessages(m)
	}
}

// dropMessages ends the waits of a communicator for messages.
func (e *Held) dropMessages(m *member) {
	e.m.Drop(m.pt, e.ft.dead[m.comm.Ranks.At(m.failed[0])])
}

// indexOf returns the rank in the communicator of a rank of the world, or -1.
func (c *Comm) indexOf(world int) int {
	if c.Ranks == nil {
		if world < c.Size {
			return world
		}
		return -1
	}
	return c.Ranks.Index(world)
}

// giveUp ends the collectives of a communicator, and waits in shared memory for windows.
func (e *Held) giveUp(m *member, err error) {
	m.alarm.Store(true)
	e.colls.fail(m.pt, &BrokenError{Err: err})
	e.colls.fail(m.comm.Ctx, &BrokenError{Err: err})
	if c := e.colls.comms[m.comm.Ctx]; c != nil {
		c.Past.Encode(err) // for ranks in the shared segment
	}
	e.endCollectives(m.comm.Ctx)
}

// unacknowledgedDeath returns the error of a receive from any source, or nil.
func (e *Held) unacknowledgedDeath(pt uint32) error {
	m := e.ft.members[pt+1]
	if m == nil || m.acked == len(m.failed) {
		return nil
	}
	return e.ft.dead[m.comm.Ranks.At(m.failed[m.acked])]
}

// lostSource returns why a probe cannot find a message any more, or nil.
func (e *Held) lostSource(pt uint32, src int32) error {
	if e.ft.dead == nil && e.ft.revoked == nil {
		return nil
	}
	if err := e.ft.revoked[pt]; err != nil {
		return err
	}
	if src == p2p.AnySource {
		return e.unacknowledgedDeath(pt)
	}
	if m := e.ft.members[pt+1]; m != nil {
		if err := e.ft.dead[m.peers.At(int(src))]; err != nil {
			return err
		}
	}
	return nil
}

// MemberFailed returns the failed ranks of a communicator, in the order in which this rank
// learned of them, and how many of them are acknowledged. With acknowledge all of them are.
func (r *Engine) MemberFailed(ctx uint32, acknowledge bool) (failed []int, acked int) {
	e := r.lock()
	defer e.unlock()
	e.checkDeaths()
	m := e.ft.members[ctx]
	if m == nil {
		return nil, 0
	}
	if acknowledge {
		m.acked = len(m.failed)
	}
	return slices.Clone(m.failed), m.acked
}

// Revocation returns the error of a revoked communicator, or nil.
func (r *Engine) Revocation(ctx uint32) error {
	e := r.lock()
	defer e.unlock()
	if m := e.ft.members[ctx]; m != nil && m.revoked != nil {
		return m.revoked
	}
	return nil
}

// Revoke ends all operations of a communicator on all its ranks, except agreements.
func (r *Engine) Revoke(ctx uint32) {
	e := r.lock()
	defer e.unlock()
	if m := e.ft.members[ctx]; m != nil && e.failed == nil {
		e.revoke(m, &RevokedError{int(m.comm.Rank)})
		e.settle()
	}
}

// revoke revokes a communicator on this rank and informs others.
func (e *Held) revoke(m *member, err *RevokedError) {
	if m.revoked != nil {
		return
	}
	m.revoked = err
	if e.ft.revoked == nil {
		e.ft.revoked = make(map[uint32]error)
	}
	for _, ctx := range m.contexts() {
		e.ft.revoked[ctx] = err
		e.m.Drop(ctx, err)
	}
	e.giveUp(m, err)
	e.wakeProbers()
	e.forwardRevoke(m)
}

// forwardRevoke informs the ranks at distances of powers of two, so that it takes few steps,
// and the next one alive, so that every rank alive is informed: after each failure a rank
// informs the one that is next then.
func (e *Held) forwardRevoke(m *member) {
	n, me := m.comm.Size, int(m.comm.Rank)
	inform := func(r int) {
		note := []byte{byte(m.revoked.By), byte(m.revoked.By >> 8), byte(m.revoked.By >> 16), byte(m.revoked.By >> 24)}
		e.m.Notify(e.link(m.comm.Ranks.At(r)), m.comm.Ctx, m.comm.Rank, noteRevoke, note)
	}
	for d := 1; d < n; d *= 2 {
		inform((me + d) % n)
	}
	for d := 1; d < n; d++ {
		if r := (me + d) % n; !slices.Contains(m.failed, r) {
			if d&(d-1) != 0 {
				inform(r)
			}
			break
		}
	}
	e.flush()
}

// memberNote handles a note of an agreement, a revocation or a release.
func (e *Held) memberNote(n p2p.Note) {
	if !e.cfg.Tolerate {
		return
	}
	m := e.ft.members[n.Ctx]
	if m == nil && n.Tag == noteWake {
		return // this rank has returned from the agreement without the note, and freed the communicator
	}
	if m == nil { // the sender has made the communicator already
		if e.ft.early == nil {
			e.ft.early = make(map[uint32][]p2p.Note)
		}
		e.ft.early[n.Ctx] = append(e.ft.early[n.Ctx], n)
		return
	}
	switch n.Tag {
	case noteWake:
		e.sendAgreement(m)
	case noteRevoke:
		if len(n.Data) == 4 {
			e.revoke(m, &RevokedError{int(n.Data[0]) | int(n.Data[1])<<8 | int(n.Data[2])<<16 | int(n.Data[3])<<24})
		}
	case noteFreed:
		e.subtreeFreed(m)
		e.flush()
	case noteReleased:
		e.release(m)
		e.flush()
	default:
		e.agreementNote(m, n)
	}
}
