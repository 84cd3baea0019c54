package mpi

// Collectives of ranks that share a node, in a shared memory segment (package nodecoll, T2
// 4.3). Blocking calls up to a size limit use it (coll.Segment), by a rule that is the same on
// all ranks of the communicator:
//
//	inNode       is it one of those calls? then make it in the team
//	 └ nodeTeam  the communicator's team, formed after nodeAfter such calls
//	    └ formTeam  rank 0 creates the segment; all map it, or none
//
// Non-blocking and persistent calls use messages: they must make progress while the rank
// is elsewhere.

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/nodecoll"
	"github.com/muster-mpi/muster/internal/p2p"
)

// nodeAfter is how many calls a communicator makes with messages before it gets a segment.
// A segment does not pay off for a call or two.
const nodeAfter = 4

// nodeColl is the state of a communicator for memory that its ranks share. The table of
// package coll (coll.HostForms) determines which calls use it.
type nodeColl struct {
	team   *nodecoll.Team
	limits coll.Limits // of calls that use the team
	gate   bool        // barriers use the board (coll_barrier.go)
	calls  int         // that could have used the team
	forget func()      // called before the team is released
	users  any         // the *segmentOp of the last reduction with a user-defined operation
	// why is the reason that there is no team; "" if it is not known yet, or if there is one.
	why string
	// region is the memory of the ranks of a node where there are several (coll_region.go).
	region nodeRegion
}

// inNode makes a call in the segment, if it is one for it. op is nil if the call does not
// combine elements.
func inNode[T Elem](c *Comm, k *collCall, op *Op[T]) (done bool, err error) {
	t, err := c.nodeTeam(k)
	switch {
	case t == nil:
		return err != nil, err
	case op == nil:
		err = moveInTeam(t, k)
	case op.predefined != nil:
		err = reduceInTeam(t, k, op.Apply, 1, !op.ordered())
	default:
		err = usersReduction(c, t, k, op)
	}
	if c.e.ShowsWaits() {
		c.e.ShowRunning()
	}
	return true, c.nodeOutcome(k, t, err)
}

func moveInTeam(t *nodecoll.Team, k *collCall) error {
	switch key := &k.key; key.kind {
	case coll.Barrier:
		if k.leaving {
			return t.Finalize(k.name)
		}
		return t.Barrier(k.name)
	case coll.Bcast:
		return t.Bcast(k.name, k.out, key.root)
	case coll.Gather:
		return t.Gather(k.name, k.in, k.out, key.recv, key.root)
	case coll.Scatter:
		return t.Scatter(k.name, k.in, k.out, key.bytes, key.root)
	case coll.Allgather:
		return t.Allgather(k.name, k.in, k.out, key.recv)
	case coll.Alltoall:
		return t.Alltoall(k.name, k.in, k.out, key.bytes)
	}
	return noTeamForm(k)
}

func reduceInTeam[T Elem](t *nodecoll.Team, k *collCall, combine func(inout, in []T), unit int, commutes bool) error {
	in, out := elements[T](k.in), elements[T](k.out)
	if k.key.inPlace {
		in = out
	}
	switch k.key.kind {
	case coll.Reduce:
		return nodecoll.Reduce(t, k.name, in, out, combine, unit, commutes, k.key.root)
	case coll.Allreduce:
		return nodecoll.Allreduce(t, k.name, in, out, combine, unit, commutes)
	case coll.ReduceScatter:
		return nodecoll.ReduceScatter(t, k.name, in, out[:k.key.bytes/sizeOf[T]()], combine, unit)
	case coll.Scan:
		return nodecoll.Scan(t, k.name, in, out, combine, unit)
	case coll.Exscan:
		return nodecoll.Exscan(t, k.name, in, out, combine, unit)
	}
	return noTeamForm(k)
}

func noTeamForm(k *collCall) error {
	return fmt.Errorf("internal error: %s has no form in shared memory", k.name)
}

// nodeTeam returns the team for a call, or nil if the call uses messages.
func (c *Comm) nodeTeam(k *collCall) (*nodecoll.Team, error) {
	bytes, n := k.payload(), c.nodeState()
	switch {
	case k.key.irregular, bytes > n.limits[k.key.kind], bytes == 0 && k.key.kind != coll.Barrier, !nodecoll.Fits(c.size, k.key.elem):
		return nil, nil
	case n.team != nil || n.why != "":
		return n.team, nil
	}
	if n.calls++; n.calls <= nodeAfter {
		return nil, nil
	}
	err := c.formTeam(k.name)
	return n.team, err
}

