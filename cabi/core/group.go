package core

// Groups (MPI-4.1 section 7.3).

import (
	"sync"

	"github.com/muster-mpi/muster/mpi"
)

func groups() map[string]handler {
	return map[string]handler{
		"Comm_group":            groupOf((*args).comm, (*comm).Group),
		"Comm_remote_group":     groupOf((*args).inter, (*comm).RemoteGroup),
		"Group_size":            query((*args).group, (*mpi.Group).Size),
		"Group_rank":            query((*args).group, (*mpi.Group).Rank),
		"Group_translate_ranks": (*Process).groupTranslate,
		"Group_compare":         (*Process).groupCompare,
		"Group_union":           pairOfGroups((*mpi.Group).Union),
		"Group_intersection":    pairOfGroups((*mpi.Group).Intersection),
		"Group_difference":      pairOfGroups((*mpi.Group).Difference),
		"Group_incl":            someRanks((*mpi.Group).Include),
		"Group_excl":            someRanks((*mpi.Group).Exclude),
		"Group_range_incl":      someRanges((*mpi.Group).IncludeRanges),
		"Group_range_excl":      someRanges((*mpi.Group).ExcludeRanges),
		"Group_free":            (*Process).groupFree,
	}
}

// group returns the group of a handle.
func (a *args) group(i int) *mpi.Group {
	h := a.handle(i)
	if h == groupEmpty {
		return a.p.empty
	}
	g := a.p.groups.get(h)
	if g == nil {
		a.fail(errorf(errGroup, "%#x is not a group", uint32(h)))
	}
	return g
}

// origins are the sessions of groups that were made from their process sets, and of groups made of
// those.
type origins struct {
	mu sync.Mutex
	of map[*mpi.Group]*session
}

// find returns the session of the first group that has one, or nil.
func (o *origins) find(groups ...*mpi.Group) *session {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, g := range groups {
		if s := o.of[g]; s != nil {
			return s
		}
	}
	return nil
}

// set notes the session of a group, or that it has none any more.
func (o *origins) set(g *mpi.Group, s *session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s == nil {
		delete(o.of, g)
		return
	}
	if o.of == nil {
		o.of = map[*mpi.Group]*session{}
	}
	o.of[g] = s
}

// setGroup stores the handle of a new group, which is of a session or nil. All groups without
// members are MPI_GROUP_EMPTY.
func (a *args) setGroup(i int, g *mpi.Group, of *session) {
	if g.Size() == 0 {
		a.setHandle(i, groupEmpty)
		return
	}
	a.p.origins.set(g, of)
	h := a.p.groups.add(g)
	a.p.abi.describeGroup(h, g.Size())
	a.setHandle(i, h)
}

func (p *Process) groupTranslate(a *args) error {
	g, n, h := a.group(0), a.size(1), a.group(3)
	if n > 0 {
		a.results(2, 4)
	}
	if a.err != nil {
		return nil
	}
	ranks := a.numbers(numberRank, 2, n)
	for i, r := range ranks {
		switch {
		case r == procNull:
			ranks[i] = mpi.ProcNull
		case r < 0 || r >= g.Size():
			return errorf(errRank, "rank %d is not one of 0 to %d", r, g.Size()-1)
		}
	}
	in, err := g.Translate(ranks, h)
	if err != nil {
		return err
	}
	for i, r := range in {
		if r == mpi.ProcNull {
			in[i] = int(p.abi.numberFor(numberRank, procNull))
		}
	}
	a.setInts(4, in)
	return nil
}

func (p *Process) groupCompare(a *args) error {
	g, h := a.group(0), a.group(1)
	a.setInt(2, int(g.Compare(h)))
	return nil
}

// pairOfGroups is the call of a function of two groups.
func pairOfGroups(f func(g, h *mpi.Group) *mpi.Group) handler {
	return func(p *Process, a *args) error {
		g, h := a.group(0), a.group(1)
		a.results(2)
		if a.err == nil {
			a.setGroup(2, f(g, h), p.origins.find(g, h))
		}
		return nil
	}
}

// someRanks is the call of a function that selects ranks of a group.
func someRanks(f func(g *mpi.Group, ranks ...int) (*mpi.Group, error)) handler {
	return selectRanks(1, func(g *mpi.Group, ranks []int) (*mpi.Group, error) { return f(g, ranks...) })
}

// selectRanks is a call with an array of ranks, or of other elements of several numbers.
func selectRanks(each int, f func(g *mpi.Group, numbers []int) (*mpi.Group, error)) handler {
	return func(p *Process, a *args) error {
		g, n := a.group(0), a.size(1)
		a.results(3)
		if n > 0 {
			a.results(2)
		}
		if a.err != nil {
			return nil
		}
		out, err := f(g, a.shorts(2, each*n))
		if err == nil {
			a.setGroup(3, out, p.origins.find(g))
		}
		return err
	}
}

// someRanges is someRanks with ranges. A range must not be empty in the direction of its
// stride (MPI-4.1 section 7.3.2).
func someRanges(f func(g *mpi.Group, ranges ...mpi.Range) (*mpi.Group, error)) handler {
	return selectRanks(3, func(g *mpi.Group, numbers []int) (*mpi.Group, error) {
		ranges := make([]mpi.Range, len(numbers)/3)
		for i := range ranges {
			r := mpi.Range{First: numbers[3*i], Last: numbers[3*i+1], Stride: numbers[3*i+2]}
			if r.Stride == 0 || (r.Last-r.First)*r.Stride < 0 {
				return nil, errorf(errArg, "range %d goes from %d to %d in steps of %d", i, r.First, r.Last, r.Stride)
			}
			ranges[i] = r
		}
		return f(g, ranges...)
	})
}

func (p *Process) groupFree(a *args) error {
	at := a.handleAt(0)
	// MPICH accepts MPI_GROUP_EMPTY here, because calls return it for empty groups.
	if at.get() != groupEmpty {
		g := p.groups.remove(at.get())
		if g == nil {
			return errorf(errGroup, "%#x is not a group", uint32(at.get()))
		}
		p.origins.set(g, nil)
	}
	at.set(groupNull)
	return nil
}
