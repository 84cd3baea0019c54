package core

// Communicators that have lost a rank: MPICH's names for the calls of the MPI Forum's
// proposal for fault tolerance. The job survives a failure with MUSTER_ON_FAILURE=return.

import "slices"

func failures() map[string]handler {
	return map[string]handler{
		"MPIX_Comm_revoke":            (*Process).commRevoke,
		"MPIX_Comm_is_revoked":        (*Process).commIsRevoked,
		"MPIX_Comm_shrink":            (*Process).commShrink,
		"MPIX_Comm_agree":             (*Process).commAgree,
		"MPIX_Comm_failure_ack":       (*Process).commFailureAck,
		"MPIX_Comm_failure_get_acked": (*Process).commFailureGetAcked,
	}
}

func (p *Process) commRevoke(a *args) error {
	c := a.comm(0)
	if a.err != nil {
		return nil
	}
	return c.Revoke()
}

// commIsRevoked is of the proposal; MPICH 4.0 does not have it.
func (p *Process) commIsRevoked(a *args) error {
	c := a.comm(0)
	a.results(1)
	if a.err == nil {
		a.setFlag(1, c.Revoked())
	}
	return nil
}

func (p *Process) commShrink(a *args) error {
	c := a.comm(0)
	a.results(1)
	if a.err != nil {
		return nil
	}
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
	a.results(1)
	if a.err != nil {
		return nil
	}
	flag, failed, err := c.Agree(uint64(int64(*at[int32](a.addr(1)))))
	if err != nil {
		return err
	}
	a.setInt(1, int(int32(flag)))
	for _, rank := range failed {
		if !slices.Contains(c.acked, rank) {
			return errorf(errProcFailed, "rank %d has failed, and MPIX_Comm_failure_ack has not acknowledged it", rank)
		}
	}
	return nil
}

func (p *Process) commFailureAck(a *args) error {
	if c := a.comm(0); a.err == nil {
		c.acked = c.AckFailed()
	}
	return nil
}

func (p *Process) commFailureGetAcked(a *args) error {
	c := a.comm(0)
	a.results(1)
	if a.err != nil {
		return nil
	}
	g, err := c.Group().Include(c.acked...)
	if err == nil {
		a.setGroup(1, g)
	}
	return err
}
