package mpi

// Communicators: a group of ranks and a context that keeps their messages apart
// from all others.

import (
	"fmt"
	"sync"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// Wildcards and the rank that is nobody (MPI-4.1 sections 3.2.4, 3.10).
const (
	AnySource = -1
	AnyTag    = -1
	ProcNull  = -2
	// Undefined is the colour of a rank that takes part in no result of Split,
	// and the rank of somebody who is not in a group.
	Undefined = -32766
	// MaxTag is the largest tag.
	MaxTag = 1<<31 - 1
)

// Package p2p matches messages by the same values: another one does not compile.
var _ = [1]struct{}{}[(AnySource-p2p.AnySource)|(AnyTag-p2p.AnyTag)]

// Comm is a communicator. It may be used by many goroutines; collective calls
// must be made by all its ranks in the same order. If ranks make different ones, those
// that notice tell the others, and all collective calls on it return an error from then
// on. It can still be used for messages, and freed.
type Comm struct {
	w     *World
	e     *engine.Engine
	ctx   uint32      // of point-to-point messages; collectives use ctx+1
	pt    engine.Comm // what the engine must know, for point-to-point messages
	co    engine.Comm // and for collectives
	ranks []int32     // rank in the world of each rank here; nil: they are equal
	rank  int
	size  int
	name  string
	freed bool
	inter *interGroups // of an inter-communicator; then ranks and size are of the other group
	plans *collPlans   // schedules of collectives; nil before the first
	node  *nodeColl    // collectives in shared memory; nil before the first
	// prefer is what the collectives use instead of the job's choice; nil: nothing.
	prefer *preference
	past   *commHistory // what was called; nil before the first collective call
	// recorder records arrivals at collectives; nil: before the first, or nobody does.
	recorder *commRecorder
}

// ready fills in what follows from the other fields.
func (c *Comm) ready() *Comm {
	c.pt = engine.Comm{Ctx: c.ctx, Rank: int32(c.rank), Name: c.name}
	c.co = engine.Comm{Ctx: c.ctx + 1, Rank: int32(c.rank), Name: c.name, Ranks: c.collRanks(), Size: c.size}
	c.recorder = nil    // that of a duplicate is another
	if c.inter != nil { // its collectives number the ranks of both groups
		c.co.Rank, c.co.Size = int32(c.inter.both.rank), c.inter.both.size
	}
	if c.past != nil && c.past.ctx != c.co.Ctx {
		c.past = nil // nor the calls
	}
	if c.past != nil {
		c.co.Past = c.past
	}
	return c
}

// Rank is the number of the calling rank in this communicator.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks; of an inter-communicator, in the caller's group.
func (c *Comm) Size() int {
	if c.inter != nil {
		return c.inter.size(c.inter.second)
	}
	return c.size
}

// Name is for people: it appears in errors and in the report of a stuck job.
func (c *Comm) Name() string { return c.name }

// SetName gives the communicator a name.
func (c *Comm) SetName(name string) {
	c.name = name
	c.ready()
}

// World is the rank's membership in the job, for Finalize and Abort.
func (c *Comm) World() *World { return c.w }

// world turns a rank of this communicator into one of the world.
func (c *Comm) world(rank int) int {
	if c.ranks == nil {
		return rank
	}
	return int(c.ranks[rank])
}

// worldOrAnyone is world for a peer that may be AnySource or ProcNull.
func (c *Comm) worldOrAnyone(rank int) int {
	if rank < 0 {
		return engine.Anyone
	}
	return c.world(rank)
}

// Group is the group of the communicator's ranks; of an inter-communicator, the
// caller's group.
func (c *Comm) Group() *Group {
	if c.inter != nil {
		return c.inter.localGroup()
	}
	return c.peers()
}

// peers is the group of those who messages are sent to.
func (c *Comm) peers() *Group {
	if c.ranks == nil {
		return identityGroup(c.size, c.rank)
	}
	return &Group{ranks: c.ranks, rank: c.rank}
}

// Context numbers. Each communicator takes two: one for its point-to-point
// messages and one for its collectives, so that the two never meet.
const (
	worldContext     = 0
	firstFreeContext = 2
)

// lastContext is the last context that is given out. The number behind it belongs to
// collectives, and those above are left so that no sum wraps around.
const lastContext = 1<<32 - 1<<10

// contextIDs are the contexts a rank has given out.
type contextIDs struct {
	mu    sync.Mutex
	next  uint32
	taken map[uint32]bool // reserved above next
}

func (t *contextIDs) propose() uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.taken[t.next] {
		delete(t.taken, t.next)
		t.next += 2
	}
	return t.next
}

