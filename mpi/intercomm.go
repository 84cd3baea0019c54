package mpi

// Inter-communicators (MPI-4.1 section 7.6): two groups of ranks that talk to each
// other. A rank of a point-to-point call is one of the other group, so to messages
// an inter-communicator is a communicator with the other group's ranks. Behind it
// is a communicator of both groups, one after the other, over which the members
// agree; collectives (coll_inter.go) use its numbers. The steps of making one:
//
//	leaders exchange the lists of their groups over the bridge, and tell them
//	all agree on a context, each group by itself and then the leaders (acrossBridge)
//	the communicator of both is made, and in it the contexts that are still needed

import (
	"fmt"
	"slices"
)

// Root is what the root of a collective on an inter-communicator gives as the root.
// The other ranks of its group give ProcNull; those of the other group give its
// rank (MPI-4.1 section 6.2.3).
const Root = -3

// interGroups is what makes a communicator one between two groups.
type interGroups struct {
	both   *Comm  // the ranks of the first group, then those of the second
	sizes  [2]int // of the groups
	second bool   // the caller is in the second
}

// start is where a group begins among both.
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

// world gives the ranks of a group in the world.
func (g *interGroups) world(second bool) []int32 {
	out := make([]int32, g.size(second))
	for i := range out {
		out[i] = int32(g.both.world(g.start(second) + i))
	}
	return out
}

