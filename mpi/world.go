package mpi

// Start and end of a rank.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/nodecoll"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/internal/rankset"
	"github.com/muster-mpi/muster/internal/settings"
	"github.com/muster-mpi/muster/prof"
)

// World is the membership of one rank in a job, from Init to Finalize.
type World struct {
	e      *engine.Engine
	client pmi.Client
	cfg    Config
	types  typeCheck
	watch  watch
	comm   *Comm // all processes of the job
	user   *Comm // what the program sees as the world: without the spares
	self   func() *Comm
	tuning *coll.Tuning // measured choice of algorithms; nil: none
	site   site         // for the choice of algorithms

	ids         contextIDs
	buffered    atomic.Int64   // bytes that Bsend has buffered
	background  sync.WaitGroup // goroutines of Bsend and Idup
	partitions  atomic.Uint32  // partitions that PsendInit has prepared
	memory      allocations
	checkpoints checkpoints
	nodes       *nodecoll.Host // of ranks that are goroutines; else nil
	teams       teamList
	check       checks // check mode
	gates       uint64 // barriers through the board of the job
	finalized   atomic.Bool
	spares      int       // processes at the end of comm that wait in Recover
	recovered   *recovery // of Recover on the world; nil before its first call
	windows     windowOptions
	joins       joins
}

// watch is what observes the calls of a rank.
type watch struct {
	on        bool // there are hooks or a profile of calls
	hooks     []Hook
	spareCall atomic.Pointer[hookedCall]
	profile   profile
	recorder  *recorder    // of arrivals at collectives; nil without such a profile
	tracer    *tracer      // of calls; nil without a trace
	calls     *callProfile // of calls; nil without a profile
	clock     *prof.Clock  // of recorder and tracer
	// stopProfile ends the CPU profile, and stopMetrics the publication of counters.
	stopProfile func() error
	stopMetrics func()
}

// windowOptions are set by tests.
type windowOptions struct {
	apart     bool // ranks do not map each other's window memory
	keysOnUse bool // windows request keys on first use, as those of many ranks do
}

// Main runs a rank: it joins the job, calls fn with the communicator of all ranks,
// leaves the job and ends the process. If fn returns an error or panics, Main prints
// the reason and ends the process with a nonzero status; the launcher then makes the
// calls of all other ranks return an error that names this rank.
func Main(fn func(world *Comm) error, options ...Option) {
	s := start{ctx: context.Background()}
	for _, o := range options {
		o(&s)
	}
	w, err := Init(s.ctx, s.cfg)
	if err != nil {
		fmt.Fprintln(os.Stderr, "muster:", err)
		os.Exit(1)
	}
	if err := w.run(fn); err != nil {
		w.checkSpare(err)
		err = errors.Join(err, w.watch.stopProfile())
		w.noProfile(errors.New("this rank has failed"))
		fmt.Fprintf(os.Stderr, "muster: rank %d: %v\n", w.comm.rank, err)
		os.Exit(1)
	}
	if err := w.Finalize(); err != nil {
		fmt.Fprintf(os.Stderr, "muster: rank %d: %v\n", w.comm.rank, err)
		os.Exit(1)
	}
}

// Option changes how [Main] joins the job: see [Init].
type Option func(*start)

type start struct {
	ctx context.Context
	cfg *Config
}

// WithConfig is an [Option]: the configuration, instead of that of the environment.
func WithConfig(cfg *Config) Option { return func(s *start) { s.cfg = cfg } }

// WithContext is an [Option]: joining the job fails when ctx ends.
func WithContext(ctx context.Context) Option { return func(s *start) { s.ctx = ctx } }

// run calls fn and converts a panic to an error with the stack.
func (w *World) run(fn func(world *Comm) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n\n%s", p, debug.Stack())
		}
	}()
	return fn(w.user)
}