// reserve takes an id unless another agreement has it.
func (t *contextIDs) reserve(id uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id < t.next || t.taken[id] {
		return false
	}
	if t.taken == nil {
		t.taken = make(map[uint32]bool)
	}
	t.taken[id] = true
	return true
}

func (t *contextIDs) release(id uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, id)
}

// agree finds a context that is free in every rank of c: the largest that
// anybody proposes, if all can reserve it. Two agreements that run at the same
// time on different communicators can want the same; then those who lose try
// again.
func (c *Comm) agree(op string) (uint32, error) {
	if err := c.intra(op); err != nil {
		return 0, err
	}
	return c.agreeBy(op, func(v []uint32, by Op[uint32]) error { return allreduce(c, op, v, v, by) })
}

// agreeBy is agree among those over whom combine combines a number.
func (c *Comm) agreeBy(op string, combine func(v []uint32, by Op[uint32]) error) (uint32, error) {
	floor := uint32(0)
	for attempt := range uint32(1000) {
		in := []uint32{max(c.w.ids.propose(), floor)}
		if err := combine(in, Max[uint32]()); err != nil {
			return 0, err
		}
		id := in[0]
		if id > lastContext { // all ranks see the same
			return 0, c.refuse(ErrNoMem, op, "2147483000 communicators and windows have been made, and there are no more numbers for their messages; "+
				"keep communicators and use them again instead of making new ones")
		}
		ok := []uint32{0}
		if c.w.ids.reserve(id) {
			ok[0] = 1
		}
		mine := ok[0] == 1
		if err := combine(ok, Min[uint32]()); err != nil {
			return 0, err
		}
		if ok[0] == 1 {
			return id, nil
		}
		if mine {
			c.w.ids.release(id)
		}
		// Those who lost to each other must not meet again: how far they go on depends
		// on the communicator, and all ranks of it go equally far.
		floor = id + 2 + 2*((c.ctx^attempt)*0x9E3779B1>>29)
	}
	return 0, c.refuse(ErrIntern, op, "no context could be agreed on")
}

// Dup makes a communicator of the same ranks with a context of its own, so that
// a library's messages cannot meet those of its caller. It is collective.
func (c *Comm) Dup() (*Comm, error) {
	if c.inter != nil {
		return c.dupInter("Dup")
	}
	id, err := c.agree("Dup")
	if err != nil {
		return nil, err
	}
	d := *c
	d.ctx, d.name, d.plans, d.node = id, c.name+".dup", nil, nil
	return d.ready(), nil
}

// Split makes communicators of the ranks that give the same colour, ordered by
// key and then by their rank here. A rank with colour Undefined gets nil. It is
// collective.
func (c *Comm) Split(colour, key int) (*Comm, error) {
	if colour < 0 && colour != Undefined {
		return nil, c.refuse(ErrArg, "Split", "colour %d is negative; use mpi.Undefined to take no part", colour)
	}
	if c.inter != nil {
		return c.splitInter("Split", colour, key)
	}
	id, err := c.agree("Split")
	if err != nil {
		return nil, err
	}
	all := make([][2]int64, c.size)
	if err := allgather(c, "Split", [][2]int64{{int64(colour), int64(key)}}, all); err != nil {
		return nil, err
	}
	if colour == Undefined {
		return nil, nil
	}
	members := make([]int, 0, c.size)
	for r, ck := range all {
		if ck[0] == int64(colour) {
			members = append(members, r)
		}
	}
	sortByKey(members, func(r int) int64 { return all[r][1] })
	return c.sub(id, members, fmt.Sprintf("%s.split(%d)", c.name, colour)), nil
}

