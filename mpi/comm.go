package mpi

// Communicators: a group of ranks and a context that separates their messages from
// all others.

import (
	"fmt"
	"sync"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/rankset"
)

// Special ranks and tags (MPI-4.1 sections 3.2.4, 3.10).
const (
	// AnySource receives from any rank.
	AnySource = -1
	// AnyTag receives a message with any tag.
	AnyTag = -1
	// ProcNull is the null process: sends to it and receives from it complete at
	// once and transfer nothing.
	ProcNull = -2
	// Undefined is the color of a rank that becomes a member of no communicator
	// in [Comm.Split], and the rank of a process that is not in a group.
	Undefined = -32766
	// MaxTag is the largest tag.
	MaxTag = 1<<31 - 1
)

// Package p2p uses the same values; a different one does not compile.
var _ = [1]struct{}{}[(AnySource-p2p.AnySource)|(AnyTag-p2p.AnyTag)]

// Comm is a communicator. Any number of goroutines may use it at the same time. All
// its ranks make the same collective calls in the same order. If they do not, the
// ranks that detect it inform the others, and from then on all collective calls on
// the communicator return an error; it can still be used for messages, and freed.
type Comm struct {
	w     *World
	e     *engine.Engine
	ctx   uint32        // of point-to-point messages; collectives use ctx+1
	pt    engine.Comm   // for the engine, for point-to-point messages
	co    engine.Comm   // for the engine, for collectives
	ranks *rankset.List // the world rank of each rank; nil: they are equal
	rank  int
	size  int
	name  *engine.Name
	call  *callFromC // in check mode: of the message for which this copy was made; else nil
	freed bool
	inter *interGroups // of an inter-communicator; then ranks and size are of the other group
	plans *collPlans   // schedules of collectives; nil before the first
	node  *nodeColl    // collectives in shared memory; nil before the first
	// prefer overrides the job's choice of algorithms; nil: it does not.
	prefer *preference
	idups  int32        // calls of Idup so far
	past   *commHistory // the calls so far; nil before the first collective call
	// recorder records arrivals at collectives; nil before the first call, or if
	// the job has no profile of arrivals.
	recorder *commRecorder
}

// ready sets the fields that depend on others.
func (c *Comm) ready() *Comm {
	c.pt = engine.Comm{Ctx: c.ctx, Rank: int32(c.rank), Name: c.name}
	c.co = engine.Comm{Ctx: c.ctx + 1, Rank: int32(c.rank), Name: c.name, Ranks: c.collRanks(), Size: c.size, Grant: c.w.grant()}
	c.recorder = nil    // a duplicate has its own
	if c.inter != nil { // its collectives number the ranks of both groups
		c.co.Rank, c.co.Size = int32(c.inter.both.rank), c.inter.both.size
	}
	if c.past != nil && c.past.ctx != c.co.Ctx {
		c.past = nil // nor the calls
	}
	if c.past != nil {
		c.co.Past = c.past
	}
	if c.w.cfg.Check {
		c.watchMessages()
	}
	if c.ctx != selfContext {
		c.w.joins.comms.Add(1)
	}
	if c.e.Tolerates() && !c.freed {
		c.e.RegisterMember(c.co, c.ctx, c.ranks, c.onHost())
	}
	return c
}

// Rank returns the rank of the calling process in c.
func (c *Comm) Rank() int { return c.rank }

// Size returns the number of ranks; for an inter-communicator, that of the local
// group.
func (c *Comm) Size() int {
	if c.inter != nil {
		return c.inter.size(c.inter.second)
	}
	return c.size
}

// Name returns the name of the communicator. Errors and the report of a stuck job
// contain it.
func (c *Comm) Name() string { return c.name.String() }

// SetName sets the name of the communicator. Other goroutines may use it meanwhile.
func (c *Comm) SetName(name string) { c.name.Set(name) }

// World returns the calling rank's membership in the job, for Finalize and Abort.
func (c *Comm) World() *World { return c.w }

// world returns the world rank of a rank of c.
func (c *Comm) world(rank int) int { return c.ranks.At(rank) }

// worldOrAnyone is world for a peer that may be AnySource or ProcNull.
func (c *Comm) worldOrAnyone(rank int) int {
	if rank < 0 {
		return engine.Anyone
	}
	return c.world(rank)
}

// Group returns the group of the communicator's ranks; for an inter-communicator,
// the local group.
func (c *Comm) Group() *Group {
	if c.inter != nil {
		return c.inter.localGroup()
	}
	return c.peers()
}