// Init joins the job that this process was started for. If the process was started
// alone, the job has one rank. If cfg is nil, Init reads the configuration from the
// environment.
//
// Init sets GOMAXPROCS. If several ranks run on the host, it divides the number by them, unless
// the environment has a variable GOMAXPROCS, as under muster run. If the rank has a progress
// thread from the start (Config.Progress, or a network in software), it adds one for that.
// A window whose memory ranks do not share raises the number to 2. A program that needs another
// number calls runtime.GOMAXPROCS after Init and after it has created its windows: nothing else
// changes it.
func Init(ctx context.Context, cfg *Config) (*World, error) {
	if cfg == nil {
		env, err := ConfigFromEnv(os.Environ())
		if err != nil {
			return nil, err
		}
		cfg = env
	}
	if job := pmi.JobName(os.Getenv); job != "" {
		if _, before := joined.LoadOrStore(job, true); before {
			return nil, &Error{Class: ErrOther, Op: "Init", Peer: ProcNull, Tag: noTag,
				Err:  errors.New("this process has joined its job before"),
				Hint: "call Init or Main once, and pass the World or a Comm to the code that needs it"}
		}
	}
	client, err := openClient(ctx, cfg)
	if err != nil {
		return nil, err
	}
	setProcs(client.LocalSize(), cfg.Progress == progressAsync || goesBySoftware(cfg, client))
	stop, err := startCPUProfile(cfg.PProf, client.Rank())
	if err != nil {
		return nil, err
	}
	w, err := join(ctx, *cfg, client, nil)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	w.watch.stopProfile = stop
	if err := w.reserveSpares(os.Getenv(pmi.EnvSpares)); err != nil {
		return w, err
	}
	return w, w.meetParents(ctx)
}

// joined has the names of the jobs that this process has joined: the connection to a
// launcher cannot be used twice. Most processes join only the job that they were started
// for.
var joined sync.Map

// openClient joins the job. A StartTimeout of 0 leaves the limit to package pmi.
func openClient(ctx context.Context, cfg *Config) (pmi.Client, error) {
	if cfg.StartTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.StartTimeout)
		defer cancel()
	}
	terms := cfg.terms()
	client, err := pmi.Open(ctx, os.Getenv, terms)
	if err != nil {
		return nil, err
	}
	return separateRanks(declaring(client, terms)), nil
}

// Local starts a job of n ranks inside this process, for tests and for programs whose
// ranks are goroutines. It returns the World of each rank.
func Local(n int, cfg *Config) ([]*World, error) {
	if n < 1 {
		return nil, &Error{Class: ErrArg, Op: "Local", Peer: ProcNull, Tag: noTag, Err: fmt.Errorf("a job needs at least one rank, not %d", n)}
	}
	if cfg == nil {
		cfg = &Config{}
	}
	var (
		host    = newHost()
		clients = pmi.NewLocal(n)
		worlds  = make([]*World, n)
		errs    = make([]error, n)
		wg      sync.WaitGroup
	)
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			worlds[i], errs[i] = join(context.Background(), *cfg, clients[i], host)
		}()
	}
	wg.Wait()
	return worlds, errors.Join(errs...)
}

// failLocal marks a rank that Local has made as failed. The calls of the others
// return an error that names it.
func failLocal(worlds []*World, rank int, why string) {
	// The board comes first: a rank that is notified ends its operations, and the ranks
	// that exchanged data with it look for the cause there.
	dead := worlds[rank].client
	dead.Board().MarkDead(pmi.Death{Rank: rank, Host: dead.Host(), Status: why})
	if worlds[rank].e.Tolerates() {
		return // the others find it on the board
	}
	for i, w := range worlds {
		if i != rank {
			w.e.Fail(&engine.PeerDeadError{Rank: rank, Host: w.client.Host(), Cause: why})
		}
	}
}

