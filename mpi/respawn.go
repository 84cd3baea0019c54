package mpi

// Processes in place of failed ranks ("muster run --respawn"), for Recover. The ranks that are alive
// ask the launcher for them, and form a joined job with them (join.go) that survives failures. All
// that recovery does then is done in the joined job: its communicator of all ranks takes the place
// of that on which the ranks have agreed so far. After the next failure the same is done again.
//
//	refillAll           agrees on the failed ranks until each has a process, or none can be started
//	replaceFailed       forms a joined job; all ranks agree on whether that has succeeded
//	joinReplacements    asks the launcher for the processes, and meets them
//	joinSurvivors       the new process's side, in Init
//
// A joined job has no launcher of its own. Those of the jobs that have joined know which processes
// have failed, in one order; each rank reads it from there (readFailures) when there is a hint: rank 0 of the
// joined job, or its end, or the board of its own job. So nobody can be taken for failed whom the
// launcher has not seen end.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/ft"
	"github.com/muster-mpi/muster/internal/pmi"
)

// replacingPrefix begins the EnvParent of a replacement; the rest is a replacing.
const replacingPrefix = "replace:"

// maxReplacing bounds the joined jobs that are tried before an attempt.
const maxReplacing = 20

// replacing is how ranks that are alive and replacements of failed ones form a joined job: all
// that a replacement does not know.
type replacing struct {
	Token      string
	Alive      int           // ranks of the joined job that are alive; the others are replacements
	Index      int           // this replacement among them
	Names      []pmi.RankRef // of all ranks of the joined job
	Members    []int         // the ranks of the next attempt, in the joined job
	Generation uint32
	Attempt    int // the attempt before
	Lost       []int
	Idle       int
	Tries      int

	world *World
	dead  []pmi.RankRef // that are replaced
}

// refillAll finds processes for the ranks of the next attempt: those that are alive, spares, and
// processes started for it. It returns a free context id of r.full, the members, and the ranks
// that have failed in the attempt before.
func (r *recovery) refillAll() (id uint32, members, lost []int, err error) {
	for {
		id, failed, err := r.full.agreeContext("Recover", false)
		if err != nil {
			return 0, nil, nil, err
		}
		for _, rank := range r.failedRanks(failed) {
			if !slices.Contains(r.lost, rank) {
				r.lost = append(r.lost, rank)
			}
		}
		members, spares := refill(r.members, r.spares, failed)
		if r.tries++; len(members) == len(r.members) || !r.respawn || r.tries > maxReplacing {
			lost = slices.Sorted(slices.Values(r.lost))
			r.spares, r.lost, r.tries = spares, nil, 0
			return id, members, lost, nil
		}
		if err := r.replaceFailed(id, failed); err != nil {
			return 0, nil, nil, err
		}
	}
}

// Flags of the agreement on a joined job.
const (
	replacedAll = 1 << iota // all ranks have joined it
	mayReplace              // the launcher has not refused to start a process
)

// replaceFailed forms a joined job with processes in place of failed ranks. If that fails, another
// agreement on r.full decides what to do.
func (r *recovery) replaceFailed(id uint32, failed ft.Set) error {
	survivors := r.full.survivors(failed)
	alive := r.full.sub(id, listOf(survivors), "recover.alive")
	p := r.planReplacing(survivors, failed)
	u, refused, err := alive.joinReplacements(p)
	flag := uint64(mayReplace)
	switch {
	case err == nil:
		flag |= replacedAll
	case refused:
		flag = 0
	}
	if err != nil {
		alive.e.Revoke(alive.co.Ctx) // others may wait for this rank
	}
	v, agreeErr := r.full.agreeAlive(engine.NoContext, "Recover", flag, 0)
	_ = alive.free()
	if v.Flag&replacedAll == 0 || agreeErr != nil {
		r.respawn = v.Flag&mayReplace != 0
		if u != nil {
			u.abandon()
		}
		if p.Token != "" {
			for _, name := range p.Names[p.Alive:] {
				_, _ = alive.w.requestLauncher(context.Background(), pmi.JobRequest{Withdrawn: name.Job})
			}
		}
		return agreeErr
	}
	u.replaceStale(r.full.w)
	r.full, r.members, r.spares = u.comm, p.Members, nil
	return nil
}

