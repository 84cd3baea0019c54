package bench

// The calls that benchmarks of frequently used buffers compare: a ping-pong of eager
// messages, and a put or a get with its flush. Puts and gets are issued in batches. A batch
// begins when the other rank is in a call of the same world: if it waited in another
// world, its progress thread would do the target's part.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

// reuseCalls lists the valid names in Params.Calls.
var reuseCalls = []string{"eager", "put", "get"}

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
}

// transfersPerBatch is the number of successive puts or gets in one world.
const transfersPerBatch = 8

func newReuseCall(name string, worlds []*mpi.Comm, size int) (*reuseCall, error) {
	r := &reuseCall{name: name, each: 1, worlds: worlds, size: size, recv: make([]byte, size)}
	if name == reuseCalls[0] {
		return r, nil
	}
	r.metric, r.each = name+"-", transfersPerBatch
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
			var err error
			if r.wins == nil {
				err = r.message(k, next(k, i), &times[k])
			} else {
				err = r.transfers(k, i, min(r.each, n-i), next, &times[k])
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return times, nil
}

// message makes a round trip.
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
	if r.name == reuseCalls[2] {
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
