package bench

// The calls that benchmarks of frequently used buffers compare: a ping-pong of eager
// messages by Send or Isend, and a put or a get with its flush. On adapters a send in place
// completes when the peer's adapter has acknowledged it. A blocking send would wait for that,
// so it copies there (decision 033) and shows no gain; that of an Isend completes long before
// the answer arrives. All but blocking sends are issued in batches. A batch begins when the
// other rank is in a call of the same world: if it waited in another world, its progress
// thread would do the target's part.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// reuseCalls lists the valid names in Params.Calls.
var reuseCalls = []string{"eager", "isend", "put", "get"}

var reuseFlags = []Flag{{Name: "op", Choices: reuseCalls, Help: "operations to measure: " + strings.Join(reuseCalls, ", ") + " (default " + reuseCalls[0] + ")",
	Value: func(p *Params) any { return &p.Calls }}}

// checkReuse returns an error if Params.Calls has an unknown name.
func checkReuse(p *Params) error {
	for _, name := range p.Calls {
		if !slices.Contains(reuseCalls, name) {
			return fmt.Errorf("--op %s is not among %s", name, strings.Join(reuseCalls, ", "))
		}
	}
	return nil
}

// calls returns the selected calls.
func (p *Params) calls() []string {
	if p.Calls == nil {
		return reuseCalls[:1]
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
	metric string // prefix of its metrics
	each   int    // calls in a batch
	worlds []*mpi.Comm
	size   int
	recv   []byte
	wins   []*mpi.Win[byte]
	before inspect.BufferStats // counters at the last figure
}

// callsPerBatch is the number of successive isends, puts or gets in one world.
const callsPerBatch = 8

func newReuseCall(name string, worlds []*mpi.Comm, size int) (*reuseCall, error) {
	r := &reuseCall{name: name, each: 1, worlds: worlds, size: size, recv: make([]byte, size)}
	if name == reuseCalls[0] {
		return r, nil
	}
	r.metric, r.each = name+"-", callsPerBatch
	if name == "isend" {
		return r, nil
	}
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

// run makes n calls in each world. The worlds alternate, so that other load on the machine
// affects all of them alike. next returns the buffer of call i in world k.
func (r *reuseCall) run(n int, next func(k, i int) []byte) ([]trips, error) {
	times := make([]trips, len(r.worlds))
	for i, round := 0, 0; i < n; i, round = i+r.each, round+1 {
		for j := range r.worlds {
			k := (j + round) % len(r.worlds) // none is always first
			batch := r.transfers
			switch r.name {
			case "eager":
				batch = r.message
			case "isend":
				batch = r.isends
			}
			if err := batch(k, i, min(r.each, n-i), next, &times[k]); err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// message makes a round trip.
func (r *reuseCall) message(k, i, _ int, next func(k, i int) []byte, t *trips) error {
	c, buf := r.worlds[k], next(k, i)
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

// isends makes n round trips, after one of a byte that is not timed: the other rank may still
// wait for an ack in the previous world. The previous send has completed by the time it is
// waited for: rank 0 waits outside of the measured time, rank 1 after it has received this
// message.
func (r *reuseCall) isends(k, first, n int, next func(k, i int) []byte, t *trips) error {
	c, buf := r.worlds[k], []byte{0}
	var last mpi.Request
	for i := range n + 1 {
		if i > 0 {
			buf = next(k, first+i-1)
		}
		if c.Rank() == 1 {
			if _, err := mpi.Recv(c, r.recv, 0, reuseTag); err != nil {
				return err
			}
		}
		if _, err := last.Wait(); err != nil {
			return err
		}
		start := time.Now()
		last = mpi.Isend(c, buf, 1-c.Rank(), reuseTag)
		called := time.Since(start)
		if c.Rank() == 1 {
			continue
		}
		if _, err := mpi.Recv(c, r.recv, 1, reuseTag); err != nil {
			return err
		}
		if i > 0 {
			t.half, t.call = append(t.half, micros(time.Since(start))/2), append(t.call, micros(called))
		}
	}
	_, err := last.Wait()
	return err
}

// transfers makes n puts or gets at rank 0.
func (r *reuseCall) transfers(k, first, n int, next func(k, i int) []byte, t *trips) error {
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
	if r.name == "get" {
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
