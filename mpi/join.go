package mpi

// Jobs that are joined (MPI-4.1 chapter 11). The ranks of two jobs that join form a third one, the
// joined job: its ranks are those of the first group and then those of the second. They meet as
// the ranks of a job without a launcher do (internal/pmi, rendezvous_jobs.go) and open devices as in any
// start, so shared memory, networks, encryption and the report of deaths are the same. The
// inter-communicator that the program gets is one of the joined job, and so is what is made of it.
//
//	joinJob     meets the others, opens the devices, creates the inter-communicator
//	Disconnect  leaves the joined job with its last communicator; Finalize leaves what is left
//
// A process then has several engines. Each makes the progress of the others while it waits
// (internal/engine, beside.go), and fails alone: the death of a rank of another job breaks only
// what is shared with that job.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
)

// joins is the relation of a World to those of joined jobs.
type joins struct {
	mu     sync.Mutex
	worlds []*World // of joined jobs that the process takes part in
	parent *Comm    // to the ranks that have spawned this job
	ports  ports

	// In the World of a joined job:
	home  *World       // that of the process's own job
	comms atomic.Int32 // communicators that have not been freed, with that of all ranks
	// With replacements of failed ranks (respawn.go):
	replaces   *replacing // this process is a replacement; in the World of its own job
	generation uint32     // how often failed ranks have been replaced before
	names      []pmi.RankRef
	unfollow   context.CancelFunc // ends the reading of failures
	stale      bool               // a later joined job has taken the place of this one
}

// base returns the World of the process's own job.
func (w *World) base() *World {
	if w.joins.home != nil {
		return w.joins.home
	}
	return w
}

// Parent returns the inter-communicator to the ranks that have spawned the job of c with
// [Comm.Spawn], and nil if the job was started in another way.
func Parent(c *Comm) *Comm { return c.w.base().joins.parent }

// ofJoined returns the configuration for a joined job: what watches the program, or writes
// files, does so for the process's own job alone, and the joined job ends with its first failure.
func (c Config) ofJoined() Config {
	c.Profile, c.Trace, c.PProf, c.Metrics, c.OnFailure = "", "", "", 0, ""
	return c
}

// joinPlan is how a process meets the others of a joined job.
type joinPlan struct {
	sizes    [2]int // of the two groups
	second   bool   // this process is in the second
	tolerant bool   // the joined job survives failures
	// come returns the client of the joined job.
	come func(ctx context.Context, size int, terms pmi.Terms) (pmi.Client, error)
}

// joinJob forms a job with another group and returns the inter-communicator of both.
func (w *World) joinJob(ctx context.Context, op string, m *joinPlan) (*Comm, error) {
	u, err := w.joinWorld(ctx, m)
	if err != nil {
		return nil, err
	}
	c, err := u.connectGroups(op, m)
	if err != nil {
		u.abandon()
		return nil, err
	}
	return c, nil
}

// joinWorld forms a job with another group.
func (w *World) joinWorld(ctx context.Context, m *joinPlan) (*World, error) {
	home := w.base()
	if home.finalized.Load() {
		return nil, errors.New("the rank has left its job")
	}
	cfg := home.cfg.ofJoined()
	if m.tolerant {
		cfg.OnFailure = onFailureReturn
	}
	if cfg.StartTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.StartTimeout)
		defer cancel()
	}
	client, err := m.come(ctx, m.sizes[0]+m.sizes[1], cfg.terms())
	if err != nil {
		return nil, err
	}
	u, err := join(ctx, cfg, declaring(separateRanks(client), cfg.terms()), nil)
	if err != nil {
		client.Abort(1, err.Error()) // the others do not wait for this rank
		go client.Close()
		return nil, err
	}
	u.joins.home = home
	home.joins.change(home.e, func(list []*World) []*World { return append(list, u) })
	return u, nil
}

// openRendezvous makes rank 0 of c open a rendezvous, which it must close, and returns the join token
// to all ranks.
func (c *Comm) openRendezvous(op string) (m *pmi.Rendezvous, text string, err error) {
	if c.rank == 0 {
		if m, err = pmi.OpenRendezvous(); err == nil {
			text = m.String()
		}
	}
	if text, err = c.shareText(ErrIntern, op, text, err, 0); err != nil && m != nil {
		m.Close()
	}
	return m, text, err
}