// planReplacing decides who is which rank of the joined job: first those that are alive, in their
// order, then one for each rank that has failed and has no spare.
func (r *recovery) planReplacing(survivors []int, failed ft.Set) *replacing {
	p := &replacing{
		Alive: len(survivors), Generation: r.full.w.joins.generation + 1,
		Attempt: r.attempt.Number, Lost: r.lost, Idle: r.idle, Tries: r.tries,
	}
	for _, s := range survivors {
		p.Names = append(p.Names, r.full.w.nameOf(s))
	}
	spares := slices.DeleteFunc(slices.Clone(r.spares), func(s int) bool { return failed.Has(int32(s)) })
	for _, m := range r.members {
		if failed.Has(int32(m)) {
			if len(spares) == 0 {
				p.Members = append(p.Members, p.Alive+len(p.dead))
				p.dead = append(p.dead, r.full.w.nameOf(m))
				continue
			}
			m, spares = spares[0], spares[1:]
		}
		at, _ := slices.BinarySearch(survivors, m)
		p.Members = append(p.Members, at)
	}
	return p
}

// nameOf returns how the launcher knows a rank of w.
func (w *World) nameOf(rank int) pmi.RankRef {
	if w.joins.names != nil {
		return w.joins.names[rank]
	}
	return pmi.RankRef{Rank: rank}
}