func join(ctx context.Context, cfg Config, client pmi.Client, host *localHost) (*World, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	settings.SetDefaults(&cfg)
	if err := checkOnFailure(&cfg, client); err != nil {
		return nil, err
	}
	profile, err := openProfile(&cfg, client.Rank())
	if err != nil {
		return nil, err
	}
	tracer, err := openTrace(&cfg, client.Rank(), host != nil)
	if err != nil {
		return nil, err
	}
	lanes, oversubscribed, err := openDevices(&cfg, client, host)
	if err != nil {
		return nil, err
	}
	w, err := joinOver(ctx, cfg, client, lanes, oversubscribed, host != nil)
	if err != nil {
		return nil, err
	}
	w.watch.profile, w.watch.recorder, w.watch.tracer = profile, profile.recorder, tracer
	if host != nil {
		w.nodes = host.nodes
	}
	if profile.on && w.watch.recorder == nil {
		w.watch.calls = newCallProfile()
		w.observe()
	}
	if w.watch.tracer != nil {
		w.watch.clock = w.watch.tracer.clock
		w.setHooks(w.watch.tracer)
		w.e.Watch(&w.watch.tracer.phases)
		if client.LocalSize() < client.Size() {
			w.watch.tracer.phases.retransmitted = w.e.Retransmissions
		}
	}
	if w.watch.recorder != nil {
		w.watch.clock = w.watch.recorder.clock
		if w.watch.tracer != nil {
			w.watch.tracer.clock, w.watch.tracer.phases.clock = w.watch.clock, w.watch.clock
		}
	}
	if w.watch.clock != nil {
		if err := w.compareClocks(&w.watch.profile.clock.At, &w.watch.profile.clock.Add); err != nil {
			return nil, err
		}
	}
	w.watch.stopMetrics = w.startMetrics(cfg.Metrics)
	return w, nil
}

// joinOver is join with open devices. If it fails, it has closed them.
func joinOver(ctx context.Context, cfg Config, client pmi.Client, lanes []engine.LaneConfig, oversubscribed, inProcess bool) (*World, error) {
	tuning, err := readTuning(&cfg)
	if err == nil {
		err = publishSite(&cfg, client, lanes, oversubscribed)
	}
	if err != nil {
		for _, l := range lanes {
			err = errors.Join(err, l.Device.Close())
		}
		return nil, err
	}
	e, err := engine.New(ctx, engine.Config{
		Client: client, Lanes: lanes, Oversubscribed: oversubscribed, InProcess: inProcess, Async: cfg.Progress == progressAsync,
		P2P:           p2p.Config{EagerLimit: cfg.EagerLimit, Rendezvous: cfg.Advanced.Rendezvous, Credit: cfg.Advanced.Credit, Senders: client.Size() - 1, Speculate: cfg.Advanced.Speculate},
		RegisterCache: cfg.Advanced.RegisterCache, Frequent: cfg.Advanced.Frequent, Rings: cfg.rings(), Posted: cfg.Advanced.Eager == eagerPosted,
		Spin: cfg.Advanced.Spin, Yield: cfg.Advanced.Yield, Timeout: cfg.StartTimeout, Tolerate: cfg.OnFailure == onFailureReturn, Orphaned: orphanHandler(client.Rank(), inProcess),
		ShowWaits: cfg.Metrics != 0,
	})
	if err != nil {
		return nil, err
	}
	w := &World{e: e, client: client, cfg: cfg, tuning: tuning,
		watch: watch{stopProfile: func() error { return nil }, stopMetrics: func() {}}}
	w.types.slow = cfg.Check
	w.setHooks(cfg.Hook)
	if w.site, err = fetchSite(ctx, client); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	w.ids.next = firstFreeContext
	w.comm = (&Comm{w: w, e: e, ctx: worldContext, rank: client.Rank(), size: client.Size(), name: engine.NewName("world")}).ready()
	w.user = w.comm
	w.self = sync.OnceValue(func() *Comm {
		return w.comm.sub(selfContext, rankset.Sequence(1, w.comm.rank, 1), "self")
	})
	return w, nil
}

// orphanDelay is how long a rank may run on without its launcher, so that its calls can
// return errors and the program can save its data.
const orphanDelay = 500 * time.Millisecond