// hostJoin joins a group that begin, which rank root calls with the join token, finds: its size,
// and the number of its job if the launcher has started one for this call.
func (c *Comm) hostJoin(ctx context.Context, op string, class Class, root int, begin func(token string) (job, size int, err error)) (*Comm, error) {
	m, token, err := c.openRendezvous(op)
	if err != nil {
		return nil, err
	}
	if m != nil {
		defer m.Close()
	}
	var job, size int
	if c.rank == root {
		job, size, err = begin(token)
	}
	found, err := c.shareText(class, op, fmt.Sprint(job, size), err, root)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Sscan(found, &job, &size); err != nil {
		return nil, c.refuse(ErrIntern, op, "rank %d sent %q: %w", root, found, err)
	}
	var watch func(context.Context, context.CancelCauseFunc)
	if job > 0 {
		watch = func(ctx context.Context, cancel context.CancelCauseFunc) { c.w.watchJob(ctx, job, cancel) }
	}
	return c.meet(ctx, op, class, &joinPlan{sizes: [2]int{c.size, size}}, m, token, watch)
}

// meet joins another group in a rendezvous. m is the rendezvous at the rank that has opened it, and
// watch a function that runs there meanwhile, or nil.
func (c *Comm) meet(ctx context.Context, op string, class Class, g *joinPlan, m *pmi.Rendezvous, text string, watch func(context.Context, context.CancelCauseFunc)) (*Comm, error) {
	v, err := pmi.ParseJoinToken(text)
	if err != nil {
		return nil, c.refuse(ErrIntern, op, "%w", err)
	}
	first := 0
	if g.second {
		first = g.sizes[0]
	}
	g.come = func(ctx context.Context, size int, terms pmi.Terms) (pmi.Client, error) {
		if m == nil {
			return v.Join(ctx, first+c.rank, size, terms)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if watch != nil {
			go watch(ctx, cancel)
		}
		client, err := m.Gather(ctx, size, terms)
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSpawnEnded) {
			err = cause
		}
		return client, err
	}
	d, err := c.w.joinJob(ctx, op, g)
	if err != nil {
		return nil, c.refuse(class, op, "%w", err)
	}
	return d, nil
}

// connectGroups returns the inter-communicator of the two groups of a joined job.
func (w *World) connectGroups(op string, m *joinPlan) (*Comm, error) {
	id, err := w.comm.agree(op)
	if err != nil {
		return nil, err
	}
	ranks := make([]int32, w.comm.size)
	for i := range ranks {
		ranks[i] = int32(i)
	}
	g := &interGroups{sizes: m.sizes, second: m.second, both: w.comm.amongWorld(id, ranks, "joined.both")}
	return g.join(op, "joined")
}

// change changes the list of joined jobs, and which engines drive each other.
func (j *joins) change(home *engine.Engine, by func([]*World) []*World) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.worlds
	j.worlds = by(slices.Clone(before))
	all := []*engine.Engine{home}
	for _, u := range j.worlds {
		all = append(all, u.e)
	}
	for i, e := range all {
		e.SetBeside(slices.Delete(slices.Clone(all), i, i+1))
	}
	for _, u := range before {
		if !slices.Contains(j.worlds, u) {
			u.e.SetBeside(nil)
		}
	}
}

// forget removes a joined job from those of the process.
func (w *World) forget() {
	home := w.joins.home
	home.joins.change(home.e, func(list []*World) []*World {
		return slices.DeleteFunc(list, func(u *World) bool { return u == w })
	})
}

// leave leaves a joined job: with all others, or at once if it has failed.
func (w *World) leave() error {
	if w.joins.stale || !w.e.Tolerates() && w.e.CheckComm(w.comm.co.Ctx) != nil {
		w.abandon()
		return nil
	}
	err := w.Finalize()
	w.stopFollowing()
	w.forget()
	if err != nil {
		w.close()
	}
	return err
}

// abandon leaves a joined job that has failed, without the others.
func (w *World) abandon() {
	w.stopFollowing()
	w.forget()
	if w.finalized.CompareAndSwap(false, true) {
		w.close()
	}
}

// close closes the devices and the connections without a word to the others, which may have
// failed; rank 0 of the joined job waits for their connections to end.
func (w *World) close() {
	w.e.StopThread()
	_ = w.e.Close()
	go w.client.Close()
}