// peers returns the group of possible destinations.
func (c *Comm) peers() *Group { return &Group{list: c.ranks, n: c.size, rank: c.rank} }

// Context ids. Each communicator uses two: one for point-to-point messages and one
// for collectives, so that neither matches the other.
const (
	worldContext     = 0
	selfContext      = 2
	firstFreeContext = 4
)

// lastContext is the largest context id in use. The id after it belongs to
// collectives; those above are unused so that no sum wraps around. The highest bit marks
// partitioned messages.
const lastContext = partitionedContext - 1<<10

// contextIDs are the context ids that a rank uses.
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

// reserve reserves an id unless another agreement has it.
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

// agree selects a context id that is free in every rank of c: the largest that any
// rank proposes, if all can reserve it. Two agreements at the same time on different
// communicators can select the same id; then the losing one tries again.
func (c *Comm) agree(op string) (uint32, error) {
	if err := c.intra(op); err != nil {
		return 0, err
	}
	return c.agreeBy(op, c.ctx, func(v []uint32, by func() Op[uint32]) error { return allreduce(c, op, v, v, by) })
}

// agreeBy is agree among the ranks over which combine reduces a number. Agreements at the
// same time need different salts. With an error it returns the id that others may have
// selected, or 0: the world's.
func (c *Comm) agreeBy(op string, salt uint32, combine func(v []uint32, by func() Op[uint32]) error) (uint32, error) {
	floor := uint32(0)
	for attempt := range uint32(1000) {
		in := []uint32{max(c.w.ids.propose(), floor)}
		if err := combine(in, Max); err != nil {
			return 0, err
		}
		id := in[0]
		if id > lastContext { // all ranks see the same
			return 0, c.refuse(ErrNoMem, op, "1073741000 communicators and windows have been made, and there are no more context ids; "+
				"keep communicators and use them again instead of making new ones")
		}
		ok := []uint32{0}
		if c.w.ids.reserve(id) {
			ok[0] = 1
		}
		mine := ok[0] == 1
		if err := combine(ok, Min); err != nil {
			if mine {
				return id, err
			}
			return 0, err
		}
		if ok[0] == 1 {
			return id, nil
		}
		if mine {
			c.w.ids.release(id)
		}
		floor = afterCollision(id, salt, attempt)
	}
	return 0, c.refuse(ErrIntern, op, "the ranks could not agree on a context id")
}

// afterCollision returns the id that an agreement tries next. Agreements that collided are
// unlikely to collide again: the increment depends on the salt.
func afterCollision(id, salt, attempt uint32) uint32 { return id + 2 + 2*(spread(salt, attempt)>>27) }

// spread combines two numbers such that all bits of the result depend on both.
func spread(a, b uint32) uint32 {
	h := uint64(a)<<32 | uint64(b)
	h = (h ^ h>>29) * 0x9E3779B97F4A7C15
	return uint32((h ^ h>>32) * 0xD6E8FEB86659FD93 >> 32)
}

// Self returns the communicator of the calling rank alone (MPI_COMM_SELF). It is the same
// for all communicators of the rank. It cannot be freed.
func (c *Comm) Self() *Comm {
	return c.w.self()
}

// Dup returns a communicator of the same ranks with its own context, so that the
// messages of a library cannot match those of its caller. It is collective.
func (c *Comm) Dup() (*Comm, error) {
	h := c.beginCreate("Dup", CallCreate)
	d, err := c.dup("Dup")
	return d, h.finish(err)
}

// dup is Dup on behalf of the call op.
func (c *Comm) dup(op string) (*Comm, error) {
	if c.inter != nil {
		return c.dupInter(op)
	}
	id, err := c.agree(op)
	if err != nil {
		return nil, err
	}
	return c.withContext(id), nil
}

// withContext returns a communicator of the same ranks with another context.
func (c *Comm) withContext(id uint32) *Comm {
	d := *c
	d.ctx, d.name, d.plans, d.node = id, engine.NewName(c.Name()+".dup"), nil, nil
	return d.ready()
}

// Split partitions the ranks of c into communicators, one for each color, and
// returns the caller's. Its ranks are ordered by key and then by their rank in c. A
// rank with color Undefined gets nil. Split is collective.
func (c *Comm) Split(color, key int) (*Comm, error) {
	h := c.beginCreate("Split", CallCreate)
	s, err := c.split(color, key)
	return s, h.finish(err)
}

