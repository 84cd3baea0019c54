package mpi

// Idup: a duplicate that is made while the rank goes on. The ranks have to agree on a
// context id, with two reductions or more. They are persistent reductions, prepared by
// the call itself, so that their tags depend on the order of the calls only. A goroutine
// runs them: each depends on the one before, and they must advance while the rank waits
// for something else (MPI-4.1 section 2.9, progress). In the end the goroutine sends an
// empty message to the rank itself, for which the request waits like any other.

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// commStart is a communicator that is being made.
type commStart struct{ err error }

// Idup starts a [Comm.Dup]. The communicator may be used when the request is complete
// without an error; c must not be freed before. All ranks of c call it, in the same order
// as their other collective calls on c.
func (c *Comm) Idup() (*Comm, Request) {
	h := c.beginStart("Idup", CallCreate, ProcNull, AnyTag, 0)
	d, r := c.idup()
	return d, h.finishStart(r)
}

func (c *Comm) idup() (*Comm, Request) {
	const op = "Idup"
	if err := c.usable(op); err != nil {
		return nil, c.refusedRequest(err)
	}
	d := *c
	d.name, d.plans, d.node = engine.NewName(c.Name()+".dup"), nil, nil
	var finish func() error
	if c.inter == nil {
		agree := c.startAgreement(op, 2*uint32(c.idups))
		finish = func() (err error) {
			d.ctx, err = agree()
			return err
		}
	} else {
		both := c.inter.both.startAgreement(op, 2*uint32(c.idups))
		between := c.inter.both.startAgreement(op, 2*uint32(c.idups)+1)
		finish = func() error {
			g := *c.inter
			inner := *g.both
			inner.name, inner.plans, inner.node = engine.NewName(g.both.Name()+".dup"), nil, nil
			var err, errBetween error
			inner.ctx, err = both()
			d.ctx, errBetween = between() // in any case: the call has begun it
			if err == nil {
				err = errBetween
			}
			if err == nil {
				g.both, d.inter = inner.ready(), &g
			}
			return err
		}
	}
	start := &commStart{}
	r := c.afterwards(op, func() {
		if start.err = finish(); start.err == nil {
			d.ready()
		}
	})
	return &d, r.with(func(more *requestMore) { more.made, more.noStatus = start, true })
}

// startAgreement begins an agreement on a context id (agree), the n-th of its kind. The
// returned function completes it, in any goroutine.
func (c *Comm) startAgreement(op string, n uint32) func() (uint32, error) {
	v := make([]uint32, 1)
	var steps [2]*Persistent // agreeBy alternates between Max and Min
	var compared *callCheck
	for i, by := range []Op[uint32]{Max[uint32](), Min[uint32]()} {
		var k collCall
		a := allreduceArgs(c, v, v, by)
		err := a.resolve(&k, op)
		if err == nil && i == 0 {
			compared = c.startCheck(&k, coll.Started)
		}
		k.noted, k.inner = true, true
		steps[i] = prepareColl(c, &k, &by, err)
	}
	return func() (uint32, error) {
		if err := compared.compare(); err != nil {
			return 0, err
		}
		next := 0
		return c.agreeBy(op, spread(c.ctx, n), func(in []uint32, _ func() Op[uint32]) error {
			v[0] = in[0]
			_, err := steps[next].start().wait(engine.NoContext)
			next = 1 - next
			in[0] = v[0]
			return err
		})
	}
}

// afterwards calls fn in a goroutine. The request is complete when fn has returned.
func (c *Comm) afterwards(op string, fn func()) Request {
	h := c.e.Hold()
	c.initHistory(h)
	tag := int32(engine.MadeTag + c.idups%engine.MadeTags)
	c.idups++
	h.Release()
	me := c.w.comm.rank
	r := Request{c: c, op: c.e.Irecv(&c.co, me, c.co.Rank, tag, nil)}
	c.w.background.Add(1)
	go func() {
		defer c.w.background.Done()
		fn()
		_, _ = c.e.Wait(engine.NoContext, &c.co, op, c.e.Isend(&c.co, me, tag, nil, p2p.Standard)) // to itself; it cannot fail
	}()
	if c.w.cfg.Check {
		r = c.trackRequest(r, &checkedRequest{what: op + atSite(c.callSite())})
	}
	return r
}
