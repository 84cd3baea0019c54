package bench

// The calls that benchmarks of frequently-used buffers compare in turns: eager messages there
// and back, a put or a get with its flush. A turn of puts or gets is several of them, and begins
// when the other rank is in a call of the same world: one that waits in another would
// leave the target's part to a thread of its own.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// ReuseCalls are the names that Params.Calls may have.
var ReuseCalls = []string{"eager", "put", "get"}

// CheckCalls says what is wrong with Params.Calls.
func CheckCalls(names []string) error {
	for _, name := range names {
		if !slices.Contains(ReuseCalls, name) {
			return fmt.Errorf("%s is not among %s", name, strings.Join(ReuseCalls, ", "))
		}
	}
	return nil
}

// calls are those that were asked for.
func (p *Params) calls() []string {
	if p.Calls == nil {
		return ReuseCalls[:1]
	}
	return p.Calls
}

// trips are the times of one call in one world, in µs.
type trips struct {
	half []float64 // latency: half of a round trip, or a put or get with its flush
	call []float64 // of the call that sends, puts or gets
}

// reuseCall is a call in several worlds.
type reuseCall struct {
	name   string
	metric string // what its metrics begin with
	each   int    // calls in a turn
	worlds []*mpi.Comm
	size   int
	recv   []byte
	wins   []*mpi.Win[byte]
}

// movesATurn is how many puts or gets follow each other in one world.
const movesATurn = 8

func newReuseCall(name string, worlds []*mpi.Comm, size int) (*reuseCall, error) {
	r := &reuseCall{name: name, each: 1, worlds: worlds, size: size, recv: make([]byte, size)}
	if name == ReuseCalls[0] {
		return r, nil
	}
	r.metric, r.each = name+"-", movesATurn
	for _, c := range worlds {
		w, err := mpi.AllocateWin[byte](c, size)
		if err != nil {
			return nil, err
		}
		fill(w.Memory(), 1)
		if err := w.LockAll(); err != nil {
			return nil, err
		}
		r.wins = append(r.wins, w)
	}
	return r, nil
}

func (r *reuseCall) close() (err error) {
	for _, w := range r.wins {
		err = errors.Join(err, w.UnlockAll(), w.Free())
	}
	return err
}

// run makes n calls in each world, in turns, so that what else goes on in the machine meets
// all alike. next is the buffer of call i in world k.
func (r *reuseCall) run(n int, next func(k, i int) []byte) ([]trips, error) {
	times := make([]trips, len(r.worlds))
	for i, round := 0, 0; i < n; i, round = i+r.each, round+1 {
		for turn := range r.worlds {
			k := (turn + round) % len(r.worlds) // none is always first
			var err error
			if r.wins == nil {
				err = r.message(k, next(k, i), &times[k])
			} else {
				err = r.moves(k, i, min(r.each, n-i), next, &times[k])
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// message is a round trip.
func (r *reuseCall) message(k int, buf []byte, t *trips) error {
	c := r.worlds[k]
	if c.Rank() == 1 {
		if _, err := mpi.Recv(c, r.recv, 0, reuseTag); err != nil {
			return err
		}
		return mpi.Send(c, buf, 0, reuseTag)
	}
	start := time.Now()
	if err := mpi.Send(c, buf, 1, reuseTag); err != nil {
		return err
	}
	sent := time.Since(start)
	if _, err := mpi.Recv(c, r.recv, 1, reuseTag); err != nil {
		return err
	}
	t.half, t.call = append(t.half, micros(time.Since(start))/2), append(t.call, micros(sent))
	return nil
}

// moves are puts or gets by rank 0.
func (r *reuseCall) moves(k, first, n int, next func(k, i int) []byte, t *trips) error {
	c, w := r.worlds[k], r.wins[k]
	var word [1]byte
	if c.Rank() == 1 {
		if err := mpi.Send(c, word[:], 0, reuseTag); err != nil {
			return err
		}
		_, err := mpi.Recv(c, word[:], 0, reuseTag)
		return err
	}
	if _, err := mpi.Recv(c, word[:], 1, reuseTag); err != nil {
		return err
	}
	call := w.Put
	if r.name == ReuseCalls[2] {
		call = w.Get
	}
	for i := range n {
		buf := next(k, first+i)
		start := time.Now()
		if err := call(buf, 1, 0); err != nil {
			return err
		}
		called := time.Since(start)
		if err := w.Flush(1); err != nil {
			return err
		}
		t.half, t.call = append(t.half, micros(time.Since(start))), append(t.call, micros(called))
	}
	return mpi.Send(c, word[:], 1, reuseTag)
}
