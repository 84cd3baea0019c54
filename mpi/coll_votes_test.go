package mpi

// Calls that change to an arrival-aware algorithm on all ranks at once. Package coll tests
// when that happens; these tests check that real ranks agree, whatever their messages look
// like, and that votes cost none.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/prof"
)

// TestLateRankIsTried checks that every kind of call tries its arrival-aware algorithm if a
// rank is late every time, in the region of the node if it has a form for that. A barrier
// follows calls that carry no votes themselves.
func TestLateRankIsTried(t *testing.T) {
	const ranks, calls = 6, 120
	for _, kind := range papKinds {
		t.Run(kind.String(), func(t *testing.T) {
			runOnHosts(t, ranks, 2, true, &wire{}, func(c *Comm) error {
				table, err := parseForced("alltoall=bruck,allgather=ring,reduce=node-tree,allreduce=node-doubling") // with direct each rank would decide for itself, and the last two may have one as the default
				if err != nil {
					return err
				}
				c.w.tuning = table // like a tuning table; Config.Collective would mean these and nothing else
				call := newLateCall(c, lateForm{kind: kind}, 1, 0)
				for i := range calls {
					if c.rank == 1 {
						time.Sleep(2 * time.Millisecond) // real time, which the ranks measure
					}
					if err := call.run(); err != nil {
						return fmt.Errorf("call %d: %w", i, err)
					}
					if kind == coll.Bcast || kind == coll.Reduce {
						if err := c.Barrier(); err != nil {
							return err
						}
					}
				}
				switch p := c.plans.last[kind]; {
				case p.tried == nil:
					return fmt.Errorf("there is nothing to try in place of %s", p.by.Algorithm.Name)
				case p.tried.graph == nil:
					return fmt.Errorf("%s was not tried in %d calls, though rank 1 was late for each", p.tried.by.Algorithm.Name, calls)
				case p.tried.by.Algorithm.InSegment != nil:
					// The defaults here have no such form, so all these calls were trials.
					if r := &c.node.region; r.calls == 0 || r.calls > nodeAfter && r.runs == 0 {
						return fmt.Errorf("%s was tried with messages; %d calls could use the region, %d did (%s)", p.tried.by.Algorithm.Name, r.calls, r.runs, r.why)
					}
				}
				return nil
			})
		})
	}
}

// TestVotesAgree makes random calls with ranks that are late at random, with messages of
// all protocols. After every call all ranks must have the same votes and the same state.
func TestVotesAgree(t *testing.T) {
	skipLaunched(t) // the check at the end needs the calls
	seeds := uint64(8)
	if testing.Short() {
		seeds = 2
	}
	var tried atomic.Int32
	for _, layout := range []struct{ ranks, perHost int }{{3, 1}, {5, 2}, {8, 4}} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("%d ranks, %d a host, seed %d", layout.ranks, layout.perHost, seed), func(t *testing.T) {
				runOnHosts(t, layout.ranks, layout.perHost, true, &wire{}, func(c *Comm) error {
					err := randomVotes(c, seed)
					for _, p := range c.plans.all {
						if p.tried != nil && p.tried.graph != nil {
							tried.Add(1)
						}
					}
					return err
				})
			})
		}
	}
	if tried.Load() == 0 {
		t.Error("no arrival-aware algorithm was tried; the test shows little")
	}
}

func randomVotes(c *Comm, seed uint64) error {
	shared, own := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, uint64(1+c.rank)))
	calls := []func() error{c.Barrier}
	for range 2 {
		form := lateForm{kind: papKinds[shared.IntN(len(papKinds))]}
		n := []int{1, 700, 9_000}[shared.IntN(3)] // the last by rendezvous on all devices
		calls = append(calls, newLateCall(c, form, n, shared.IntN(c.size)).run)
	}
	digest := fnv.New64a()
	late := shared.IntN(c.size)
	for i := range 150 {
		if i%50 == 49 {
			late = shared.IntN(c.size)
		}
		if c.rank == late || own.IntN(8) == 0 {
			time.Sleep(time.Duration(own.IntN(1000)) * time.Microsecond)
		}
		if err := calls[shared.IntN(len(calls))](); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		fmt.Fprint(digest, c.plans.arrivals.Vote, c.plans.arrivals.Uneven())
	}
	mine := binary.LittleEndian.AppendUint64(nil, digest.Sum64())
	all := make([]byte, len(mine)*c.size)
	if err := Allgather(c, mine, all); err != nil {
		return err
	}
	for r := range c.size {
		if theirs := all[len(mine)*r:][:len(mine)]; !slices.Equal(theirs, mine) {
			return fmt.Errorf("ranks %d and %d had different votes", c.rank, r)
		}
	}
	return nil
}

// TestVotesAddNoMessages checks that calls that carry votes and those that do not send the
// same number of messages.
func TestVotesAddNoMessages(t *testing.T) {
	var voted atomic.Int32
	runOnHosts(t, 6, 2, true, &wire{}, func(c *Comm) error {
		var want uint64
		call := newLateCall(c, lateForm{kind: coll.Allreduce}, 1, 0)
		for i := range 100 {
			before := c.World().Profile()
			if err := call.run(); err != nil {
				return err
			}
			after, a := c.World().Profile(), &c.plans.arrivals
			if p := c.plans.last[coll.Allreduce]; p.tried != nil && p.tried.graph != nil {
				return nil // the ranks did not arrive together; TestTrialEvenArrival simulates that they do
			}
			if a.Vote != 0 {
				voted.Add(1)
			}
			n := after.Of(prof.MessagesSent) - before.Of(prof.MessagesSent)
			if i == 0 {
				want = n
			}
			if n != want {
				return fmt.Errorf("call %d sent %d messages with the vote %d, the first call %d", i, n, a.Vote, want)
			}
		}
		return nil
	})
	if voted.Load() == 0 {
		t.Error("no call carried a vote")
	}
}

// TestNamedIsNotTried checks that an explicitly named algorithm is used unchanged.
func TestNamedIsNotTried(t *testing.T) {
	runOnHosts(t, 4, 2, true, &wire{}, func(c *Comm) error {
		d, err := c.DupWithCollective("allreduce=ring")
		if err != nil {
			return err
		}
		if err := lateCall(d, coll.Allreduce, 1, 0); err != nil {
			return err
		}
		if d.plans.last[coll.Allreduce].tried != nil {
			return errors.New("ring was named, but another algorithm may be tried")
		}
		return d.Free()
	})
}
