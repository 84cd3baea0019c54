package mpi

// Recovery from failures: Recover calls a function of the program again, on a communicator
// without the failed ranks. Everything is decided by agreements on one communicator, which
// the program does not see and which is never shrunken (decision 112).

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/ft"
	"github.com/muster-mpi/muster/internal/pmi"
)

// Attempt describes a call of the function given to [Recover].
type Attempt struct {
	// Number is 1 for the first attempt of the ranks. It is the same on all ranks.
	Number int
	// Failed are the ranks that have failed since the attempt before, by their numbers in
	// it. The first attempt has none.
	Failed []int
	// New reports whether this process is a spare that has taken the place of a failed
	// rank, or was started for that. It has not been in an attempt before.
	New bool
}

// Recover returns a function for [Main] that calls fn until all ranks have returned nil and
// none has failed meanwhile:
//
//	func main() { mpi.Main(mpi.Recover(work)) }
//
// When a rank fails, or fn returns an error of the class [ErrProcFailed] or [ErrRevoked], or any error after a failure, on
// some rank, all communicators are revoked, so that fn returns on every rank, and fn is called
// again with a new communicator. Spare processes ("muster run --spares") take the places
// of the failed ranks, and then processes that the launcher starts for that ("muster run --respawn"); size
// and rank numbers stay. When there are no more of them, the communicator has fewer ranks, in the same
// order.
//
// Ranks that have returned nil wait for the others, and fn is called again on them too if one of
// the others fails. So fn must be able to run again: it makes its communicators and windows
// itself, from the one that it is given, and gets back what was computed before with
// [Restore]. It returns the errors of all calls, and does not call [Comm.Agree] or [Comm.Shrink], which
// wait also for ranks that have returned.
//
// Any other error of fn ends the attempts: all ranks return an error.
//
// In jobs that end with a failure (Config.OnFailure), Recover calls fn once.
func Recover(fn func(c *Comm, a Attempt) error) func(world *Comm) error {
	return func(world *Comm) error {
		if !world.e.Tolerates() {
			return fn(world, Attempt{Number: 1})
		}
		r, err := world.recovery()
		if err == nil && r.joining {
			err = r.prepare(nil)
		}
		for err == nil {
			var done bool
			if done, err = r.attemptOnce(fn); done {
				break
			}
		}
		return err
	}
}

// recovery is the state of Recover in one process. Everything but comm and attempt.New is the
// same in all processes.
type recovery struct {
	full    *Comm   // all processes, with those that have failed; for agreements
	comm    *Comm   // of the attempt; nil in a process that waits as a spare
	first   *Comm   // of the first attempt, which the program owns
	members []int   // the ranks in full of the ranks of comm
	spares  []int   // further ranks of full that may be alive, in the order of their use
	attempt Attempt // the next
	idle    int     // attempts in a row in which no rank has failed
	respawn bool    // the launcher may start processes in place of failed ranks
	joining bool    // this process was started so, and has not been in an attempt
	lost    []int   // ranks of the attempt before that have failed, until the next begins
	tries   int     // to replace ranks since that attempt
}

// recovery returns the state for c: of the world the one before, if there is one.
func (c *Comm) recovery() (*recovery, error) {
	const op = "Recover"
	w := c.w
	if c == w.user && w.recovered != nil {
		return w.recovered, nil
	}
	r := &recovery{comm: c, first: c, attempt: Attempt{Number: 1}, respawn: c == w.user && os.Getenv(pmi.EnvRespawn) != "" && w.canSpawn()}
	if p := w.joins.replaces; p != nil && c == w.user {
		w.recovered = p.recovery(r)
		return w.recovered, nil
	}
	if w.spares > 0 {
		if c != w.user {
			return nil, c.refuse(ErrComm, op, "spare processes can only replace ranks of the world; call it with World.Comm")
		}
		n := w.comm.size - w.spares
		r.full, r.members, r.spares = w.comm, sequence(0, n), sequence(n, w.comm.size)
		if w.comm.rank >= n {
			r.comm, r.first = nil, nil
		}
	} else {
		if err := c.intra(op); err != nil {
			return nil, err
		}
		id, _, err := c.agreeContext(op, false)
		if err != nil {
			return nil, err
		}
		r.members = sequence(0, c.size)
		r.full = c.sub(id, listOf(r.members), c.Name()+".recover")
	}
	if c == w.user {
		w.recovered = r
	}
	return r, nil
}

// sequence returns the ranks from first to the one before end.
func sequence(first, end int) []int {
	s := make([]int, end-first)
	for i := range s {
		s[i] = first + i
	}
	return s
}

// Flags of the agreement after an attempt. A rank contributes both if fn has returned nil.
const (
	attemptSucceeded = 1 << iota // no rank has returned an error
	attemptGoesOn                // no rank has returned an error that ends the attempts
)

// maxIdle bounds the attempts in a row that end with an error although no rank has failed: a
// rank that is alive and cannot be reached fails every time.
const maxIdle = 10

