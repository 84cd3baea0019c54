package mpi

// Communicators that have lost a rank, in jobs with Config.OnFailure "return". The calls
// follow the MPI Forum's proposal for fault tolerance (User Level Failure Mitigation): what
// involves a failed rank returns an error, everything else works on, and the program
// decides what to do. Package ft has the agreement, internal/engine/tolerate.go the rest.

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/ft"
	"github.com/muster-mpi/muster/internal/pmi"
)

// onFailureReturn is the Config.OnFailure of a job that survives failures.
const onFailureReturn = pmi.OnFailureReturn

// hintFailed is what to do after a failure, hintRevoked after a revocation.
const (
	hintFailed  = "Revoke the communicator, and go on with the one that Shrink returns"
	hintRevoked = "go on with the communicator that Shrink returns"
)

// checkOnFailure returns an error for a job that cannot survive a failure.
func checkOnFailure(cfg *Config, client pmi.Client) error {
	if cfg.OnFailure == onFailureReturn && client.Board() == nil {
		return fmt.Errorf("mpi: Config.OnFailure (MUSTER_ON_FAILURE) is %s, which needs the launcher \"muster run\" on Linux: "+
			"nothing else reports failed ranks to the others and lets them run on", onFailureReturn)
	}
	return nil
}

// Failed returns the ranks of c that have failed, as far as this rank knows, in the order in
// which it learned of them. For an inter-communicator they are numbered as after [Comm.Merge],
// the group whose ranks pass [MergeLow] first.
func (c *Comm) Failed() []int {
	failed, _ := c.e.MemberFailed(c.co.Ctx, false)
	return failed
}

// AckFailed acknowledges the failures on c that this rank knows and returns the failed
// ranks. Receives from [AnySource] return an error while there is a failure that is not
// acknowledged: the failed rank may have been the sender. Afterwards they wait for the
// other ranks.
func (c *Comm) AckFailed() []int {
	failed, _ := c.e.MemberFailed(c.co.Ctx, true)
	return failed
}

// Revoke ends all operations on c, on all its ranks: calls that wait, and all later ones
// except Agree, Shrink, Failed, AckFailed and Free, return an error of the class
// [ErrRevoked]. A rank calls it when it gets an error and other ranks may wait for a
// message that it will not send. It is not collective and does not wait.
func (c *Comm) Revoke() error {
	h := c.begin("Revoke", CallSync, ProcNull, AnyTag, 0)
	err := c.tolerant("Revoke")
	if err == nil {
		c.e.Revoke(c.co.Ctx)
	}
	return h.finish(err)
}

// Revoked reports whether c has been revoked, as far as this rank knows.
func (c *Comm) Revoked() bool { return c.e.Revocation(c.co.Ctx) != nil }

// Agree returns the bitwise and of the flags of all ranks of c and the ranks of c that have
// failed, both the same on all ranks: also on ranks that die after they have returned, and
// although ranks die meanwhile. A rank that fails during the call may be among the failed
// ones or not; the result covers the flags of all others. It is collective, and works
// on a revoked communicator.
func (c *Comm) Agree(flag uint64) (agreed uint64, failed []int, err error) {
	h := c.begin("Agree", CallCollective, ProcNull, AnyTag, 0)
	v, err := c.agreeAlive(engine.NoContext, "Agree", flag, 0)
	for _, r := range v.Failed {
		failed = append(failed, int(r))
	}
	return v.Flag, failed, h.finish(err)
}

// Shrink returns a communicator of the ranks of c that are alive, in the same order. Ranks
// that fail during the call may be members; then calls on it return an error, and Shrink
// can be called on it. It is collective, and works on a revoked communicator.
func (c *Comm) Shrink() (*Comm, error) {
	h := c.beginCreate("Shrink", CallCreate)
	s, err := c.shrink("Shrink")
	return s, h.finish(err)
}

func (c *Comm) shrink(op string) (*Comm, error) {
	if err := c.intra(op); err != nil {
		return nil, err
	}
	id, failed, err := c.agreeContext(op, c.onHost())
	if err != nil {
		return nil, err
	}
	return c.sub(id, listOf(c.survivors(failed)), c.Name()+".shrink"), nil
}

// onHost reports whether all ranks of c are on this host and may share memory.
func (c *Comm) onHost() bool {
	if c.w.cfg.NoSharedMemory {
		return false
	}
	if c.w.client.LocalSize() == c.w.client.Size() {
		return true
	}
	home := c.w.client.Node(c.w.client.Rank())
	for r := range c.co.Size {
		if c.w.client.Node(c.co.Ranks.At(r)) != home {
			return false
		}
	}
	return true
}

// survivors returns the ranks of c that are not in a set.
func (c *Comm) survivors(failed ft.Set) []int {
	alive := make([]int, 0, c.size)
	for r := range c.size {
		if !failed.Has(int32(r)) {
			alive = append(alive, r)
		}
	}
	return alive
}

// agreeAlive agrees among the ranks of c that are alive.
func (c *Comm) agreeAlive(ctx context.Context, op string, flag, number uint64) (ft.Value, error) {
	if err := c.tolerant(op); err != nil {
		return ft.Value{}, err
	}
	v, err := c.e.Agree(ctx, &c.co, op, flag, number)
	if err != nil {
		err = c.failure(err, op, ProcNull, noTag, 0)
	}
	return v, err
}

// tolerant returns an error if the job does not survive failures.
func (c *Comm) tolerant(op string) error {
	if err := c.usable(op); err != nil {
		return err
	}
	if !c.e.Tolerates() {
		return c.refuse(ErrUnsupported, op, "a failure ends this job; set Config.OnFailure (MUSTER_ON_FAILURE) to %s", onFailureReturn)
	}
	return nil
}

// lostFailure returns the error of a call on a communicator that has lost a rank or was
// revoked, or nil if err is another one.
func (c *Comm) lostFailure(op string, err error) error {
	class := c.classOf(err)
	if class != ErrProcFailed && class != ErrRevoked {
		return nil
	}
	return c.lossError(op, class, err)
}

func (c *Comm) lossError(op string, class Class, err error) *Error {
	e := &Error{Class: class, Op: op, Comm: c.Name(), Rank: c.rank, Peer: ProcNull, Tag: noTag, Err: err, Hint: hintFailed}
	if class == ErrRevoked {
		e.Hint = hintRevoked
	}
	return e
}

// farewell is how long a rank that leaves waits until all others have passed the first
// agreement of Finalize. A rank that it waits for may have left.
const farewell = time.Second

// finalizeAlive is the barrier of Finalize among the ranks that are alive. Nobody needs this
// rank for the first agreement any more when the second is decided. The last messages of the
// second may be lost with the rank that sends them, so it has a time limit.
func (w *World) finalizeAlive() error {
	if _, err := w.comm.agreeAlive(engine.NoContext, "Finalize", 0, 0); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_, _ = w.comm.agreeAlive(ctx, "Finalize", 0, 0)
	return nil
}
