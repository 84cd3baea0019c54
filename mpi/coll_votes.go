package mpi

// Blocking calls between hosts that change to an arrival-aware algorithm with other
// messages than the default, on all ranks at the same call (package coll, trial.go):
//
//	addTrial          which algorithm there is to try, when a plan is made
//	votedCollective   the default algorithm or the other, for one call
//	votedCall.run     runs it; its messages carry votes on the times of earlier calls
//
// A rank that names an algorithm (Config.Collective) gets that one.

import (
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// triedPlan is an arrival-aware algorithm for the calls of a plan.
type triedPlan struct {
	by      coll.Ranked
	shape   coll.Shape
	graph   *sched.Graph // made when first needed, with segment
	idle    engine.CollectivePool
	segment *segmentForm // with the node phases in a segment; nil: there is no such form
}

// addTrial determines the algorithm to try for a plan. All ranks find the same.
func (c *Comm) addTrial(p *plan, s *coll.Shape) {
	if s.Nodes == nil {
		return
	}
	asked := *s
	asked.InPlace = false // see chooseLocked
	if by, ok := coll.AwareOf(&asked, &c.plans.choice.model, p.by); ok && !strings.Contains(c.forcedAlgorithms(), s.Kind.String()+"=") {
		p.tried = &triedPlan{by: by, shape: *s}
	}
	p.trial = c.plans.arrivals.Trial(s, p.tried != nil)
}

// votedCall is a blocking call under way.
type votedCall struct {
	co    *engine.Collective
	trial *coll.Trial // or nil
	timed bool
}

// votedCollective returns what runs a blocking call.
func (c *Comm) votedCollective(h *engine.Held, k *collCall) (v votedCall, err error) {
	p, err := c.planLocked(k)
	if err != nil {
		return v, err
	}
	if p.trial == nil {
		v.co, err = c.blockingCollective(h, p, k)
		return v, err
	}
	votes := &c.plans.arrivals
	aware, voting, timed := votes.Begin(p.trial)
	v.trial, v.timed = p.trial, timed
	if aware {
		v.co, err = p.tried.collective(c, h, k)
	} else {
		v.co, err = c.blockingCollective(h, p, k)
	}
	if err == nil && voting {
		v.co.Vote = &votes.Vote
	}
	return v, err
}

// collective returns what runs a call with the algorithm that is tried.
func (t *triedPlan) collective(c *Comm, h *engine.Held, k *collCall) (*engine.Collective, error) {
	if t.graph == nil {
		g, err := t.by.Algorithm.Graph(&c.plans.build, &t.shape, t.by.Params)
		if err == nil {
			t.segment, err = c.segmentFormOf(t.by, &t.shape)
		}
		if err != nil {
			return nil, c.refuse(ErrIntern, k.name, "%w", err)
		}
		t.graph = g
	}
	if co, err := c.inRegion(h, t.segment, k); co != nil || err != nil {
		return co, err
	}
	return c.takeCollective(h, &t.idle, t.graph, k), nil
}

// run runs the call.
func (v *votedCall) run(c *Comm, h *engine.Held, k *collCall) error {
	if v.trial == nil {
		return h.RunCollective(v.co, k.in, k.out)
	}
	var began time.Time
	if v.timed {
		began = time.Now()
	}
	err := h.RunCollective(v.co, k.in, k.out)
	took := time.Duration(0)
	if v.timed {
		took = time.Since(began)
	}
	c.plans.arrivals.End(v.trial, took.Nanoseconds())
	return err
}