// IntercommCreate joins the group of c with another group, whose members call it at
// the same time, to an inter-communicator: a communicator on which the ranks of
// messages are those of the other group. The groups have no rank in common.
//
// leader is a rank of c. It and its counterpart, remoteLeader, must both be in
// bridge, a communicator over which they find each other by messages with the given
// tag. bridge, remoteLeader and tag are used by the leader only.
//
// Collectives on an inter-communicator go from one group to the other: in Bcast the
// root gives [Root], the others of its group [ProcNull], and the ranks of the other
// group, which receive, the root's rank; in Allgather everybody gets the blocks of
// the other group.
func (c *Comm) IntercommCreate(leader int, bridge *Comm, remoteLeader, tag int) (*Comm, error) {
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
	for _, r := range theirs {
		if slices.Contains(mine, r) { // all members of both groups find that
			return nil, c.refuse(ErrComm, op, "rank %d of the world is in both groups; they must have no rank in common", r)
		}
	}
	id, err := c.agreeBy(op, func(v []uint32, by Op[uint32]) error {
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
	g.both = c.amongWorld(id, ranks, c.name+".inter.both")
	return g.join(op, c.name+".inter")
}

// meetOverBridge exchanges the lists of two groups between their leaders.
func meetOverBridge(c *Comm, op string, mine []int64, bridge *Comm, remote, tag int) ([]int64, error) {
	switch {
	case bridge == nil:
		return nil, c.refuse(ErrComm, op, "the leader gives no bridge, the communicator in which it finds the other leader")
	case bridge.e != c.e:
		return nil, c.refuse(ErrComm, op, "the bridge belongs to another rank")
	}
	if err := bridge.checkPeer(op, remote, tag); err != nil {
		return nil, err
	}
	if remote == ProcNull {
		return nil, c.refuse(ErrRank, op, "the remote leader is ProcNull")
	}
	send := Isend(bridge, mine, remote, tag)
	theirs, _, err := receiveList(bridge, remote, tag)
	if err != nil {
		return nil, err
	}
	_, err = send.Wait()
	return theirs, err
}

// shareList gives all ranks the list that one of them has, or an error if it has one.
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

// acrossBridge combines a number over both groups before there is a communicator
// of both.
func (c *Comm) acrossBridge(op string, v []uint32, by Op[uint32], leader int, bridge *Comm, remote, tag int) error {
	if err := allreduce(c, op, v, v, by); err != nil {
		return err
	}
	if c.rank == leader {
		theirs := make([]uint32, len(v))
		if _, err := Sendrecv(bridge, v, remote, tag, theirs, remote, tag); err != nil {
			return err
		}
		by.Apply(v, theirs)
	}
	return c.bcast(op, rawBytes(v), leader)
}

// amongWorld makes a communicator of ranks of the world, the caller among them.
func (c *Comm) amongWorld(ctx uint32, ranks []int32, name string) *Comm {
	me := int32(c.w.comm.rank)
	s := &Comm{w: c.w, e: c.e, ctx: ctx, ranks: ranks, rank: slices.Index(ranks, me), size: len(ranks), name: name}
	return s.ready()
}

// join makes the inter-communicator of two groups that have a communicator of both.
func (g *interGroups) join(op, name string) (*Comm, error) {
	id, err := g.both.agree(op)
	if err != nil {
		return nil, err
	}
	return g.comm(id, name), nil
}

// comm is the inter-communicator itself: size and ranks are those of the other
// group, the rank is that in the caller's own.
func (g *interGroups) comm(ctx uint32, name string) *Comm {
	c := &Comm{w: g.both.w, e: g.both.e, ctx: ctx, ranks: g.world(!g.second), name: name, inter: g,
		rank: g.both.rank - g.start(g.second), size: g.size(!g.second)}
	return c.ready()
}

// IsInter reports whether c is an inter-communicator.
func (c *Comm) IsInter() bool { return c.inter != nil }

// RemoteSize is the number of ranks in the other group of an inter-communicator,
// else 0.
func (c *Comm) RemoteSize() int {
	if c.inter == nil {
		return 0
	}
	return c.inter.size(!c.inter.second)
}

// RemoteGroup is the other group of an inter-communicator, else nil.
func (c *Comm) RemoteGroup() *Group {
	if c.inter == nil {
		return nil
	}
	return &Group{ranks: c.inter.world(!c.inter.second), rank: Undefined}
}

// localGroup is the caller's group.
func (g *interGroups) localGroup() *Group {
	return &Group{ranks: g.world(g.second), rank: g.both.rank - g.start(g.second)}
}

// Merge makes a communicator of both groups of an inter-communicator, the ranks of
// the group that gives high true after those of the other. If both give the same,
// the group with the lowest rank of the world is first. All ranks of a group give
// the same. It is collective over both groups.
func (c *Comm) Merge(high bool) (*Comm, error) {
	const op = "Merge"
	if err := c.usable(op); err != nil {
		return nil, err
	}
	g := c.inter
	if g == nil {
		return nil, c.refuse(ErrComm, op, "%s has one group; only an inter-communicator can be merged", c.name)
	}
	id, err := g.both.agree(op)
	if err != nil {
		return nil, err
	}
	flags := make([]bool, g.both.size)
	if err := allgather(g.both, op, []bool{high}, flags); err != nil {
		return nil, err
	}
	for i, f := range flags {
		if first := flags[g.start(i >= g.sizes[0])]; f != first {
			return nil, c.refuse(ErrArg, op, "ranks of one group give different values of high")
		}
	}
	members := make([]int, g.both.size)
	for i := range members {
		members[i] = i
		if flags[0] && !flags[g.sizes[0]] { // the second group comes first
			members[i] = (i + g.sizes[0]) % len(members)
		}
	}
	return g.both.sub(id, members, c.name+".merged"), nil
}

// dupInter is Dup.
func (c *Comm) dupInter(op string) (*Comm, error) {
	if err := c.usable(op); err != nil {
		return nil, err
	}
	both, err := c.inter.both.Dup()
	if err != nil {
		return nil, err
	}
	g := *c.inter
	g.both = both
	return g.join(op, c.name+".dup")
}

// splitInter is Split (MPI-4.1 section 7.4.2): the ranks of each group that give the
// same color are joined. A rank whose color nobody in the other group gives gets
// nil.
func (c *Comm) splitInter(op string, color, key int) (*Comm, error) {
	g := c.inter
	if err := c.usable(op); err != nil {
		return nil, err
	}
	// One context for the communicator of both, one between them.
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
		sortByKey(some, func(r int) int64 { return all[r][1] })
		part.sizes[i] = len(some)
		members = append(members, some...)
	}
	name := fmt.Sprintf("%s.split(%d)", c.name, color)
	part.both = g.both.sub(ids[0], members, name+".both")
	return part.comm(ids[1], name), nil
}

// intra says no for a communicator that has been freed or has two groups.
func (c *Comm) intra(op string) error {
	if err := c.usable(op); err != nil {
		return err
	}
	if c.inter != nil {
		return c.refuse(ErrComm, op, "%s is an inter-communicator, for which there is no %s; Merge its groups first", c.name, op)
	}
	return nil
}
