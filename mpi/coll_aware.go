package mpi

// Calls whose messages follow the order in which ranks arrive, if arrival is uneven. Some
// algorithms have a form that sends the same messages in that order (package coll, pap.go
// and uneven.go). Every rank decides for itself at every call, because the others see no
// difference:
//
//	collective → adaptive           unaware or aware; measured or not
//	preparedColl.next               the same for the next start of a persistent collective
//	 └ engine updates the meter     with the times of the call, for the next decision
//
// Calls with irregular lengths (Alltoallv) seldom have the same ones twice, and a schedule
// serves one set of lengths: so the communicator keeps their history, not the schedule.
//
// A rank that names an algorithm (Config.Collective) gets that one: direct is not aware
// then, pap_direct always is.

import (
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// awareForm is the part of a plan for the aware form of its algorithm.
type awareForm struct {
	*coll.Uneven
	by    coll.Ranked
	shape coll.Shape
	graph *sched.Graph // made when first needed
	idle  engine.CollectivePool
}

// awareFormOf returns the aware form of a plan, or nil if there is none or it could gain
// nothing.
func (c *Comm) awareFormOf(p *plan, s *coll.Shape) *awareForm {
	a := p.by.Algorithm
	if a.Aware == "" || a.Generates(s) || strings.Contains(c.forcedAlgorithms(), a.Kind.String()+"=") {
		return nil
	}
	bytes, known := s.Message()
	if !known && a.Kind == coll.Alltoall {
		bytes = s.LongestSent() // other ranks may decide differently
	}
	if bytes < coll.AwareFrom || c.size < 3 {
		return nil
	}
	aware, err := coll.Find(a.Kind, a.Aware)
	if err != nil {
		return nil
	}
	f := &awareForm{by: coll.Ranked{Algorithm: aware, Params: p.by.Params}, shape: *s}
	if f.Uneven = new(coll.Uneven); p.key.irregular {
		f.Uneven = c.plans.unevenOf(a.Kind)
	}
	return f
}

// unevenOf returns the arrival history of calls of a kind whose lengths differ.
func (ps *collPlans) unevenOf(kind coll.Kind) *coll.Uneven {
	u := &ps.uneven[kind]
	if *u == nil {
		*u = new(coll.Uneven)
	}
	return *u
}

// adaptive returns what runs a plan that has an aware form.
func (c *Comm) adaptive(h *engine.Held, p *plan, k *collCall) (*engine.Collective, error) {
	f := p.aware
	aware, measure := f.Next()
	co := (*engine.Collective)(nil)
	if aware {
		if err := f.build(c, k.name); err != nil {
			return nil, err
		}
		co = c.takeCollective(h, &f.idle, f.graph, k)
	} else {
		co = c.takeCollective(h, &p.idle, p.graph, k)
	}
	f.watch(co, aware, measure)
	return co, nil
}

// build makes the graph, once.
func (f *awareForm) build(c *Comm, name string) error {
	if f.graph != nil {
		return nil
	}
	g, err := f.by.Algorithm.Graph(&c.plans.build, &f.shape, f.by.Params)
	if err != nil {
		return c.refuse(ErrIntern, name, "%w", err)
	}
	f.graph = g
	return nil
}

// watch lets the meter measure the next run.
func (f *awareForm) watch(co *engine.Collective, aware, measure bool) {
	co.Timed = measure
	if co.Meter = nil; aware || measure {
		co.Meter = f
	}
}

// forPersistent returns the form for a persistent collective, which has its own history.
func (f *awareForm) forPersistent() *awareForm {
	if f == nil {
		return nil
	}
	return &awareForm{Uneven: new(coll.Uneven), by: f.by, shape: f.shape, graph: f.graph}
}

// next returns what runs the next start. Its two forms have the same tag, because they send
// the same messages.
func (k *preparedColl) next(c *Comm, h *engine.Held) (*engine.Collective, error) {
	f := k.form
	if f == nil {
		return k.co, nil
	}
	aware, measure := f.Next()
	co := k.co
	if aware {
		if k.aware == nil {
			if err := f.build(c, co.Call); err != nil {
				return nil, err
			}
			k.aware = h.NewCollective(f.graph, &c.co, c.collRanks(), nil)
			k.aware.CollectiveCall = co.CollectiveCall
		}
		co = k.aware
	}
	f.watch(co, aware, measure)
	return co, nil
}

// activeLocked reports whether it was started and is not complete.
func (k *preparedColl) activeLocked() bool {
	return k.co.Active() || k.aware != nil && k.aware.Active()
}