// nodeState returns what the communicator has determined about memory that its ranks share,
// at its first call.
func (c *Comm) nodeState() *nodeColl {
	if c.node == nil {
		n, p, named := &nodeColl{}, c.placement(), c.namedAlgorithms()
		gate, _ := coll.Gate.Limits(p, named)
		n.gate = gate[coll.Barrier] >= 0
		p.SharedCores = false // until all ranks have the data of rank 0, see formTeam
		n.limits, n.why = coll.Segment.Limits(p, named)
		c.node = n
	}
	return c.node
}

// placement returns where the ranks are. All ranks get the same result without communication,
// if they are on one host.
func (c *Comm) placement() *coll.Placement {
	p := &coll.Placement{Ranks: c.size, World: c == c.w.comm, Board: c.e.HasGate(), SharedCores: c.e.Oversubscribed(),
		TwoGroups: c.inter != nil, NoSharedMemory: c.w.cfg.NoSharedMemory}
	if p.TwoGroups || c.w.client.LocalSize() == c.w.client.Size() {
		return p
	}
	home := c.w.client.Node(c.world(0))
	for r := 1; r < c.size && p.Apart == 0; r++ {
		if c.w.client.Node(c.world(r)) != home {
			p.Apart = r
		}
	}
	return p
}

// namedAlgorithms returns the algorithms that Config.Collective names, which has been checked.
func (c *Comm) namedAlgorithms() *coll.Named {
	n := &coll.Named{}
	for _, part := range strings.Split(c.forcedAlgorithms(), ",") {
		kind, algorithm, _ := strings.Cut(strings.TrimSpace(part), "=")
		if k, err := coll.ParseKind(kind); err == nil {
			n[k] = algorithm
		}
	}
	return n
}

// formTeam forms the team. All ranks are in the same call.
func (c *Comm) formTeam(op string) error {
	n := c.node
	c.openHistory()
	link := &teamLink{c: c, op: op}
	team, err := nodecoll.Form(nodecoll.Config{Rank: c.rank, Size: c.size, Driver: link, Exchange: link,
		Host: c.w.nodes, History: &c.past.History, Oversubscribed: c.e.Oversubscribed(), NoMemfd: c.w.cfg.Advanced.NoMemfd})
	var without *nodecoll.Unavailable
	switch {
	case err == nil:
		// Only now have all ranks the same data about cores, from rank 0.
		p := c.placement()
		p.SharedCores = team.Oversubscribed()
		n.team = team
		n.limits, _ = coll.Segment.Limits(p, c.namedAlgorithms())
		n.forget = func() { c.useTeam(nil) }
		c.useTeam(team)
		c.w.teams.add(n)
	case errors.As(err, &without):
		n.why = err.Error()
	default:
		n.why = err.Error()
		return c.failure(err, op, ProcNull, noTag, 0)
	}
	return nil
}

// nodeOutcome returns the error of a call in the segment.
func (c *Comm) nodeOutcome(k *collCall, t *nodecoll.Team, err error) error {
	switch {
	case err != nil:
		return c.nodeFailure(k.name, err)
	case t.Lengths() != nil:
		return c.refuse(ErrTruncate, k.name, "%w", t.Lengths())
	}
	return nil
}

// nodeFailure converts an error of the team to one of this package.
func (c *Comm) nodeFailure(op string, err error) error {
	var (
		differ *nodecoll.Mismatch
		broken *engine.BrokenError
		users  *opError
	)
	switch {
	case err == nodecoll.InOperation{}:
		panic(engine.OperationCallsError{}) // like any other call by an operation
	case errors.As(err, &users):
		return c.refuse(ErrOp, op, "%w", users)
	case errors.As(err, &broken):
		return c.brokenFailure(op, broken)
	case errors.As(err, &differ):
		c.e.Break(&c.co, differ) // for ranks that are not in the segment now
		return c.segmentFailure(op, differ)
	}
	return c.failure(err, op, ProcNull, noTag, 0)
}

