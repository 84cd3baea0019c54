package mpi

// Inter-communicators (MPI-4.1 section 7.6): two groups of ranks that communicate with
// each other. The peer of a point-to-point call is a rank of the remote group, so for
// messages an inter-communicator is a communicator with the remote group's ranks. It
// contains a communicator of both groups, one after the other, over which the members
// agree; collectives (coll_inter.go) use the ranks of that one. The steps of creation:
//
//	leaders exchange the lists of their groups over the bridge, and distribute them
//	all agree on a context, each group by itself and then the leaders (acrossBridge)
//	the communicator of both is created, and in it the remaining contexts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/rankset"
)

// Root is the root argument that the root of a collective on an inter-communicator
// passes. The other ranks of its group pass ProcNull; those of the remote group pass its
// rank (MPI-4.1 section 6.2.3).
const Root = -3

// interGroups holds the two groups of an inter-communicator.
type interGroups struct {
	both   *Comm  // the ranks of the first group, then those of the second
	sizes  [2]int // of the groups
	second bool   // the caller is in the second
}

// start returns the offset of a group among both.
func (g *interGroups) start(second bool) int {
	if second {
		return g.sizes[0]
	}
	return 0
}

func (g *interGroups) size(second bool) int {
	if second {
		return g.sizes[1]
	}
	return g.sizes[0]
}

// world returns the world ranks of a group.
func (g *interGroups) world(second bool) *rankset.List {
	return g.both.ranks.Select(rankset.Sequence(g.size(second), g.start(second), 1))
}

// IntercommCreate connects the group of c with a remote group, whose members call it at
// the same time, and returns an inter-communicator: a communicator on which messages go to
// and come from ranks of the remote group. The groups have no rank in common.
//
// leader is a rank of c. It and the remote leader, remoteLeader, must both be in bridge,
// a communicator over which they exchange messages with the given tag. Only the leader
// uses bridge, remoteLeader and tag. If it connects this job with another one, as the result of
// [Comm.Spawn] does, ranks of both jobs that it does not contain can be in the groups.
//
// Collectives on an inter-communicator transfer data from one group to the other. In
// Bcast the root passes [Root], the other ranks of its group pass [ProcNull], and the
// ranks of the remote group, which receive, pass the root's rank. In Allgather each rank
// receives the blocks of the remote group.
func (c *Comm) IntercommCreate(leader int, bridge *Comm, remoteLeader, tag int) (*Comm, error) {
	h := c.beginCreate("IntercommCreate", CallCreate)
	d, err := c.intercommCreate(leader, bridge, remoteLeader, tag)
	return d, h.finish(err)
}

func (c *Comm) intercommCreate(leader int, bridge *Comm, remoteLeader, tag int) (*Comm, error) {
	const op = "IntercommCreate"
	if err := c.checkRoot(op, leader); err != nil {
		return nil, err
	}
	mine := make([]int64, c.size)
	for r := range mine {
		mine[r] = int64(c.world(r))
	}
	var theirs []int64
	var refused error
	if c.rank == leader {
		theirs, refused = meetOverBridge(c, op, mine, bridge, remoteLeader, tag)
	}
	theirs, err := c.shareList(op, theirs, refused, leader)
	if err != nil {
		return nil, err
	}
	if other, ok := parseBridgeJob(theirs); ok {
		return c.joinOverBridge(op, other, leader, bridge, remoteLeader, tag)
	}
	for _, r := range theirs {
		if slices.Contains(mine, r) { // all members of both groups detect it
			return nil, c.refuse(ErrComm, op, "rank %d of the world is in both groups; they must have no rank in common", r)
		}
	}
	id, err := c.agreeBy(op, c.ctx, func(v []uint32, by func() Op[uint32]) error {
		return c.acrossBridge(op, v, by, leader, bridge, remoteLeader, tag)
	})
	if err != nil {
		return nil, err
	}
	g := &interGroups{sizes: [2]int{len(mine), len(theirs)}, second: slices.Min(theirs) < slices.Min(mine)}
	all := slices.Concat(mine, theirs)
	if g.second {
		g.sizes[0], g.sizes[1] = g.sizes[1], g.sizes[0]
		all = slices.Concat(theirs, mine)
	}
	ranks := make([]int32, len(all))
	for i, r := range all {
		ranks[i] = int32(r)
	}
	g.both = c.amongWorld(id, ranks, c.Name()+".inter.both")
	return g.join(op, c.Name()+".inter")
}

