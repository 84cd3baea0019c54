package engine

// Death of a rank. The launcher records it on the board; without a board the client
// may report it, and the device reports whether the peers' processes still exist.
// Every pending and later call then returns an error that names the rank: in a job that
// has lost a rank, any wait might never end.

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// PeerDeadError reports which rank died, and the cause if known.
type PeerDeadError struct {
	Rank  int
	Host  string
	Cause string
}

func (p *PeerDeadError) Error() string {
	return fmt.Sprintf("rank %d on %s has died: %s", p.Rank, p.Host, p.Cause)
}

// ExcludedError reports that this rank itself counts as failed: the others go on without it,
// so it must not take part any more.
type ExcludedError struct{ Cause string }

func (x *ExcludedError) Error() string {
	return "this rank counts as failed, and the others do not wait for it any more: " + x.Cause
}

// clientFailed handles an error that the client reports asynchronously. The program may
// be computing or working on shared memory, so it might not check for errors itself.
func (r *Engine) clientFailed(err error) {
	var dead *pmi.DeadError
	if errors.As(err, &dead) {
		err = &PeerDeadError{dead.Rank, dead.Host, dead.Status}
	}
	e := r.lock()
	if e.failed == nil {
		e.fail(err)
		e.home.cq.Wake()
	}
	e.unlock()
	var gone *pmi.LauncherError
	if errors.As(err, &gone) && e.cfg.Orphaned != nil {
		e.cfg.Orphaned(err)
	}
}

// Alarm returns a flag for callers that work on shared memory without waiting. It
// becomes true when the job cannot continue; Cause returns the reason. Until then the
// flag stays in the processor's cache. The first call starts a background check for
// deaths. In a tolerant job the flag is that of a communicator, given by its context.
func (r *Engine) Alarm(ctx uint32) *atomic.Bool {
	e := r.lock()
	defer e.unlock()
	if e.deaths.timer == nil && !e.closed {
		e.deaths.timer = time.AfterFunc(time.Hour, r.checkDeathsTimer)
		e.deaths.timer.Reset(deathInterval) // after the field is set
	}
	if m := e.ft.members[ctx+1]; m != nil {
		e.dropAtFailure(m)
		return &m.alarm
	}
	return &e.deaths.alarm
}

// deathInterval bounds how long a rank that only works on shared memory continues after
// a death.
const deathInterval = 250 * time.Millisecond

// checkDeathsTimer checks for deaths while the program makes no blocking call. It takes
// the lock only to query the device, without a board or a report from the client, and in a
// tolerant job, whose communicators have flags of their own.
func (r *Engine) checkDeathsTimer() {
	s, deaths := &r.held.setup, &r.held.deaths
	_, died := s.client.Died()
	look := s.board == nil && !died
	if s.cfg.Tolerate {
		look = s.board.Deaths() > 0
	}
	if look {
		if e, ok := r.borrow(); ok {
			e.checkDeaths()
			e.mu.giveBack()
		}
	}
	if died && !s.cfg.Tolerate {
		deaths.alarm.Store(true)
	}
	if !deaths.alarm.Load() {
		deaths.timer.Reset(deathInterval)
	}
}

// checkDeaths looks for dead ranks. It is called while waiting, not on the path of a
// message.
func (e *Held) checkDeaths() {
	if e.failed != nil {
		return
	}
	if n := e.board.Deaths(); n != e.deaths.seen {
		first := e.deaths.seen
		e.deaths.seen = n
		e.board.MarkNoticed(e.rank)
		if d, ok := e.board.Dead(e.rank); ok {
			e.fail(&ExcludedError{d.Status})
			return
		}
		if e.cfg.Tolerate {
			for i := first; i < n; i++ {
				if d, ok := e.board.Death(int(i)); ok {
					e.rankDied(&PeerDeadError{d.Rank, d.Host, d.Status})
				}
			}
			return
		}
		if d, ok := e.board.Death(0); ok {
			e.fail(&PeerDeadError{d.Rank, d.Host, d.Status})
		}
		return
	}
	if e.board != nil {
		return
	}
	if d, ok := e.client.Died(); ok {
		e.fail(&PeerDeadError{d.Rank, d.Host, d.Status})
		return
	}
	if e.leaving {
		return
	}
	for _, d := range e.lanes {
		if d.caps.Alive == nil {
			continue
		}
		for _, l := range d.byPeer.All {
			if l.Open && l.Rank != e.rank && !d.caps.Alive(l.Peer) {
				e.fail(&PeerDeadError{l.Rank, l.Host, "its process no longer exists"})
				return
			}
		}
	}
}