// teamLink connects a team with the rest of the rank, for package nodecoll.
type teamLink struct {
	c    *Comm
	op   string      // that formed the team
	name engine.Comm // the sender of the messages that wake ranks
}

func (l *teamLink) Poll(op string, n int) (sleepy bool, err error) {
	return l.c.e.PollOnce(&l.c.co, op, n)
}

func (l *teamLink) InOperation() bool { return engine.InOperation() }

// Sleep receives the message that wakes this rank. So the rank sleeps like one that waits
// for a message: it serves others meanwhile, and the report of a stuck job shows which rank
// it waits for.
func (l *teamLink) Sleep(op string, peer int) error {
	_, err := l.c.e.Recv(&l.c.co, op, l.c.world(peer), int32(peer), engine.WakeTag, nil)
	return err
}

func (l *teamLink) Wake(op string, peer, name int) error {
	l.name = l.c.co
	l.name.Rank = int32(name)
	return l.c.e.Send(&l.name, op, l.c.world(peer), engine.WakeTag, nil, p2p.Standard)
}

func (l *teamLink) Send(to int, b []byte) error {
	return l.c.e.Send(&l.c.co, l.op, l.c.world(to), engine.TeamTag, b, p2p.Standard)
}

func (l *teamLink) Recv(from int, b []byte) (int, error) {
	st, err := l.c.e.Recv(&l.c.co, l.op, l.c.world(from), int32(from), engine.TeamTag, b)
	return st.Bytes, err
}

// teamList is the teams of a rank, to be released when it leaves.
type teamList struct {
	mu    sync.Mutex
	all   map[*nodeColl]bool
	ended uint64 // calls of teams that were released
}

func (l *teamList) add(n *nodeColl) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = make(map[*nodeColl]bool)
	}
	l.all[n] = true
}

// leave releases a communicator's team and region.
func (l *teamList) leave(n *nodeColl, why string) error {
	if n == nil {
		return nil
	}
	err := l.leaveRegion(n, why)
	if n.team == nil {
		return err
	}
	team := n.team
	l.mu.Lock()
	delete(l.all, n)
	l.ended += team.Calls()
	l.mu.Unlock()
	n.forget()
	n.team, n.why = nil, why
	return errors.Join(err, team.Close())
}

// leaveRegion releases a communicator's region.
func (l *teamList) leaveRegion(n *nodeColl, why string) error {
	r := &n.region
	if r.Region == nil {
		return nil
	}
	l.mu.Lock()
	if n.team == nil {
		delete(l.all, n)
	}
	l.ended += r.runs
	l.mu.Unlock()
	region := r.Region
	*r = nodeRegion{why: why}
	return region.Close()
}

// share returns this rank's share of their memory.
func (l *teamList) share() (bytes uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := range l.all {
		if r := &n.region; r.Region != nil {
			bytes += uint64(len(r.Bytes) / r.ranks)
		}
		if n.team != nil {
			bytes += uint64(n.team.Bytes() / n.team.Size())
		}
	}
	return bytes
}

// calls returns the number of collectives they have made. No call may be under way.
func (l *teamList) calls() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.ended
	for n := range l.all {
		sum += n.region.runs
		if n.team != nil {
			sum += n.team.Calls()
		}
	}
	return sum
}

// leaveAll releases all of them.
func (l *teamList) leaveAll(why string) error {
	l.mu.Lock()
	all := l.all
	l.all = nil
	l.mu.Unlock()
	var errs []error
	for n := range all {
		errs = append(errs, l.leave(n, why))
	}
	return errors.Join(errs...)
}

// nodeSegment returns how many bytes of memory the ranks of a communicator share for
// blocking collectives; if 0, why: they have not made enough calls yet, or cannot.
func (c *Comm) nodeSegment() (bytes int, why string) {
	switch n := c.node; {
	case n == nil:
		return 0, fmt.Sprintf("no call yet; the segment is made at call %d", nodeAfter+1)
	case n.team != nil:
		return n.team.Bytes(), ""
	case n.why != "":
		return 0, n.why
	default:
		return 0, fmt.Sprintf("%d calls so far; the segment is made at call %d", n.calls, nodeAfter+1)
	}
}