// leaveJoined leaves the joined jobs that are left when the process leaves its own. Other
// processes may leave theirs in another order, so all are left at once.
func (w *World) leaveJoined() error {
	w.joins.mu.Lock()
	list := slices.Clone(w.joins.worlds)
	w.joins.mu.Unlock()
	w.joins.ports.closeAll()
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, u := range list {
		all.Go(func() { errs[i] = u.leave() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// checkJoin checks the arguments of calls that join another job.
func (c *Comm) checkJoin(op string, root int) error {
	if err := c.intra(op); err != nil {
		return err
	}
	return c.checkRoot(op, root)
}

// Disconnect waits until all communication on c is complete on all of its ranks, of both groups,
// and frees it. With the last communicator to the ranks of another job, from [Comm.Spawn], [Comm.Accept]
// or [Comm.Connect] or derived from such a one, the jobs are independent again: from then on neither waits for the
// other, and its memory, descriptors and connections are released. After the failure of a rank
// Disconnect does not wait.
func (c *Comm) Disconnect() error {
	h := c.beginCreate("Disconnect", CallFree)
	return h.finish(c.disconnect())
}

func (c *Comm) disconnect() error {
	const op = "Disconnect"
	if err := c.usable(op); err != nil {
		return err
	}
	u, all := c.w, c
	if c.inter != nil {
		all = c.inter.both
	}
	if u.joins.home == nil || all.size < u.comm.size {
		if err := all.barrier(op); err != nil {
			return err
		}
		return c.free()
	}
	own := int32(2) // that of all ranks, and this one
	if c.inter != nil {
		own = 3
	}
	last := []int32{1}
	if u.joins.comms.Load() > own {
		last[0] = 0
	}
	if err := allreduce(all, op, last, last, Min[int32]); err != nil {
		u.abandon()
		return nil // a failed rank has disconnected, and the others cannot wait for it
	}
	if err := c.free(); err != nil || last[0] == 0 {
		return err
	}
	return u.leave()
}

// shareText broadcasts a text of one rank, or its error, which all ranks return then.
func (c *Comm) shareText(class Class, op, text string, err error, from int) (string, error) {
	head := []int64{int64(len(text)), 0}
	if err != nil {
		text = err.Error()
		head = []int64{int64(len(text)), 1}
	}
	if err := c.bcast(op, rawBytes(head), from); err != nil {
		return "", err
	}
	b := make([]byte, head[0])
	copy(b, text)
	if err := c.bcast(op, b, from); err != nil {
		return "", err
	}
	if head[1] != 0 {
		if c.rank != from {
			err = fmt.Errorf("rank %d: %s", from, b)
		}
		return "", c.refuse(class, op, "%w", err)
	}
	return string(b), nil
}

// meetParents joins the ranks that have spawned this job, if any have.
func (w *World) meetParents(ctx context.Context) (err error) {
	text := os.Getenv(pmi.EnvParent)
	if text == "" {
		return nil
	}
	if plan, ok := strings.CutPrefix(text, replacingPrefix); ok {
		return w.joinSurvivors(ctx, plan)
	}
	number, rest, _ := strings.Cut(text, ":")
	parents, err := strconv.Atoi(number)
	if err != nil || parents < 1 {
		return fmt.Errorf("mpi: %s has no number of ranks; only Spawn sets it", pmi.EnvParent)
	}
	v, err := pmi.ParseJoinToken(rest)
	if err != nil {
		return err
	}
	w.joins.parent, err = w.joinJob(ctx, "Init", &joinPlan{sizes: [2]int{parents, w.comm.size}, second: true,
		come: func(ctx context.Context, size int, terms pmi.Terms) (pmi.Client, error) {
			return v.Join(ctx, parents+w.comm.rank, size, terms)
		}})
	if err != nil {
		return fmt.Errorf("mpi: join the ranks that have spawned this job: %w", err)
	}
	return nil
}

// waitSomeOfJobs is waitSome for requests of several jobs: no device wakes a waiter for all.
func (c *Comm) waitSomeOfJobs(ctx context.Context, reqs []Request, need int) error {
	const longest = 200 * time.Microsecond
	for pause := time.Microsecond; ; pause = min(2*pause, longest) {
		ended := 0
		for _, r := range reqs {
			if r.Done() {
				ended++
			}
		}
		if ended >= need {
			return nil
		}
		if ctx != nil && ctx.Err() != nil {
			return c.refuse(ErrPending, "Wait", "%w", engine.GaveUp(ctx))
		}
		time.Sleep(pause)
	}
}
