package engine

// A rank has died. The launcher writes it on the board; without a board the
// client may have heard of it, and the device is asked whether the peers'
// processes still exist. Either way every pending call, and every later one,
// returns an error that names the rank: in a job that has lost a rank no wait
// can be trusted to end.

import (
	"fmt"

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

// watch looks for dead ranks; it is called while waiting, not on the way of a
// message.
func (e *Engine) watch() {
	if e.failed != nil {
		return
	}
	if n := e.board.Deaths(); n != e.deaths {
		e.deaths = n
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

// disconnected ends all calls because a device has lost messages to or from a peer, or
// cannot reach it any more: a call that waits for them would never end. A peer that has
// died is the better explanation.
func (e *Engine) disconnected(d *lane, peer rdma.PeerID) {
	e.watch()
	if e.failed != nil || e.leaving {
		return
	}
	err := rdma.StatusPeerGone.Err()
	if dev, ok := d.dev.(rdma.ExplainingDevice); ok {
		if why := dev.Explain(peer); why != nil {
			err = why
		}
	}
	if int(peer) < len(d.byPeer) && d.byPeer[peer] != nil {
		l := d.byPeer[peer]
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