// orphanHandler returns a function that ends the process of a rank whose launcher has died.
// The kernel ends only processes that the launcher started itself; a rank below a shell, or
// on another host, would compute forever without use. Ranks that are goroutines have no
// launcher.
func orphanHandler(rank int, inProcess bool) func(error) {
	if inProcess {
		return nil
	}
	return func(err error) {
		time.Sleep(orphanDelay)
		fmt.Fprintf(os.Stderr, "muster: rank %d (pid %d): %v; this process ends now\n", rank, os.Getpid(), err)
		os.Exit(1)
	}
}

// setProcs sets GOMAXPROCS to this process's share of the cores, unless the user or the
// launcher has set it. Without it, every rank would run as many threads as the machine
// has cores. The progress thread gets one P more, which it keeps while a transfer is under
// way: without it, it would run only when the runtime preempts a goroutine, after ten
// milliseconds, and with one of the others the program would have fewer than were set.
func setProcs(ranks int, thread bool) {
	if _, set := os.LookupEnv("GOMAXPROCS"); !set && ranks >= 2 {
		runtime.GOMAXPROCS(max(1, runtime.GOMAXPROCS(0)/ranks))
	}
	if thread {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

// Comm returns the communicator of all ranks of the job.
func (w *World) Comm() *Comm { return w.user }

// Finalize leaves the job. It waits until all ranks have called it, so that no message
// is lost. All requests must have been completed.
func (w *World) Finalize() error {
	if !w.finalized.CompareAndSwap(false, true) {
		return w.comm.refuse(ErrOther, "Finalize", "the rank has left the job already")
	}
	defer w.e.StopThread() // also if it fails
	w.e.Finalizing()
	w.checkSpare(nil)
	w.background.Wait()
	unleft := w.leaveJoined()
	if w.cfg.Check {
		w.describeLeaving()
	}
	w.watch.stopMetrics()
	unwritten := errors.Join(unleft, w.report(), w.reportTrace(), w.watch.stopProfile())
	w.e.Leaving()
	var err error
	if w.e.Tolerates() {
		err = w.finalizeAlive()
	} else {
		err = w.comm.finalize()
	}
	if w.cfg.Check && err == nil && !w.e.Tolerates() {
		unwritten = errors.Join(unwritten, w.leftovers())
		err = w.comm.finalize()
	}
	w.e.Drain(w.drainTime())
	err = errors.Join(err, w.teams.leaveAll("the rank has left the job"))
	if err != nil {
		return err // the launcher must see that this rank did not leave in order
	}
	if w.client.LocalSize() < w.client.Size() && !w.e.Tolerates() {
		// Closing a connection discards the data that the peer has not read yet.
		if err := w.leaveTogether(); err != nil {
			return err
		}
	}
	if cerr := w.client.Close(); cerr != nil && (w.joins.home == nil || !w.e.Tolerates()) {
		err = cerr // the rank that serves a joined job may have failed
	}
	if cerr := w.e.Close(); cerr != nil && err == nil {
		err = cerr
	}
	return errors.Join(err, unwritten)
}

// drainTimeout is how long Finalize waits until the last messages have been sent.
const drainTimeout = 10 * time.Second

// drainTime is drainTimeout, or less if ranks have failed: messages to them are never sent,
// and the ranks that are alive need none any more when they have agreed to leave.
func (w *World) drainTime() time.Duration {
	if w.e.Tolerates() && len(w.comm.Failed()) > 0 {
		return farewell
	}
	return drainTimeout
}

// leaveTogether waits until all ranks have passed the last barrier.
func (w *World) leaveTogether() error {
	ctx, cancel := context.WithTimeout(context.Background(), w.e.Timeout())
	defer cancel()
	if err := w.client.Fence(ctx); err != nil {
		return w.comm.failure(fmt.Errorf("wait for the other ranks to leave: %w", err), "Finalize", ProcNull, noTag, 0)
	}
	return nil
}

// Abort ends all processes of the job, including this one, with an exit status.
func (w *World) Abort(code int, reason string) {
	_ = w.watch.stopProfile() // the reason for ending the job matters more
	w.client.Abort(code, reason)
	os.Exit(code)
}
