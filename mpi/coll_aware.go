package mpi

// Calls whose messages go in the order in which ranks arrive, if arrival is uneven.
// Some algorithms have a form that sends the same messages in that order (package
// coll, pap.go and uneven.go). Every rank decides for itself at every call, since the
// others see no difference:
//
//	collective → adaptive      unaware, or aware; measured, or not
//	 └ engine tells the meter  how the call went, for the next decision
//
// A rank that names an algorithm (Config.Collective) gets that one: direct is not
// aware then, pap_direct always is.

import (
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// awareForm is what a plan keeps for the aware form of its algorithm.
type awareForm struct {
	coll.Uneven
	by    coll.Ranked
	shape coll.Shape
	graph *sched.Graph // made when it is wanted for the first time
	idle  engine.CollectivePool
}

// awareFrom is the shortest block for which the order matters: shorter ones are
// over when they are sent, on all devices.
const awareFrom = 4 << 10

// awareFormOf gives the aware form of a plan, or nil if there is none or it could
// gain nothing.
func (c *Comm) awareFormOf(p *plan, s *coll.Shape) *awareForm {
	a := p.by.Algorithm
	if a.Aware == "" || strings.Contains(c.w.cfg.Collective, a.Kind.String()+"=") {
		return nil
	}
	if bytes, known := s.Message(); !known || bytes < awareFrom || c.size < 3 {
		return nil
	}
	aware, err := coll.Find(a.Kind, a.Aware)
	if err != nil {
		return nil
	}
	return &awareForm{by: coll.Ranked{Algorithm: aware, Params: p.by.Params}, shape: *s}
}

// adaptive gives what runs a plan that has an aware form. The lock is held.
func (c *Comm) adaptive(p *plan, k *collCall) (*engine.Collective, error) {
	f := p.aware
	aware, measure := f.Next()
	co := (*engine.Collective)(nil)
	if aware {
		if f.graph == nil {
			g, err := f.by.Algorithm.Graph(&c.plans.build, &f.shape, f.by.Params)
			if err != nil {
				return nil, c.refuse(ErrIntern, k.name, "%w", err)
			}
			f.graph = g
		}
		co = c.taken(&f.idle, f.graph, k)
	} else {
		co = c.taken(&p.idle, p.graph, k)
	}
	co.Timed = measure
	if co.Meter = nil; aware || measure {
		co.Meter = f
	}
	return co, nil
}
