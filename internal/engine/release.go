package engine

// Memberships in communicators that have been freed. A rank keeps its own for as long as
// another one may need it, to pass on a revocation or the decision of an agreement: until all
// ranks have freed the communicator. Nobody waits for that. A rank tells its parent in a tree
// when it and all ranks below it have freed the communicator, and the root tells all. If a rank
// fails before it has told its parent, the memberships stay.

import (
	"slices"

	"github.com/muster-mpi/muster/internal/ft"
)

// Memberships returns the number of communicators whose failures this rank handles.
func (r *Engine) Memberships() int {
	e := r.lock()
	defer e.unlock()
	return len(e.ft.members)
}

// freeMember is called when a communicator is freed. Operations that are under way complete,
// also with a failure, so until then it is in use. The next call looks again.
func (e *Held) freeMember(ctx uint32) {
	if m := e.ft.members[ctx]; m != nil {
		e.ft.freed = append(e.ft.freed, m)
	}
	e.ft.freed = slices.DeleteFunc(e.ft.freed, func(m *member) bool {
		idle := !e.inUse(m)
		if idle {
			e.subtreeFreed(m)
		}
		return idle
	})
	e.settle()
}

func (e *Held) inUse(m *member) bool {
	of := func(ctx uint32) bool {
		ctx &^= PartitionedContext
		return ctx == m.pt || ctx == m.comm.Ctx
	}
	return e.m.UnderWay(of) || slices.ContainsFunc(e.colls.active, func(co *Collective) bool { return of(co.Comm.Ctx) })
}

// children returns the children of this rank in the tree of a communicator, from first on.
func (m *member) children() (first, n int) {
	first = ft.Arity*int(m.comm.Rank) + 1
	return first, max(0, min(ft.Arity, m.comm.Size-first))
}

// subtreeFreed counts that this rank, or all ranks of the subtree of a child, have freed the
// communicator.
func (e *Held) subtreeFreed(m *member) {
	m.freed++
	_, n := m.children()
	switch {
	case m.freed != 1+n:
	case m.comm.Rank == 0:
		e.release(m)
	default:
		e.m.Notify(e.link(m.comm.Ranks.At(int(m.comm.Rank-1)/ft.Arity)), m.comm.Ctx, m.comm.Rank, noteFreed, nil)
	}
}

// release ends the membership in a communicator that all ranks have freed.
func (e *Held) release(m *member) {
	first, n := m.children()
	if m.freed != 1+n {
		return // not a note of a rank that obeys the rules
	}
	for r := first; r < first+n; r++ {
		e.m.Notify(e.link(m.comm.Ranks.At(r)), m.comm.Ctx, m.comm.Rank, noteReleased, nil)
	}
	delete(e.ft.members, m.comm.Ctx)
	delete(e.colls.broken, m.comm.Ctx)
	delete(e.colls.broken, m.pt)
	for _, ctx := range m.contexts() {
		delete(e.ft.revoked, ctx)
	}
}
