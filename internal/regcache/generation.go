package regcache

// Counts garbage collections: each collection finds an unreachable sentinel, whose cleanup
// counts and creates the next one. The cleanup runs on a goroutine of the runtime; it uses
// only atomics, and holds the counter weakly, so that it does not keep an abandoned cache
// alive.

import (
	"runtime"
	"sync/atomic"
	"time"
	"weak"
)

type generations struct {
	n        atomic.Uint32
	interval time.Duration
	last     atomic.Int64 // when n changed, in nanoseconds since start
	start    time.Time
	stopped  atomic.Bool
}

// sentinel contains a pointer, so it is an allocation of its own: small objects without
// pointers share a block and are collected together.
type sentinel struct{ _ *sentinel }

func newGenerations(interval time.Duration) *generations {
	g := &generations{interval: interval, start: time.Now()}
	g.arm()
	return g
}

func (g *generations) now() uint32 { return g.n.Load() }

func (g *generations) stop() { g.stopped.Store(true) }

func (g *generations) arm() {
	runtime.AddCleanup(new(sentinel), countCollection, weak.Make(g))
}

// countCollection runs once after each collection.
func countCollection(w weak.Pointer[generations]) {
	g := w.Value()
	if g == nil || g.stopped.Load() {
		return
	}
	if now := int64(time.Since(g.start)); now-g.last.Load() >= int64(g.interval) {
		g.last.Store(now)
		g.n.Add(1)
	}
	g.arm()
}