// deathWithin is how long after the end of a process the launcher may report it.
const deathWithin = 500 * time.Millisecond

// deathOr returns the error of a rank that has died, if the launcher reports one within
// deathWithin, else err. A process on this host that cannot be reached has ended, as a rule,
// and the launcher knows how.
func (e *Held) deathOr(err error) error {
	for end := e.clock() + deathWithin; e.board != nil && e.failed == nil && e.clock() < end; time.Sleep(time.Millisecond) {
		e.checkDeaths()
	}
	if e.failed != nil {
		return e.failed
	}
	return err
}

// handleDisconnect handles a peer from which a device accepts nothing more. If messages were
// lost or the peer is unreachable, all calls fail, because a call that waits for those
// messages would never end. A death of the peer takes precedence as the cause.
func (e *Held) handleDisconnect(d *lane, c *rdma.Completion) {
	e.checkDeaths()
	if e.failed != nil {
		return
	}
	l := d.byPeer.Get(int(c.Peer))
	e.reportUnreachable(d, l, c)
	if e.leaving {
		return
	}
	if c.Status == rdma.StatusRemoteAccess {
		if l == nil {
			l = e.arrivalLink(d, c.Peer)
		}
		if l != nil && l.Err == nil {
			e.m.FailLink(l, fmt.Errorf("%w: rank %d on %s has repeatedly tried to access memory of this rank without permission, over %s: "+
				"this rank accepts nothing more from it; check that it runs the same program, and who started it", p2p.ErrProtocol, l.Rank, l.Host, d.attr.Name))
		}
		return
	}
	err := rdma.StatusPeerGone.Err()
	if d.caps.Explain != nil {
		if why := d.caps.Explain(c.Peer); why != nil {
			err = why
		}
	}
	if l != nil {
		err = fmt.Errorf("rank %d on %s, over %s: %w", l.Rank, l.Host, d.attr.Name, err)
		if e.cfg.Tolerate { // whether the rank has failed is for the launcher to decide
			if l.Err == nil {
				e.m.FailLink(l, fmt.Errorf("%w: %w", p2p.ErrTransport, err))
			}
			return
		}
	}
	e.fail(err)
}

// reportUnreachable reports to the launcher of a tolerant job that a peer cannot be reached.
// It decides which side has failed, also while this rank waits in Finalize; a peer may have
// left then, but one that has is not silent.
func (e *Held) reportUnreachable(d *lane, l *p2p.Link, c *rdma.Completion) {
	launcher, ok := e.client.(interface{ Unreachable(rank int) })
	if !ok || !e.cfg.Tolerate || l == nil || e.ft.dead[l.Rank] != nil || e.deaths.reported[l.Rank] || c.Status == rdma.StatusRemoteAccess {
		return
	}
	if e.leaving {
		if silence := new(*rdma.SilenceError); d.caps.Explain == nil || !errors.As(d.caps.Explain(c.Peer), silence) {
			return
		}
	}
	if e.deaths.reported == nil {
		e.deaths.reported = map[int]bool{}
	}
	e.deaths.reported[l.Rank] = true
	go launcher.Unreachable(l.Rank) // it waits for an answer
}

// Finalizing announces that the program makes no more calls: other ranks that wait for one
// get an error (broken.go).
func (r *Engine) Finalizing() {
	e := r.lock()
	e.finalizing = true
	e.unlock()
}

// Leaving announces that this rank is about to enter the last barrier. From now on a
// peer's process may exit normally: it may have left the barrier first.
func (r *Engine) Leaving() {
	e := r.lock()
	e.leaving = true
	e.unlock()
}

// Fail ends all calls of this rank with an error.
func (r *Engine) Fail(err error) {
	e := r.lock()
	e.fail(err)
	e.unlock()
}

func (e *Held) fail(err error) {
	if e.failed != nil {
		return
	}
	e.failed, e.stopped = err, true
	e.deaths.alarm.Store(true)
	for _, l := range e.links.byRank {
		if l.Err == nil {
			e.m.FailLink(l, err)
		}
	}
	e.m.Fail(err)
	e.failAgreements(err)
	e.settle()
	e.wakeProbers()
}

// Err returns the reason why the rank can no longer communicate, or nil.
func (r *Engine) Err() error {
	e := r.lock()
	defer e.unlock()
	return e.failed
}

// Cause returns the reason for an alarm, or nil if calls in a context can continue.
func (r *Engine) Cause(ctx uint32) error {
	e := r.lock()
	defer e.unlock()
	e.checkDeaths()
	return e.errIn(ctx)
}