// attemptOnce calls fn once. Unless that was the last call, it prepares the next.
func (r *recovery) attemptOnce(fn func(c *Comm, a Attempt) error) (done bool, err error) {
	var failure error
	flag, culprit := uint64(attemptSucceeded|attemptGoesOn), uint64(0)
	if r.comm != nil { // not a spare
		failure = fn(r.comm, r.attempt)
	}
	if failure != nil {
		flag = attemptGoesOn
		if !r.isFailure(failure) {
			flag, culprit = 0, uint64(r.full.rank)
		}
		r.full.e.RevokeAll(r.full.co.Ctx)
	}
	v, err := r.full.agreeAlive(engine.NoContext, "Recover", flag, culprit)
	switch {
	case err != nil:
		return true, errors.Join(failure, err)
	case v.Flag&attemptGoesOn == 0 && culprit == uint64(r.full.rank) && flag == 0:
		return true, failure
	case v.Flag&attemptGoesOn == 0:
		return true, r.full.refuse(ErrOther, "Recover", "rank %d has returned an error that is not the failure of a rank", r.rankOf(int(v.Number)))
	case v.Flag&attemptSucceeded != 0 && len(r.failedRanks(v.Failed)) == 0:
		return true, nil
	}
	return false, r.prepare(failure)
}

// isFailure reports whether an error of fn comes from the failure of a rank: by its class, or
// because there is a failure, which the program may have reported in its own words. If it was
// something else, it comes back in the next attempt.
func (r *recovery) isFailure(err error) bool {
	return errors.Is(err, ErrProcFailed) || errors.Is(err, ErrRevoked) || r.comm.Revoked() || len(r.comm.Failed()) > 0
}

// rankOf returns the rank in the attempt of a process.
func (r *recovery) rankOf(process int) int { return slices.Index(r.members, process) }

// failedRanks returns the ranks of the attempt that have failed.
func (r *recovery) failedRanks(failed ft.Set) (ranks []int) {
	for rank, m := range r.members {
		if failed.Has(int32(m)) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// prepare makes the communicator of the next attempt.
func (r *recovery) prepare(failure error) error {
	id, members, lost, err := r.refillAll()
	if err != nil {
		return errors.Join(failure, err)
	}
	if r.idle++; len(lost) > 0 {
		r.idle = 0
	}
	if r.idle == maxIdle {
		err := r.full.refuse(ErrOther, "Recover", "%d attempts in a row have failed although all ranks are alive", maxIdle)
		return errors.Join(err, failure)
	}
	if r.comm != nil && r.comm != r.first {
		_ = r.comm.free() // what is left of it cannot keep the ranks from going on
	}
	r.attempt = Attempt{Number: r.attempt.Number + 1, Failed: lost, New: r.comm == nil}
	r.members, r.comm, r.joining = members, nil, false
	if r.rankOf(r.full.rank) >= 0 {
		r.comm = r.full.sub(id, listOf(r.members), fmt.Sprintf("world.attempt(%d)", r.attempt.Number))
	}
	return nil
}

// refill replaces the failed members by spares that are alive, the first ones first. Those
// for which there is none are left out.
func refill(members, spares []int, failed ft.Set) (alive, left []int) {
	for _, s := range spares {
		if !failed.Has(int32(s)) {
			left = append(left, s)
		}
	}
	for _, m := range members {
		switch {
		case !failed.Has(int32(m)):
			alive = append(alive, m)
		case len(left) > 0:
			alive, left = append(alive, left[0]), left[1:]
		}
	}
	return alive, left
}

// agreeContext agrees with the ranks of c that are alive on a free context id, as agreeBy does
// among ranks that do not fail, and on the ranks that have failed. With slots, which only
// ranks of one host may ask for, they also find a slot for the agreements of the new
// communicator.
func (c *Comm) agreeContext(op string, slots bool) (id uint32, failed ft.Set, err error) {
	floor := uint32(0)
	for attempt := range uint32(1000) {
		v, err := c.agreeAlive(engine.NoContext, op, 0, uint64(max(c.w.ids.propose(), floor)))
		if err != nil {
			return 0, nil, err
		}
		id := uint32(v.Number)
		if id > lastContext {
			return 0, nil, c.refuse(ErrNoMem, op, "there are no more context ids")
		}
		reserved := uint64(0)
		if c.w.ids.reserve(id) {
			reserved = 1
			if slots {
				reserved |= uint64(c.e.OfferSlots(id+1)) << 1
			}
		}
		v, err = c.agreeAlive(engine.NoContext, op, reserved, 0)
		c.e.SettleSlots(id+1, uint8(v.Flag>>1))
		if err != nil {
			return 0, nil, err
		}
		if v.Flag&1 == 1 {
			return id, v.Failed, nil
		}
		if reserved != 0 {
			c.w.ids.release(id)
		}
		floor = afterCollision(id, c.ctx, attempt)
	}
	return 0, nil, c.refuse(ErrIntern, op, "the ranks could not agree on a context id")
}