// meetOverBridge exchanges the lists of two groups between their leaders.
func meetOverBridge(c *Comm, op string, mine []int64, bridge *Comm, remote, tag int) ([]int64, error) {
	switch {
	case bridge == nil:
		return nil, c.refuse(ErrComm, op, "the leader has no bridge: pass a communicator that contains both leaders")
	case bridge.w.base() != c.w.base():
		return nil, c.refuse(ErrComm, op, "the bridge belongs to another rank")
	}
	if err := bridge.checkPeer(op, remote, tag); err != nil {
		return nil, err
	}
	if remote == ProcNull {
		return nil, c.refuse(ErrRank, op, "the remote leader is ProcNull")
	}
	apart := bridge.w != c.w
	if apart {
		mine = bridgeJob{size: c.size}.list()
	}
	send := isend(bridge, op, mine, remote, tag, p2p.Standard)
	theirs, _, err := receiveList(bridge, remote, tag)
	if err != nil {
		return nil, err
	}
	other, far := parseBridgeJob(theirs)
	if apart || far {
		if !far {
			other.size = len(theirs)
		}
		other.second = bridge.isSecond(remote)
		theirs = other.list()
	}
	_, err = send.wait(engine.NoContext)
	return theirs, err
}

// shareList broadcasts the list of one rank, or an error if that rank has one.
func (c *Comm) shareList(op string, list []int64, refused error, from int) ([]int64, error) {
	n := []int64{int64(len(list))}
	if refused != nil {
		n[0] = -1
	}
	if err := c.bcast(op, rawBytes(n), from); err != nil {
		return nil, err
	}
	switch {
	case refused != nil:
		return nil, refused
	case n[0] < 0:
		return nil, c.refuse(ErrOther, op, "rank %d, the leader, could not reach the other group; its error says why", from)
	case c.rank != from:
		list = make([]int64, n[0])
	}
	return list, c.bcast(op, rawBytes(list), from)
}

// acrossBridge reduces a number over both groups before there is a communicator of both.
func (c *Comm) acrossBridge(op string, v []uint32, by func() Op[uint32], leader int, bridge *Comm, remote, tag int) error {
	if err := allreduce(c, op, v, v, by); err != nil {
		return err
	}
	if c.rank == leader {
		theirs := make([]uint32, len(v))
		if _, err := sendrecv(bridge, v, remote, tag, theirs, remote, tag); err != nil {
			return err
		}
		by().Apply(v, theirs)
	}
	return c.bcast(op, rawBytes(v), leader)
}

// amongWorld returns a communicator of world ranks, including the caller.
func (c *Comm) amongWorld(ctx uint32, ranks []int32, name string) *Comm {
	me := int32(c.w.comm.rank)
	s := &Comm{w: c.w, e: c.e, ctx: ctx, ranks: rankset.Of(ranks), rank: slices.Index(ranks, me), size: len(ranks), name: engine.NewName(name)}
	return s.ready()
}

// join returns the inter-communicator of two groups that have a communicator of both.
func (g *interGroups) join(op, name string) (*Comm, error) {
	id, err := g.both.agree(op)
	if err != nil {
		return nil, err
	}
	return g.comm(id, name), nil
}

// comm returns the inter-communicator itself: size and ranks are those of the remote
// group, the rank is that in the local group.
func (g *interGroups) comm(ctx uint32, name string) *Comm {
	c := &Comm{w: g.both.w, e: g.both.e, ctx: ctx, ranks: g.world(!g.second), name: engine.NewName(name), inter: g,
		rank: g.both.rank - g.start(g.second), size: g.size(!g.second)}
	return c.ready()
}

// IsInter reports whether c is an inter-communicator.
func (c *Comm) IsInter() bool { return c.inter != nil }

// RemoteSize returns the number of ranks in the remote group of an inter-communicator,
// and 0 for other communicators.
func (c *Comm) RemoteSize() int {
	if c.inter == nil {
		return 0
	}
	return c.inter.size(!c.inter.second)
}

// RemoteGroup returns the remote group of an inter-communicator, and nil for other
// communicators.
func (c *Comm) RemoteGroup() *Group {
	if c.inter == nil {
		return nil
	}
	return &Group{list: c.inter.world(!c.inter.second), n: c.size, rank: Undefined}
}