// sortByKey is a stable insertion sort; members are in rank order already.
func sortByKey(members []int, key func(int) int64) {
	for i := 1; i < len(members); i++ {
		for j := i; j > 0 && key(members[j]) < key(members[j-1]); j-- {
			members[j], members[j-1] = members[j-1], members[j]
		}
	}
}

// SplitType kinds.
const (
	// ByNode groups the ranks that share memory.
	ByNode = 1
)

// SplitType makes communicators of ranks that have something in common; ByNode
// is what there is. It is collective.
func (c *Comm) SplitType(kind, key int) (*Comm, error) {
	if kind == Undefined {
		return c.Split(Undefined, key)
	}
	if kind != ByNode {
		return nil, c.refuse(ErrArg, "SplitType", "kind %d is unknown; use mpi.ByNode", kind)
	}
	sub, err := c.Split(c.w.client.Node(c.w.comm.rank), key)
	if sub != nil {
		sub.SetName(c.name + ".node")
	}
	return sub, err
}

// Create makes a communicator of a group of this communicator's ranks. All
// ranks of c call it, with the same group; those outside get nil.
func (c *Comm) Create(g *Group) (*Comm, error) {
	if g == nil {
		return nil, c.refuse(ErrGroup, "Create", "the group is nil")
	}
	if err := c.usable("Create"); err != nil {
		return nil, err
	}
	members := make([]int, g.Size())
	mine := c.Group()
	for i := range members {
		members[i] = mine.indexOf(g.world(i))
		if members[i] < 0 {
			return nil, c.refuse(ErrGroup, "Create", "rank %d of the group (rank %d of the world) is not in %s", i, g.world(i), c.name)
		}
	}
	if c.inter != nil { // the group is one of the caller's own (MPI-4.1 section 7.4.2)
		if g.Rank() == Undefined {
			return c.splitInter("Create", Undefined, 0)
		}
		return c.splitInter("Create", 0, g.Rank())
	}
	id, err := c.agree("Create")
	if err != nil {
		return nil, err
	}
	if g.Rank() == Undefined {
		return nil, nil
	}
	return c.sub(id, members, c.name+".group"), nil
}

// sub makes the communicator of some ranks of c, the caller among them.
func (c *Comm) sub(ctx uint32, members []int, name string) *Comm {
	s := &Comm{w: c.w, e: c.e, ctx: ctx, size: len(members), rank: -1, name: name}
	s.ranks = make([]int32, len(members))
	same := true
	for i, m := range members {
		s.ranks[i] = int32(c.world(m))
		same = same && int(s.ranks[i]) == i
		if m == c.rank {
			s.rank = i
		}
	}
	if same { // no table is needed
		s.ranks = nil
	}
	return s.ready()
}

// Compare results (MPI-4.1 section 7.4.1).
const (
	Identical = iota // the same communicator, or the same group in the same order
	Congruent        // the same group in the same order, another context
	Similar          // the same members in another order
	Unequal
)

// Compare says how two communicators of this rank are related.
func (c *Comm) Compare(d *Comm) int {
	if c == d || c.w == d.w && c.ctx == d.ctx {
		return Identical
	}
	how := c.Group().Compare(d.Group())
	if (c.inter != nil) != (d.inter != nil) {
		return Unequal
	}
	if c.inter != nil { // both groups count
		how = max(how, c.RemoteGroup().Compare(d.RemoteGroup()))
	}
	if how == Identical {
		return Congruent
	}
	return how
}

// Free says that the communicator will not be used any more. Requests on it that
// are under way go on; new calls are refused.
func (c *Comm) Free() error {
	if c == c.w.comm {
		return c.refuse(ErrComm, "Free", "the world cannot be freed")
	}
	if err := c.usable("Free"); err != nil {
		return err
	}
	if c.inter != nil {
		if err := c.inter.both.Free(); err != nil {
			return err
		}
	}
	c.freed = true
	c.e.UnregisterComm(c.co.Ctx)
	c.size = 0 // no rank is in range: the check of the rank, which every call makes, finds out
	return c.w.teams.leave(c.node, "the communicator has been freed")
}

// usable says no for a communicator that has been freed.
func (c *Comm) usable(op string) error {
	if c.freed {
		return c.refuse(ErrComm, op, "the communicator has been freed")
	}
	return nil
}
