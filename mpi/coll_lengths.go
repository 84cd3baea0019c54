package mpi

// Lengths of blocks that ranks hand on. In an Alltoallv by columns a rank forwards blocks
// between two others, and needs their lengths before it can make its schedule (package
// coll, nodes_alltoall_lengths.go). Blocking calls exchange them first; persistent ones do
// so once, when they are prepared. A non-blocking call may not wait, and uses another
// algorithm.
//
// No rank knows the lengths of all, so no cost is compared: the exchange is made if the
// configuration names the algorithm (Config.Collective, Config.Tuning).

import (
	"encoding/binary"
	"slices"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/sched"
)

// lengthBytes is the size of a length in a message.
const lengthBytes = 8

// lengthsPlan exchanges the lengths of the blocks of a communicator's calls.
type lengthsPlan struct {
	graph   *sched.Graph
	idle    engine.CollectivePool
	in, out []byte
}

// learnLengths exchanges the lengths of a call whose algorithm needs them. All ranks of a
// call do or none.
func (c *Comm) learnLengths(h *engine.Held, k *collCall) error {
	if k.key.kind != coll.Alltoall || !k.key.irregular || c.inter != nil || !c.tuning().MayCarry() {
		return nil
	}
	if c.plans == nil {
		c.plans = &collPlans{}
	}
	s := c.shape(k)
	if !c.tuning().Carries(&s) {
		return nil
	}
	l, err := c.lengthsPlan(&s)
	if err != nil {
		return c.refuse(ErrIntern, k.name, "%w", err)
	}
	next := 0
	s.Lengths(func(bytes int) {
		binary.LittleEndian.PutUint64(l.in[next:], uint64(bytes))
		next += lengthBytes
	})
	co := c.takeCollective(h, &l.idle, l.graph, k)
	c.number(h, co, k, coll.Blocking, engine.BlockingTag)
	if err := h.RunCollective(co, l.in, l.out); err != nil {
		return err
	}
	next = 0
	err = s.SetCarried(func() int {
		next += lengthBytes
		return int(binary.LittleEndian.Uint64(l.out[next-lengthBytes:]))
	})
	if err != nil { // only this rank has noticed; the others would wait for its blocks
		h.Break(&c.co, err)
		return c.faultError(k.name, ErrOther, err.Error())
	}
	k.carried = s.Carried
	return nil
}

// lengthsPlan returns the plan of the exchange, which all calls of the communicator share.
func (c *Comm) lengthsPlan(s *coll.Shape) (*lengthsPlan, error) {
	if c.plans.lengths != nil {
		return c.plans.lengths, nil
	}
	exchange := s.LengthsCall(lengthBytes)
	by, err := coll.Find(exchange.Kind, "direct")
	if err != nil {
		return nil, err
	}
	l := &lengthsPlan{}
	if l.graph, err = by.Graph(&c.plans.build, exchange, by.Default()); err != nil {
		return nil, err
	}
	l.in = make([]byte, lengthBytes*(c.size-s.Nodes.Count(s.Nodes.NodeOf(s.Rank))))
	l.out = make([]byte, len(exchange.Sources)*exchange.Recv.Each)
	c.plans.lengths = l
	return l, nil
}

// sameLengths reports whether blocks have the same lengths. A rank that hands nothing on
// has an empty list after the exchange, and nil without it, for which all ranks use another
// algorithm.
func sameLengths(a, b []coll.Blocks) bool {
	return (a == nil) == (b == nil) && slices.EqualFunc(a, b, func(x, y coll.Blocks) bool { return slices.Equal(x.Lens, y.Lens) })
}
