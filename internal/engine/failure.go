package engine

// A rank has died. The launcher writes it on the board; without a board the
// client may have heard of it, and the device is asked whether the peers'
// processes still exist. Either way every pending call, and every later one,
// returns an error that names the rank: in a job that has lost a rank no wait
// can be trusted to end.

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// PeerDeadError says which rank died, and how, as far as it is known.
type PeerDeadError struct {
	Rank  int
	Host  string
	Cause string
}

func (p *PeerDeadError) Error() string {
	return fmt.Sprintf("rank %d on %s has died: %s", p.Rank, p.Host, p.Cause)
}

// heard takes what the client learns without asking. The program may be computing, or
// working on shared memory, so it is not the one to look.
func (e *Engine) heard(err error) {
	var dead *pmi.DeadError
	if errors.As(err, &dead) {
		err = &PeerDeadError{dead.Rank, dead.Host, dead.Status}
	}
	e.lock()
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

// Alarm is a word for who works on shared memory without waiting for anybody: true if
// there is a Cause why the job cannot go on. It stays in the cache until then. The rank
// looks for deaths in the background from the first call on.
func (e *Engine) Alarm() *atomic.Bool {
	e.lock()
	defer e.unlock()
	if e.patrol == nil && !e.closed {
		e.patrol = time.AfterFunc(time.Hour, e.lookAround)
		e.patrol.Reset(patrolEvery) // now that it can be found
	}
	return &e.alarm
}

// patrolEvery is how long a rank that only works on shared memory may go on after a
// death.
const patrolEvery = 250 * time.Millisecond

// lookAround looks for deaths while the program does not call anything that waits. It
// takes the lock only where there is neither board nor news: then the device must
// be asked.
func (e *Engine) lookAround() {
	_, died := e.client.Died()
	if !died && e.board == nil && e.mu.borrow() {
		e.watch()
		e.mu.giveBack()
	}
	if died {
		e.alarm.Store(true)
	}
	if !e.alarm.Load() {
		e.patrol.Reset(patrolEvery)
	}
}

// watch looks for dead ranks; it is called while waiting, not on the way of a
// message.
func (e *Engine) watch() {
	if e.failed != nil {
		return
	}
	if n := e.board.Deaths(); n != e.deaths {
		e.deaths = n
		e.board.Noticed(e.rank)
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
		alive, ok := d.dev.(interface{ Alive(rdma.PeerID) bool })
		if !ok {
			continue
		}
		for _, l := range d.byPeer {
			if l != nil && l.Open && l.Rank != e.rank && !alive.Alive(l.Peer) {
				e.fail(&PeerDeadError{l.Rank, l.Host, "its process no longer exists"})
				return
			}
		}
	}
}

// disconnected gives up a peer from which a device takes nothing more. Where messages were
// lost, or the peer cannot be reached, all calls end: one that waits for those messages would
// never end. A peer that has died is the better explanation.
func (e *Engine) disconnected(d *lane, c *rdma.Completion) {
	e.watch()
	if e.failed != nil || e.leaving {
		return
	}
	var l *p2p.Link
	if int(c.Peer) < len(d.byPeer) {
		l = d.byPeer[c.Peer]
	}
	if c.Status == rdma.StatusRemoteAccess {
		if l == nil {
			l = e.arrivalLink(d, c.Peer)
		}
		if l != nil && l.Err == nil {
			e.m.FailLink(l, fmt.Errorf("%w: rank %d on %s has tried again and again to access memory of this rank without permission, over %s: "+
				"nothing more is accepted from it; check that it runs the same program, and who started it", p2p.ErrProtocol, l.Rank, l.Host, d.attr.Name))
		}
		return
	}
	err := rdma.StatusPeerGone.Err()
	if dev, ok := d.dev.(rdma.ExplainingDevice); ok {
		if why := dev.Explain(c.Peer); why != nil {
			err = why
		}
	}
	if l != nil {
		err = fmt.Errorf("rank %d on %s, over %s: %w", l.Rank, l.Host, d.attr.Name, err)
	}
	e.fail(err)
}

// Leaving says that this rank is about to enter the last barrier. From now on the
// end of a peer's process is no sign of its death: it may have left the barrier
// before us. Nothing is under way that a deputy could look after.
func (e *Engine) Leaving() {
	e.lock()
	e.leaving = true
	e.unlock()
	e.dismissDeputy()
}

// Fail ends all calls of this rank with an error.
func (e *Engine) Fail(err error) {
	e.lock()
	e.fail(err)
	e.unlock()
}

func (e *Engine) fail(err error) {
	if e.failed != nil {
		return
	}
	e.failed = err
	e.alarm.Store(true)
	for _, l := range e.links {
		if l.Err == nil {
			e.m.FailLink(l, err)
		}
	}
	e.m.Fail(err)
	e.settle()
	e.wakeProbers()
}

// Failed is the reason why the rank can no longer communicate, or nil.
func (e *Engine) Failed() error {
	e.lock()
	defer e.unlock()
	return e.failed
}

// Cause is the reason for an alarm, or nil if it is nothing that ends calls.
func (e *Engine) Cause() error {
	e.lock()
	defer e.unlock()
	e.watch()
	return e.failed
}
