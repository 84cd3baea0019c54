package engine

// The C front of package cabi sends and receives short messages over shared memory itself
// (package direct). It holds the lock meanwhile, as the goroutine that the lock is biased
// to: its thread calls Go on one goroutine for as long as it exists.

import "github.com/muster-mpi/muster/internal/direct"

// Direct stores pointers to the engine's words and returns the owner of the lock. The
// owner is 0 unless it is the calling goroutine, and short messages on the first lane can
// bypass the engine. They cannot if the job survives failures: the front would have to know
// of revoked communicators.
func (r *Engine) Direct(t *direct.Engine, pins *direct.Pins) (owner uintptr) {
	e := r.lock()
	defer e.unlock()
	dev := e.home.caps.Direct
	if dev == nil || e.cfg.InProcess || e.cfg.Tolerate || e.home.pool != nil || !e.mu.biased() || !dev.DirectDevice(t, pins) {
		return 0
	}
	pins.Pin(r)
	t.Bias, t.Inside = &e.mu.bias, &e.mu.inside
	t.Driven, t.Failed = &e.waits.driven, &e.stopped
	t.Blocked, t.Connecting = direct.Length(&e.links.blocked), direct.Length(&e.links.connecting)
	e.m.Direct(t, pins)
	return goroutine()
}

// DirectPeer stores pointers to the words of the link to a rank and of its rings.
func (r *Engine) DirectPeer(rank int, t *direct.Peer, pins *direct.Pins) bool {
	e := r.lock()
	defer e.unlock()
	dev := e.home.caps.Direct
	l := e.links.byRank[rank]
	return dev != nil && l != nil && l.Dev == 0 && l.Open && rank != e.rank && len(e.home.rings) == 0 &&
		l.Direct(t, pins) && dev.DirectPeer(l.Peer, t, pins)
}

// DirectWake completes what the front did with the ring of a rank that sleeps or waits for
// room.
func (r *Engine) DirectWake(rank int) {
	e := r.lock()
	defer e.unlock()
	if dev := e.home.caps.Direct; dev != nil && e.links.byRank[rank] != nil {
		dev.DirectWake(e.links.byRank[rank].Peer)
	}
}

// Spin returns the number of polls before a waiter yields the core.
func (r *Engine) Spin() int { return r.held.spin }