// joinReplacements makes the launcher start processes, and forms a joined job of c and them.
// refused reports that the launcher has not started them.
func (c *Comm) joinReplacements(p *replacing) (u *World, refused bool, err error) {
	const op = "Recover"
	m, token, err := c.openRendezvous(op)
	if err != nil {
		return nil, false, err
	}
	if m != nil {
		defer m.Close()
	}
	v, err := pmi.ParseJoinToken(token)
	if err != nil {
		return nil, false, err
	}
	p.Token = token
	for i := range p.dead {
		p.Names = append(p.Names, pmi.RankRef{Job: v.Key[:10] + "." + strconv.Itoa(i)})
	}
	if c.rank == 0 {
		err = c.w.requestReplacements(p)
	}
	if _, err = c.shareText(ErrSpawn, op, "", err, 0); err != nil {
		return nil, errors.Is(err, ErrSpawn), err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go c.watchSurvivors(ctx, p, cancel)
	if u, err = c.w.joinWorld(ctx, &joinPlan{sizes: [2]int{p.Alive, len(p.dead)}, tolerant: true,
		come: func(ctx context.Context, size int, terms pmi.Terms) (pmi.Client, error) {
			if m == nil {
				return v.Join(ctx, c.rank, size, terms)
			}
			return m.Gather(ctx, size, terms)
		}}); err != nil {
		return nil, false, err
	}
	return u, false, u.beginGeneration(p)
}

func (w *World) requestReplacements(p *replacing) error {
	for i, dead := range p.dead {
		one := *p
		one.Index = i
		text, err := json.Marshal(one)
		if err == nil {
			_, err = w.requestLauncher(context.Background(), pmi.JobRequest{
				Replace: &pmi.ReplaceRequest{Name: p.Names[p.Alive+i].Job, For: dead, Parent: replacingPrefix + string(text)}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watchSurvivors cancels a rendezvous to which not all will come, because a rank of c has failed
// since, or a replacement has ended.
func (c *Comm) watchSurvivors(ctx context.Context, p *replacing, cancel context.CancelCauseFunc) {
	const often, rarely = 5 * time.Millisecond, 100 * time.Millisecond
	board := c.w.client.Board()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(often):
		}
		for r := range c.size {
			if d, dead := board.Dead(c.world(r)); dead {
				cancel(fmt.Errorf("rank %d has failed: %s", r, d.Status))
				return
			}
		}
		if c.rank != 0 || time.Since(began) < rarely {
			continue
		}
		began = time.Now()
		for _, name := range p.Names[p.Alive:] {
			// Not with ctx: a request that is given up breaks the connection to the launcher.
			a, err := c.w.requestLauncher(context.Background(), pmi.JobRequest{Replaced: name.Job})
			if err != nil || a.Ended {
				cancel(fmt.Errorf("a process started in place of a failed rank has ended: %s", a.Why))
				return
			}
		}
	}
}

// beginGeneration begins the part of a joined job in recovery. The ranks exchange their addresses,
// because rank 0, from which they would get them when they need them, may fail.
func (u *World) beginGeneration(p *replacing) error {
	u.joins.names, u.joins.generation = p.Names, p.Generation
	ctx, cancel := context.WithCancel(context.Background())
	u.joins.unfollow = cancel
	hint := make(chan struct{}, 1)
	if n, ok := onHost(u.client).(pmi.Notified); ok {
		n.OnNotice(func() {
			select {
			case hint <- struct{}{}:
			default:
			}
		})
	}
	go u.readFailures(ctx, hint)
	cards, err := allgatherValue(u.comm, "Recover", u.e.Card())
	if err == nil {
		u.e.SetCards(cards)
	}
	return err
}

func (w *World) stopFollowing() {
	if w.joins.unfollow != nil {
		w.joins.unfollow()
	}
}

// Intervals at which a rank asks for failures: after a hint, which the launcher may get later, and else.
// It looks at the board of its own job in between.
const (
	failuresSoon  = 20 * time.Millisecond
	failuresLater = time.Second
	failuresHint  = 3 * time.Second // how long a hint counts
)

// readFailures writes the failures of ranks that the launcher knows to the board of a joined job.
func (u *World) readFailures(ctx context.Context, hint <-chan struct{}) {
	home := u.base()
	next, seen := 0, uint32(0)
	var hinted, asked time.Time
	tick := time.NewTicker(failuresSoon)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hint:
			hinted = time.Now()
		case <-tick.C:
		}
		now := time.Now()
		if n := home.client.Board().Deaths(); n != seen {
			seen, hinted = n, now
		}
		if now.Sub(hinted) > failuresHint && now.Sub(asked) < failuresLater {
			continue
		}
		asked = now
		for more := true; more; {
			a, err := home.requestLauncher(context.Background(), pmi.JobRequest{Failures: &pmi.FailuresRequest{From: next}})
			if err != nil {
				return // this process leaves its job, or the launcher is gone
			}
			next += len(a.Failures)
			more = len(a.Failures) == pmi.MaxFailures
			for _, f := range a.Failures {
				if rank := slices.Index(u.joins.names, f.RankRef); rank >= 0 {
					u.client.Board().MarkDead(pmi.Death{Rank: rank, Host: f.Host, Status: f.Status})
				}
			}
		}
	}
}

// replaceStale leaves the joined job before the one before this: nobody needs it for an agreement any
// more, because all ranks have agreed on before since, and have joined this one.
func (u *World) replaceStale(before *World) {
	home := u.base()
	home.joins.mu.Lock()
	list := slices.Clone(home.joins.worlds)
	home.joins.mu.Unlock()
	for _, old := range list {
		if old.joins.stale {
			old.abandon()
		}
	}
	before.joins.stale = before != home
	k := &home.checkpoints
	k.mu.Lock()
	k.on, k.over = nil, nil
	k.mu.Unlock()
}

// joinSurvivors makes this process a replacement: it joins the ranks that have started it.
func (w *World) joinSurvivors(ctx context.Context, plan string) error {
	p := &replacing{}
	if err := json.Unmarshal([]byte(plan), p); err != nil || p.Alive < 1 || p.Alive+p.Index >= len(p.Names) {
		return fmt.Errorf("mpi: %s is not that of a process in place of a failed rank; only the launcher sets it", pmi.EnvParent)
	}
	v, err := pmi.ParseJoinToken(p.Token)
	if err != nil {
		return err
	}
	p.world, err = w.joinWorld(ctx, &joinPlan{sizes: [2]int{p.Alive, len(p.Names) - p.Alive}, second: true, tolerant: true,
		come: func(ctx context.Context, size int, terms pmi.Terms) (pmi.Client, error) {
			return v.Join(ctx, p.Alive+p.Index, size, terms)
		}})
	if err != nil {
		return fmt.Errorf("mpi: join the ranks that are alive: %w", err)
	}
	if err := p.world.beginGeneration(p); err != nil {
		return fmt.Errorf("mpi: join the ranks that are alive: %w", err)
	}
	w.joins.replaces = p
	w.user = &Comm{w: w, e: w.e, ctx: worldContext, rank: Undefined, name: engine.NewName("world"), freed: true}
	return nil
}

// recovery returns the state of Recover of a replacement, in which r is changed.
func (p *replacing) recovery(r *recovery) *recovery {
	r.full, r.comm, r.first = p.world.comm, nil, nil
	r.members, r.lost, r.idle, r.tries = p.Members, p.Lost, p.Idle, p.Tries
	r.attempt.Number, r.joining = p.Attempt, true
	return r
}
