package core

// Communicators that have lost a rank: MPICH's names for the calls of the MPI Forum's
// proposal for fault tolerance. The job survives a failure with MUSTER_ON_FAILURE=return.

import (
	"slices"

	"github.com/muster-mpi/muster/mpi"
)

func failures() map[string]handler {
	return map[string]handler{
		"MPIX_Comm_revoke": (*Process).commRevoke,
		// Of the proposal; MPICH 4.0 does not have it.
		"MPIX_Comm_is_revoked":        queryFlag((*args).comm, (*comm).Revoked),
		"MPIX_Comm_shrink":            (*Process).commShrink,
		"MPIX_Comm_agree":             (*Process).commAgree,
		"MPIX_Comm_iagree":            (*Process).commIagree,
		"MPIX_Comm_failure_ack":       (*Process).commFailureAck,
		"MPIX_Comm_failure_get_acked": (*Process).commFailureGetAcked,
	}
}

func (p *Process) commRevoke(a *args) error {
	c := a.comm(0)
	return c.Revoke()
}

func (p *Process) commShrink(a *args) error {
	c := a.comm(0)
	d, err := c.Shrink()
	if err == nil {
		a.addComm(1, d, c)
	}
	return err
}

// commAgree returns an error, with the flag set, if a rank has failed whose failure this
// rank has not acknowledged, as the proposal demands.
func (p *Process) commAgree(a *args) error {
	c := a.comm(0)
	g := c.agreement(at[int32](a.addr(1)))
	g.run()
	return g.finish()
}

// commIagree is of the proposal; MPICH 4.0 does not have it. The agreement is made by a
// goroutine of its own.
func (p *Process) commIagree(a *args) error {
	c := a.comm(0)
	g := c.agreement(at[int32](a.addr(1)))
	c.agreed = g.done
	go g.run()
	p.addRequest(a, 2, &request{op: g, comm: c, send: true, done: g.finish})
	return nil
}

// agreement is a call of MPIX_Comm_agree or MPIX_Comm_iagree.
type agreement struct {
	c      *comm
	at     *int32        // the flag of the program
	flag   uint64        // its value, then the result
	before chan struct{} // closed at the end of the agreement before, which comes first; may be nil
	done   chan struct{}
	failed []int
	err    error
}

func (c *comm) agreement(flag *int32) *agreement {
	return &agreement{c: c, at: flag, flag: uint64(int64(*flag)), before: c.agreed, done: make(chan struct{})}
}

func (g *agreement) run() {
	if g.before != nil {
		<-g.before
	}
	g.flag, g.failed, g.err = g.c.Agree(g.flag)
	close(g.done)
}

// finish gives the program the result.
func (g *agreement) finish() error {
	if g.err != nil {
		return g.err
	}
	*g.at = int32(g.flag)
	for _, rank := range g.failed {
		if !slices.Contains(g.c.acked, rank) {
			return errorf(errProcFailed, "rank %d has failed, and MPIX_Comm_failure_ack has not acknowledged it", rank)
		}
	}
	return nil
}

func (g *agreement) ready() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

func (g *agreement) result() (mpi.Status, error) { return mpi.Status{}, nil }

func (p *Process) commFailureAck(a *args) error {
	if c := a.comm(0); a.err == nil {
		c.acked = c.AckFailed()
	}
	return nil
}

func (p *Process) commFailureGetAcked(a *args) error {
	c := a.comm(0)
	g, err := c.Group().Include(c.acked...)
	if err == nil {
		a.setGroup(1, g, nil)
	}
	return err
}
