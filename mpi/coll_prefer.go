package mpi

// Algorithms for one communicator instead of for the whole job. What Config.Collective
// forces, a duplicate may have otherwise (the hints of MPI-4.1 section 7.4.2, for one
// hint): so one job can compare algorithms call by call.

import (
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
)

// preference is what a communicator has in place of the job's choice.
type preference struct {
	forced string // as Config.Collective
	tuning *coll.Tuning
}

// DupWithCollective is Dup for a communicator whose collectives use certain algorithms,
// written as in Config.Collective: "allreduce=ring,bcast=chain:segment=8192". They come
// before what the job is configured to use. Duplicates of the result have them too.
// It is collective, and all ranks give the same.
func (c *Comm) DupWithCollective(algorithms string) (*Comm, error) {
	const op = "DupWithCollective"
	if c.inter != nil {
		return nil, c.refuse(ErrComm, op, "%s joins two groups; duplicate it with Dup", c.name)
	}
	cfg := c.w.cfg
	cfg.Collective = strings.Trim(algorithms+","+c.forced(), ",") // the first rule that fits is taken
	tuning, err := readTuning(&cfg)
	if err != nil {
		return nil, c.refuse(ErrArg, op, "%w", err)
	}
	d, err := c.Dup()
	if err != nil {
		return nil, err
	}
	d.prefer = &preference{forced: cfg.Collective, tuning: tuning}
	return d, nil
}

// forced is what Config.Collective is for this communicator.
func (c *Comm) forced() string {
	if c.prefer != nil {
		return c.prefer.forced
	}
	return c.w.cfg.Collective
}

// tuning is the table of what is wanted of this communicator.
func (c *Comm) tuning() *coll.Tuning {
	if c.prefer != nil {
		return c.prefer.tuning
	}
	return c.w.tuning
}
