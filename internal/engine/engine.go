package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// Config configures an Engine.
type Config struct {
	Client pmi.Client
	// Lanes are the devices, at least one. The first one, home, is polled most often.
	Lanes []LaneConfig
	P2P   p2p.Config
	// Oversubscribed reports that ranks of this host share cores.
	Oversubscribed bool
	// Spin is the number of polls before a waiter yields the core, and Yield the
	// number of yields before it parks. The defaults are 1000 polls, 20 while a software
	// network is in use, or 2 if ranks share cores, and 500 yields. Measured: parking early in a futex costs 5–7 µs,
	// and on a shared core the awaited message usually comes from the rank that the
	// yield schedules. On devices with rdma.Attr.WaitEarly the defaults are 1 poll and
	// no yield.
	Spin, Yield int
	// RegisterCache is the number of bytes that may stay registered after use, on
	// devices where registration is expensive. Zero is the cache's default; negative
	// disables the cache.
	RegisterCache int64
	// Frequent selects when short messages are sent from the user's buffer on devices
	// that need it registered: FrequentAlways, FrequentNever, or, if empty, when the
	// cost model predicts a gain.
	Frequent string
	// Rings is the number of peers per device that may have a ring to write their
	// packets into. Zero: all peers use the shared receive queue.
	Rings int
	// Posted makes the rank post its own receive buffers, also on devices that lend
	// theirs (buffers.go). Devices that do not support posted buffers lend anyway.
	Posted bool
	// InProcess reports that the ranks are goroutines of this process. A waiter then
	// yields to goroutines instead of threads.
	InProcess bool
	// ShowWaits records on the board what a rank waits for when it yields for the first time,
	// not when it parks: ranks that share cores seldom park, and muster top shows their calls.
	ShowWaits bool
	// Async starts the progress thread, which completes large transfers while the
	// application computes (progress_thread.go).
	Async bool
	// Orphaned, if not nil, is called when the connection to the launcher is lost,
	// after all calls of this rank have failed.
	Orphaned func(error)
	// Tolerate makes the job survive failures: only calls that involve a failed rank fail
	// (tolerate.go). The client must have a board.
	Tolerate bool
	// Timeout bounds each step of connecting to a peer. Default 60 s.
	Timeout time.Duration
}

// Engine is one rank. Its methods take the lock and leave what needs it to those of Held.
type Engine struct{ held Held }

// pollBatch is the number of completions one poll takes; it bounds how long a poll
// holds the lock.
const pollBatch = 16

// timeSlice is how long a rank waits for a core where ranks share cores, in
// nanoseconds. With 16 ranks on two cores, all waiting, it was 65 to 190 µs; with
// fewer ranks it is less.
const timeSlice = 50_000

// cardKey is the key of a rank's card in the launcher's store.
const cardKey = "muster-card"

// New starts a rank of the job. It opens the queues of the devices, publishes the
// rank's card, and waits until every rank has done so. Close closes the devices; if New
// fails, it has closed them.
func New(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Timeout == 0 {
		cfg.Timeout = 60 * time.Second
	}
	r := &Engine{}
	e := &r.held // nobody else uses it yet
	e.setup = setup{engine: r, cfg: cfg, client: cfg.Client, board: cfg.Client.Board(),
		rank: cfg.Client.Rank(), size: cfg.Client.Size(), began: time.Now(), cards: new(atomic.Pointer[[][]byte])}
	e.links.byRank = make(map[int]*p2p.Link)
	e.spin, e.yields = cfg.polls()
	e.mu.shared = !canBias()
	if cfg.Oversubscribed && cfg.P2P.TimeSlice == 0 {
		e.cfg.P2P.TimeSlice = timeSlice
	}
	e.m = p2p.New(e.cfg.P2P, registrar{e})
	e.m.UseSources(registrar{e})
	if err := e.join(ctx); err != nil {
		return nil, errors.Join(err, e.closeLanes())
	}
	e.board.MarkStarted(e.rank)
	e.client.Watch(r.clientFailed)
	if cfg.Async || slices.ContainsFunc(e.lanes, func(d *lane) bool { return d.attr.Served }) {
		e := r.lock()
		e.startThread()
		if cfg.Async {
			e.helpHome()
		}
		e.unlock()
	}
	return r, nil
}

func (e *Held) join(ctx context.Context) error {
	if err := e.openLanes(); err != nil {
		return err
	}
	if err := e.client.Put(cardKey, e.card()); err != nil {
		return fmt.Errorf("publish the address of rank %d: %w", e.rank, err)
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	if err := e.client.Fence(pmi.InStage(ctx, "addresses of all ranks")); err != nil {
		return fmt.Errorf("wait for all %d ranks to start: %w", e.size, err)
	}
	return nil
}

// Rank returns this rank's number in the world.
func (r *Engine) Rank() int { return r.held.rank }

// Size returns the number of ranks in the world.
func (r *Engine) Size() int { return r.held.size }

// P2P returns the configuration of the point-to-point machine.
func (r *Engine) P2P() p2p.Config { return r.held.cfg.P2P }

// Attr returns the attributes of the device that carries messages to a rank of the
// world. For Anyone it returns those of home.
func (r *Engine) Attr(rank int) *rdma.Attr {
	if rank != Anyone {
		if d := r.held.laneTo(rank); d != nil {
			return d.attr
		}
	}
	return r.held.lanes[0].attr
}

// Oversubscribed reports whether ranks of this host share cores.
func (r *Engine) Oversubscribed() bool { return r.held.cfg.Oversubscribed }

// Timeout returns the time limit of a step with the launcher.
func (r *Engine) Timeout() time.Duration { return r.held.cfg.Timeout }

// Client returns the connection to the launcher.
func (r *Engine) Client() pmi.Client { return r.held.client }

// Links calls visit for the link of each peer that this rank has communicated with.
func (r *Engine) Links(visit func(*p2p.Link)) {
	e := r.lock()
	defer e.unlock()
	e.eachLink(visit)
}

// Drain waits until the devices have sent all packets, or the timeout expires.
func (r *Engine) Drain(timeout time.Duration) {
	e := r.lock()
	defer e.unlock()
	s := e.newStrategy()
	defer e.endWait(&s)
	for deadline := e.clock() + timeout; ; {
		found := e.poll() > 0
		left := len(e.links.blocked) > 0 || len(e.links.connecting)+e.links.opens > 0 || e.pending() > 0
		if !left || e.failed != nil || e.clock() > deadline {
			return
		}
		step := s.next(found, e.mu.wanted.Load() != 0)
		if step != stepPark {
			e.pause(&s, step)
			continue
		}
		e.mu.unlock()
		time.Sleep(drainSleep)
		e.mu.lock()
	}
}

// drainSleep is how long Drain sleeps when nothing has happened for a while: acks may take
// seconds, and nobody waits for this rank.
const drainSleep = 100 * time.Microsecond

var errLeft = errors.New("this rank has left the job: Finalize was called")

// Close ends the rank. No operation may be pending.
func (r *Engine) Close() error {
	e := r.lock()
	if e.closed {
		e.unlock()
		return nil
	}
	e.closed = true
	if e.deaths.timer != nil {
		e.deaths.timer.Stop()
	}
	if e.links.timer != nil {
		e.links.timer.Stop()
	}
	e.fail(errLeft)
	e.unlock()
	r.StopThread()
	e.links.opening.Wait()
	err := e.closeLanes()
	e.board.MarkLeft(e.rank)
	return err
}