func (c *Comm) split(color, key int) (*Comm, error) {
	if color < 0 && color != Undefined {
		return nil, c.refuse(ErrArg, "Split", "color %d is negative; use mpi.Undefined to take no part", color)
	}
	if c.inter != nil {
		return c.splitInter("Split", color, key)
	}
	id, err := c.agree("Split")
	if err != nil {
		return nil, err
	}
	members, err := c.splitMembers("Split", color, key)
	if err != nil || color == Undefined {
		return nil, err
	}
	return c.sub(id, members, fmt.Sprintf("%s.split(%d)", c.Name(), color)), nil
}

// SplitType is a property that ranks have in common, for [Comm.SplitType]. A rank that passes
// [Undefined] gets nil.
type SplitType int

const (
	// ByNode groups the ranks that share memory.
	ByNode SplitType = 1
)

// SplitType partitions the ranks of c by a common property; the only one is ByNode.
// It is collective.
func (c *Comm) SplitType(kind SplitType, key int) (*Comm, error) {
	h := c.beginCreate("SplitType", CallCreate)
	s, err := c.splitType(kind, key)
	return s, h.finish(err)
}

func (c *Comm) splitType(kind SplitType, key int) (*Comm, error) {
	if kind == Undefined {
		return c.split(Undefined, key)
	}
	if kind != ByNode {
		return nil, c.refuse(ErrArg, "SplitType", "kind %d is unknown; use mpi.ByNode", kind)
	}
	sub, err := c.split(c.w.client.Node(c.w.comm.rank), key)
	if sub != nil {
		sub.SetName(c.Name() + ".node")
	}
	return sub, err
}

// sub returns the communicator of some ranks of c, including the caller.
func (c *Comm) sub(ctx uint32, members *rankset.List, name string) *Comm {
	s := &Comm{w: c.w, e: c.e, ctx: ctx, size: members.Len(), rank: members.Index(c.rank), name: engine.NewName(name)}
	if s.ranks = c.ranks.Select(members); s.ranks.Identity() {
		s.ranks = nil
	}
	return s.ready()
}

// listOf returns a list of ranks.
func listOf(ranks []int) *rankset.List {
	table := make([]int32, len(ranks))
	for i, r := range ranks {
		table[i] = int32(r)
	}
	return rankset.Of(table)
}

// Comparison is how two communicators or groups are related (MPI-4.1 section 7.4.1).
type Comparison int

const (
	Identical Comparison = iota // the same communicator, or the same group in the same order
	Congruent                   // the same group in the same order, another context
	Similar                     // the same members in another order
	Unequal
)

func (c Comparison) String() string {
	names := [...]string{"identical", "congruent", "similar", "unequal"}
	if uint(c) < uint(len(names)) {
		return names[c]
	}
	return fmt.Sprintf("Comparison(%d)", int(c))
}

// Compare reports how two communicators of the calling rank are related.
func (c *Comm) Compare(d *Comm) Comparison {
	if c == d || c.w == d.w && c.ctx == d.ctx {
		return Identical
	}
	if c.w != d.w { // ranks of different jobs cannot be compared
		return Unequal
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

// Free releases the communicator. Requests under way complete; new calls return an
// error.
func (c *Comm) Free() error {
	h := c.beginCreate("Free", CallFree)
	return h.finish(c.free())
}

func (c *Comm) free() error {
	switch c.ctx {
	case worldContext, c.w.user.ctx:
		return c.refuse(ErrComm, "Free", "the world cannot be freed")
	case selfContext:
		return c.refuse(ErrComm, "Free", "the communicator of Self cannot be freed; it needs no Free")
	}
	if err := c.usable("Free"); err != nil {
		return err
	}
	if c.inter != nil {
		if err := c.inter.both.free(); err != nil {
			return err
		}
	}
	c.freed = true
	c.w.joins.comms.Add(-1)
	if home := c.w.base(); home.joins.parent == c {
		home.joins.parent = nil
	}
	if c.w.cfg.Check {
		c.unwatchMessages()
	}
	c.e.UnregisterComm(c.co.Ctx)
	c.size = 0 // no rank is in range, so the range check of every call fails
	return c.w.teams.leave(c.node, "the communicator has been freed")
}

// abandon frees a new communicator with which this rank cannot go on, after a failure for
// example, while others may have got further: it revokes it, and takes part in their next
// agreement.
func (c *Comm) abandon() error {
	if c.freed {
		return nil
	}
	if c.e.Tolerates() {
		c.e.Abandon(c.co.Ctx)
	}
	return c.Free()
}

// usable returns an error if the communicator has been freed.
func (c *Comm) usable(op string) error {
	if c.freed {
		if c == c.w.user {
			return c.refuse(ErrComm, op, noRecover)
		}
		return c.refuse(ErrComm, op, "the communicator has been freed")
	}
	return nil
}
