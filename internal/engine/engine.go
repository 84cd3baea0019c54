package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// Config of an Engine.
type Config struct {
	Client pmi.Client
	// Lanes are the devices, at least one; the first is polled most.
	Lanes []LaneConfig
	P2P   p2p.Config
	// Oversubscribed says that ranks of this host share cores.
	Oversubscribed bool
	// Spin is how many polls a waiter makes before it yields the core; Yield
	// how many times it yields before it parks. Zero: 1000 polls when every
	// rank has a core, 2 when ranks share cores; 500 yields (reportRun: an
	// early futex costs 5–7 µs; on a shared core, what is awaited is usually
	// computed by the rank that the yield lets run).
	Spin, Yield int
	// RegisterCache is how many bytes may stay registered after use, with devices
	// for which that is dear. Zero: the cache's own default. Negative: none.
	RegisterCache int64
	// Frequent says when short messages are sent from the user's buffer, with devices for
	// which that must be registered: FrequentAlways, FrequentNever, or when it pays.
	Frequent string
	// Rings is how many peers may have a ring to write their packets into, for each
	// device. Zero: none, all use the shared receive queue.
	Rings int
	// Posted makes the rank post receive buffers of its own, also with devices that lend
	// theirs (buffers.go). Those that cannot take any lend all the same.
	Posted bool
	// InProcess says that the ranks are goroutines of this process, so that a
	// waiter must give way to goroutines rather than to threads.
	InProcess bool
	// Async leaves a deputy in the library while the application computes, see
	// deputy.go.
	Async bool
	// Orphaned, if not nil, is called when the launcher is gone, after all calls of
	// this rank have been ended with an error.
	Orphaned func(error)
	// Timeout bounds each step of coming into contact with a peer. Default 60 s.
	Timeout time.Duration
}

// Engine is one rank.
type Engine struct {
	mu         spinLock
	m          *p2p.Machine
	home       lane    // the first
	lanes      []*lane // all of them
	cfg        Config
	client     pmi.Client
	board      *pmi.Board
	rank       int
	size       int
	spin       int
	yields     int
	last       *p2p.Link // the link used last
	links      map[int]*p2p.Link
	cards      int         // fetched
	blocked    []*p2p.Link // links with packets that the device would not take yet
	deaths     uint32      // deaths on the board that we know of
	failed     error
	alarm      atomic.Bool // failed is not nil, or will be at the next look
	deathTimer *time.Timer // see Alarm
	closed     bool
	leaving    bool
	comps      [pollBatch]rdma.Completion
	// ringWrite is a packet on its way into a ring.
	ringWrite [1]rdma.SendWR
	idleLooks int         // looks without result since the last one with
	scratch   []*p2p.Xfer // for WaitSome
	active    []*Collective
	broken    map[uint32]*BrokenError // contexts whose collectives have failed; nil: none
	comms     map[uint32]*Comm        // communicators that have made collective calls
	held      int                     // of these, that hold sends back until somebody arrives
	tmps      [][]byte                // scratch memory of collectives, free
	began     time.Time
	waited    waitTime

	collectives uint64 // that were begun
	aware       uint64 // of these, that serve first who has arrived
	overtaken   uint64 // sends of collectives that went before others, to peers that had arrived

	driver   *p2p.Waiter     // the goroutine that polls for all, if any
	parked   bool            // it is parked in the device
	sleepers *p2p.Waiter     // those who wait for it
	probers  int             // sleepers that probe
	waiters  *p2p.Waiter     // free ones
	thread   *progressThread // nil without Config.Async
	movers   []mover         // devices whose polls may move something without a completion
}

// pollBatch bounds how long one poll can hold the lock.
const pollBatch = 16

// timeSlice is how long a rank waits for its turn where ranks share cores, in nanoseconds. With
// 16 ranks on two cores that were all waiting it was 65 to 190 µs; with less to share it is less.
const timeSlice = 50_000

// cardKey is the name of a rank's address in the launcher's store.
const cardKey = "muster-card"

// New makes a rank of the job: it opens the queues of the device, publishes the
// address, and waits until every rank has done so.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 60 * time.Second
	}
	e := &Engine{
		cfg: cfg, client: cfg.Client, board: cfg.Client.Board(),
		rank: cfg.Client.Rank(), size: cfg.Client.Size(),
		spin: cfg.Spin, yields: cfg.Yield, links: make(map[int]*p2p.Link), began: time.Now(),
	}
	e.mu.shared = !canBias()
	if e.spin == 0 {
		e.spin = 1000
		if cfg.Oversubscribed {
			e.spin = 2
		}
	}
	if e.yields == 0 {
		e.yields = 500
	}
	if cfg.Oversubscribed && cfg.P2P.TimeSlice == 0 {
		cfg.P2P.TimeSlice = timeSlice
	}
	e.m = p2p.New(cfg.P2P, registrar{e})
	e.m.UseSources(registrar{e})
	if err := e.openLanes(); err != nil {
		return nil, err
	}
	if err := e.client.Put(cardKey, e.card()); err != nil {
		return nil, fmt.Errorf("publish the address of rank %d: %w", e.rank, err)
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	if err := e.client.Fence(ctx); err != nil {
		return nil, fmt.Errorf("wait for all %d ranks to start: %w", e.size, err)
	}
	e.board.Started(e.rank)
	e.client.Watch(e.clientFailed)
	if cfg.Async {
		e.startThread()
	}
	return e, nil
}

// Rank is this rank's number in the world.
func (e *Engine) Rank() int { return e.rank }

// Size is the number of ranks in the world.
func (e *Engine) Size() int { return e.size }

// Attr describes the device that carries messages to a rank of the world; Anyone
// stands for the device that carries most.
func (e *Engine) Attr(rank int) *rdma.Attr {
	if rank == Anyone {
		return e.home.attr
	}
	if d := e.laneTo(rank); d != nil {
		return d.attr
	}
	return e.home.attr
}

// Oversubscribed reports whether ranks of this host share cores.
func (e *Engine) Oversubscribed() bool { return e.cfg.Oversubscribed }

// Timeout is how long a step with the launcher may take.
func (e *Engine) Timeout() time.Duration { return e.cfg.Timeout }

// Client is the connection to the launcher.
func (e *Engine) Client() pmi.Client { return e.client }

// Links visits what is known of each peer that this rank has talked to.
func (e *Engine) Links(visit func(*p2p.Link)) {
	e.lock()
	defer e.unlock()
	for _, l := range e.links {
		visit(l)
	}
}

func (e *Engine) lock()   { e.mu.lock() }
func (e *Engine) unlock() { e.mu.unlock() }

// Drain waits until every packet has left.
func (e *Engine) Drain(timeout time.Duration) {
	deadline := time.Now().Add(timeout)
	for {
		e.lock()
		e.poll()
		left := (len(e.blocked) > 0 || e.pending() > 0) && e.failed == nil
		e.unlock()
		if !left || time.Now().After(deadline) {
			return
		}
		e.yieldCore(0)
	}
}

var errLeft = errors.New("this rank has left the job: Finalize was called")

// Close ends the rank. Nothing may be under way.
func (e *Engine) Close() error {
	e.lock()
	if e.closed {
		e.unlock()
		return nil
	}
	e.closed = true
	if e.deathTimer != nil {
		e.deathTimer.Stop()
	}
	e.fail(errLeft)
	e.unlock()
	e.stopThread()
	err := e.closeLanes()
	e.board.Left(e.rank)
	return err
}
