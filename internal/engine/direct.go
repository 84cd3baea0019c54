package engine

// The C front of package cabi sends and receives short messages over shared memory itself
// (package direct). It holds the lock meanwhile, as the goroutine that the lock is biased
// to: its thread calls Go on one goroutine for as long as it exists.

import (
	"github.com/muster-mpi/muster/internal/direct"
	"github.com/muster-mpi/muster/rdma"
)

// directDevice is a device whose rings the front can use.
type directDevice interface {
	DirectDevice(t *direct.Engine) bool
	DirectPeer(id rdma.PeerID, t *direct.Peer) bool
	DirectWake(id rdma.PeerID)
}

// Direct stores the addresses of the engine's words and returns the owner of the lock. The
// owner is 0 unless it is the calling goroutine, and short messages on the first lane can
// bypass the engine. They cannot if the job survives failures: the front would have to know
// of revoked communicators.
func (e *Engine) Direct(t *direct.Engine) (owner uintptr) {
	e.lock()
	defer e.unlock()
	dev, ok := e.home.dev.(directDevice)
	if !ok || e.cfg.InProcess || e.cfg.Tolerate || e.home.pool != nil || !e.mu.biased() || !dev.DirectDevice(t) {
		return 0
	}
	t.Bias, t.Inside = direct.Address(&e.mu.bias), direct.Address(&e.mu.inside)
	t.Driver, t.Failed = direct.Address(&e.driver), direct.Address(&e.failed)
	t.Blocked, t.Connecting = direct.Length(&e.blocked), direct.Length(&e.connecting)
	e.m.Direct(t)
	return goroutine()
}

// DirectPeer stores the addresses of the words of the link to a rank and of its rings.
func (e *Engine) DirectPeer(rank int, t *direct.Peer) bool {
	e.lock()
	defer e.unlock()
	dev, ok := e.home.dev.(directDevice)
	l := e.links[rank]
	return ok && l != nil && l.Dev == 0 && l.Open && rank != e.rank && len(e.home.rings) == 0 &&
		l.Direct(t) && dev.DirectPeer(l.Peer, t)
}

// DirectWake completes what the front did with the ring of a rank that sleeps or waits for
// room.
func (e *Engine) DirectWake(rank int) {
	e.lock()
	defer e.unlock()
	if dev, ok := e.home.dev.(directDevice); ok && e.links[rank] != nil {
		dev.DirectWake(e.links[rank].Peer)
	}
}

// Spin returns the number of polls before a waiter yields the core.
func (e *Engine) Spin() int { return e.spin }
