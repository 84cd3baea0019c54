package mpi

// Algorithms for one communicator instead of for the whole job: a duplicate may override
// Config.Collective (an info hint of MPI-4.1 section 7.4.2), so that one job can compare
// algorithms call by call.

import (
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
)

// preference overrides the job's choice of algorithms for a communicator.
type preference struct {
	forced string // as Config.Collective
	tuning *coll.Tuning
}

// DupWithCollective is [Comm.Dup] for a communicator whose collectives use certain
// algorithms, written as in Config.Collective: "allreduce=ring,bcast=chain:segment=8192".
// They take precedence over the configuration of the job. Duplicates of the result use them
// too. It is collective, and all ranks pass the same algorithms.
func (c *Comm) DupWithCollective(algorithms string) (*Comm, error) {
	h := c.beginCreate("DupWithCollective", CallCreate)
	d, err := c.dupWithCollective(algorithms)
	return d, h.finish(err)
}

func (c *Comm) dupWithCollective(algorithms string) (*Comm, error) {
	const op = "DupWithCollective"
	if c.inter != nil {
		return nil, c.refuse(ErrComm, op, "%s joins two groups; duplicate it with Dup", c.Name())
	}
	cfg := c.w.cfg
	cfg.Collective = strings.Trim(algorithms+","+c.forcedAlgorithms(), ",") // the first rule that fits applies
	tuning, err := readTuning(&cfg)
	if err != nil {
		return nil, c.refuse(ErrArg, op, "%w", err)
	}
	d, err := c.dup("Dup")
	if err != nil {
		return nil, err
	}
	d.prefer = &preference{forced: cfg.Collective, tuning: tuning}
	return d, nil
}

// forcedAlgorithms returns the value of Config.Collective for this communicator.
func (c *Comm) forcedAlgorithms() string {
	if c.prefer != nil {
		return c.prefer.forced
	}
	return c.w.cfg.Collective
}

// tuning returns the tuning table for this communicator.
func (c *Comm) tuning() *coll.Tuning {
	if c.prefer != nil {
		return c.prefer.tuning
	}
	return c.w.tuning
}