// localGroup returns the caller's group.
func (g *interGroups) localGroup() *Group {
	return &Group{list: g.world(g.second), n: g.size(g.second), rank: g.both.rank - g.start(g.second)}
}

// MergeOrder is where the ranks of a group are in the result of [Comm.Merge].
type MergeOrder uint8

const (
	MergeLow  MergeOrder = iota // before those of a group that passes MergeHigh
	MergeHigh                   // after those of a group that passes MergeLow
)

// Merge returns a communicator of both groups of an inter-communicator. The ranks of the
// group that passes MergeHigh come after those of the other. If both pass the same value,
// the group with the lowest world rank is first. All ranks of a group pass the same
// value. Merge is collective over both groups.
func (c *Comm) Merge(order MergeOrder) (*Comm, error) {
	h := c.beginCreate("Merge", CallCreate)
	d, err := c.merge(order)
	return d, h.finish(err)
}

func (c *Comm) merge(order MergeOrder) (*Comm, error) {
	const op = "Merge"
	if err := c.usable(op); err != nil {
		return nil, err
	}
	g := c.inter
	if g == nil {
		return nil, c.refuse(ErrComm, op, "%s has one group; only an inter-communicator can be merged", c.Name())
	}
	id, err := g.both.agree(op)
	if err != nil {
		return nil, err
	}
	orders := make([]MergeOrder, g.both.size)
	if err := allgather(g.both, op, []MergeOrder{order}, orders); err != nil {
		return nil, err
	}
	for i, o := range orders {
		if o > MergeHigh {
			return nil, c.refuse(ErrArg, op, "order %d is unknown; use mpi.MergeLow or mpi.MergeHigh", o)
		}
		if first := orders[g.start(i >= g.sizes[0])]; o != first {
			return nil, c.refuse(ErrArg, op, "ranks of one group pass different orders")
		}
	}
	members := make([]int, g.both.size)
	for i := range members {
		members[i] = i
		if orders[0] > orders[g.sizes[0]] { // the second group comes first
			members[i] = (i + g.sizes[0]) % len(members)
		}
	}
	return g.both.sub(id, listOf(members), c.Name()+".merged"), nil
}

// dupInter is Dup of an inter-communicator.
func (c *Comm) dupInter(op string) (*Comm, error) {
	if err := c.usable(op); err != nil {
		return nil, err
	}
	both, err := c.inter.both.dup(op)
	if err != nil {
		return nil, err
	}
	g := *c.inter
	g.both = both
	return g.join(op, c.Name()+".dup")
}

// splitInter is Split of an inter-communicator (MPI-4.1 section 7.4.2): it connects the
// ranks of each group that pass the same color. A rank whose color no rank of the remote
// group passes gets nil.
func (c *Comm) splitInter(op string, color, key int) (*Comm, error) {
	g := c.inter
	if err := c.usable(op); err != nil {
		return nil, err
	}
	// One context for the communicator of both groups, one between them.
	var ids [2]uint32
	for i := range ids {
		var err error
		if ids[i], err = g.both.agree(op); err != nil {
			return nil, err
		}
	}
	all := make([][2]int64, g.both.size)
	if err := allgather(g.both, op, [][2]int64{{int64(color), int64(key)}}, all); err != nil {
		return nil, err
	}
	if color == Undefined {
		return nil, nil
	}
	part := interGroups{second: g.second}
	var members []int
	for i, second := range [...]bool{false, true} {
		var some []int
		for r := g.start(second); r < g.start(second)+g.size(second); r++ {
			if all[r][0] == int64(color) {
				some = append(some, r)
			}
		}
		if len(some) == 0 {
			return nil, nil
		}
		slices.SortStableFunc(some, func(a, b int) int { return cmp.Compare(all[a][1], all[b][1]) })
		part.sizes[i] = len(some)
		members = append(members, some...)
	}
	name := fmt.Sprintf("%s.split(%d)", c.Name(), color)
	part.both = g.both.sub(ids[0], listOf(members), name+".both")
	return part.comm(ids[1], name), nil
}

// intra returns an error if the communicator has been freed or has two groups.
func (c *Comm) intra(op string) error {
	if err := c.usable(op); err != nil {
		return err
	}
	if c.inter != nil {
		return c.refuse(ErrComm, op, "%s is an inter-communicator, for which there is no %s; Merge its groups first", c.Name(), op)
	}
	return nil
}
