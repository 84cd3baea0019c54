package mpi

// The three forms of a collective from one description: a function of coll_move.go,
// coll_reduce.go or coll_neighbor.go returns the arguments, and the forms check them and
// convert them to bytes. What is checked follows from the row of the kind (coll.Kind).

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/dtype"
)

// collArgs are the arguments of a collective, the same in all forms.
type collArgs[T Elem] struct {
	c       *Comm
	kind    coll.Kind
	variant coll.Variant
	root    int
	in, out []T
	// Counts and displacements are in elements; displacements may be nil for consecutive
	// blocks.
	sendCounts, sendDispls []int
	recvCounts, recvDispls []int
	sends, recvs           []*Layout[T] // of coll.Layouts
	op                     Op[T]        // of reductions
	near                   *neighborhood
}

// call makes a blocking call.
func (a collArgs[T]) call() error {
	var k collCall
	if err := a.resolve(&k, a.kind.Function(a.variant, coll.Blocking)); err != nil {
		return err
	}
	a.c.pack(k.packed)
	err := blocking(a.c, &k, a.operation())
	if err == nil && k.packed != nil {
		a.c.unpack(k.packed, 0)
	}
	return err
}

// callInside makes a blocking call as a part of another, which hooks do not see.
func (a collArgs[T]) callInside(name string) error {
	var k collCall
	if err := a.resolve(&k, name); err != nil {
		return err
	}
	k.inner = true
	return blocking(a.c, &k, a.operation())
}

// start makes a non-blocking call.
func (a collArgs[T]) start() Request {
	var k collCall
	if err := a.resolve(&k, a.kind.Function(a.variant, coll.Started)); err != nil {
		return a.c.refusedRequest(err)
	}
	a.c.pack(k.packed)
	r := startColl(a.c, &k, a.operation())
	if k.packed == nil {
		return r
	}
	switch {
	case r.more == nil:
		r.more = &requestMore{landing: k.packed}
	case r.more.err == nil:
		r.more.landing = k.packed
	}
	return a.c.unpackIfComplete(r)
}

// prepare makes a persistent call.
func (a collArgs[T]) prepare() *Persistent {
	var k collCall
	err := a.resolve(&k, a.kind.Function(a.variant, coll.Prepared))
	p := prepareColl(a.c, &k, a.operation(), err)
	if p.err == nil && k.packed != nil {
		c, x := a.c, k.packed
		p.coll.pack = func() { c.pack(x) }
		p.coll.more = &requestMore{landing: k.packed}
	}
	return p
}

// operation returns the operation of a reduction; nil if the call is none.
func (a *collArgs[T]) operation() *Op[T] {
	if a.kind.Combines() {
		return &a.op
	}
	return nil
}

// resolve checks the arguments and converts them to bytes.
func (a *collArgs[T]) resolve(k *collCall, name string) error {
	c := a.c
	k.name, k.near = name, a.near
	k.key.kind, k.key.elem = a.kind, sizeOf[T]()
	k.key.irregular = a.variant != coll.Regular && a.variant != coll.SameRegular
	// An Alltoallw exchanges bytes, and ranks may pass different types.
	if a.kind.Output() != coll.Nothing && (a.variant != coll.Layouts || a.near != nil) {
		if err := checkType[T](c, k); err != nil {
			return err
		}
	}
	if err := c.usable(name); err != nil {
		return err
	}
	if a.kind.Combines() {
		k.key.ordered, k.key.typ, k.key.elem = a.op.defined() && a.op.ordered(), typeWord((*T)(nil)), a.op.elem()
		if err := checkOp(c, k, &a.op); err != nil {
			return err
		}
	}
	switch {
	case a.kind.Output() == coll.Nothing:
		return nil
	case a.near != nil:
		return a.withNeighbors(k)
	case a.variant == coll.Layouts:
		return a.withLayouts(k, c.size, c.size)
	case c.inter != nil:
		return a.betweenGroups(k)
	}
	return a.inGroup(k)
}

// inGroup completes a call on an intra-communicator.
func (a *collArgs[T]) inGroup(k *collCall) error {
	all := true // this rank has the buffers of the root, if there is one
	if a.kind.Rooted() {
		if err := a.c.checkRoot(k.name, a.root); err != nil {
			return err
		}
		k.key.root, all = a.root, a.c.rank == a.root
	}
	switch in, out := a.kind.Input(), a.kind.Output(); {
	case in == coll.Nothing:
		k.out = rawBytes(a.out)
		k.key.bytes = len(k.out)
		return nil
	case out == coll.Vector:
		return a.vector(k, all)
	case in == coll.AllBlocks && out == coll.AllBlocks:
		return a.exchange(k)
	case a.kind.Combines():
		return a.parts(k)
	case out == coll.AllBlocks:
		return a.completeGather(k, all)
	}
	return a.completeScatter(k, all)
}

// vector completes a reduction whose in and out have the same length. result reports
// whether this rank receives one.
func (a *collArgs[T]) vector(k *collCall, result bool) error {
	n := len(a.in)
	if result {
		if a.in == nil {
			n = len(a.out)
		}
		if len(a.out) != n {
			return a.c.refuse(ErrCount, k.name, "in has %d elements, out %d", n, len(a.out))
		}
		k.out = rawBytes(a.out)
		k.key.inPlace = n > 0 && (a.in == nil || same(a.in, a.out))
	}
	if err := a.op.whole(a.c, k.name, n); err != nil {
		return err
	}
	k.key.bytes = n * sizeOf[T]()
	if !k.key.inPlace {
		k.in = rawBytes(a.in)
	}
	return nil
}

// completeGather completes a call whose out has a block of every rank.
func (a *collArgs[T]) completeGather(k *collCall, all bool) error {
	n := len(a.in)
	if all {
		var err error
		if n, k.key.inPlace, err = a.ownBlock(k, "in", a.in, "out", a.out, a.recvCounts, a.recvDispls); err != nil {
			return err
		}
		k.out, k.recvCounts, k.recvDispls = rawBytes(a.out), a.recvCounts, a.recvDispls
	}
	if !all || !k.key.irregular {
		k.key.recv = n * k.key.elem
	}
	if !k.key.inPlace {
		k.in = rawBytes(a.in)
	}
	return nil
}

// completeScatter completes a call whose in has a block for every rank.
func (a *collArgs[T]) completeScatter(k *collCall, all bool) error {
	n := len(a.out)
	if all {
		var err error
		if n, k.key.inPlace, err = a.ownBlock(k, "out", a.out, "in", a.in, a.sendCounts, a.sendDispls); err != nil {
			return err
		}
		k.in, k.sendCounts, k.sendDispls = rawBytes(a.in), a.sendCounts, a.sendDispls
	}
	if !all || !k.key.irregular {
		k.key.bytes = n * k.key.elem
	}
	if !k.key.inPlace {
		k.out = rawBytes(a.out)
	}
	return nil
}

// ownBlock compares the buffer with the blocks of all ranks and that with the rank's own
// block, which is nil in place. It returns the length of that block.
func (a *collArgs[T]) ownBlock(k *collCall, ownName string, own []T, allName string, all []T, counts, displs []int) (n int, inPlace bool, err error) {
	c, at := a.c, 0
	if k.key.irregular {
		if err := c.checkBlocks(k.name, allName, len(all), counts, displs); err != nil {
			return 0, false, err
		}
		if at, n = blockOf(counts, displs, c.rank); own != nil && len(own) != n {
			return 0, false, c.refuse(ErrCount, k.name, "%s has %d elements, but counts[%d], for this rank, is %d", ownName, len(own), c.rank, n)
		}
		return n, n > 0 && (own == nil || same(own, all[at:])), nil
	}
	if n = len(own); own == nil {
		n = len(all) / c.size
	}
	if len(all) != n*c.size {
		if own == nil {
			return 0, false, c.refuse(ErrCount, k.name, "%s has %d elements, which %d ranks cannot share evenly", allName, len(all), c.size)
		}
		return 0, false, c.refuse(ErrCount, k.name, "%s has %d elements; %d ranks with %d each need %d", allName, len(all), c.size, n, n*c.size)
	}
	return n, n > 0 && (own == nil || same(own, all[c.rank*n:])), nil
}

// exchange completes a call in which in and out have a block for every rank.
func (a *collArgs[T]) exchange(k *collCall) error {
	c := a.c
	k.out = rawBytes(a.out)
	if !k.key.irregular {
		if a.in != nil && len(a.in) != len(a.out) || len(a.out)%c.size != 0 {
			return c.refuse(ErrCount, k.name, "in has %d elements and out %d; they must be equal and a multiple of %d ranks", len(a.in), len(a.out), c.size)
		}
		k.key.bytes = len(k.out) / c.size
		k.key.recv = k.key.bytes
		if k.key.inPlace = len(a.out) > 0 && (a.in == nil || same(a.in, a.out)); !k.key.inPlace {
			k.in = rawBytes(a.in)
		}
		return nil
	}
	if err := c.checkBlocks(k.name, "out", len(a.out), a.recvCounts, a.recvDispls); err != nil {
		return err
	}
	k.recvCounts, k.recvDispls = a.recvCounts, a.recvDispls
	if a.in == nil && (a.sendCounts == nil || len(a.out) > 0) {
		k.key.inPlace, k.sendCounts, k.sendDispls = true, a.recvCounts, a.recvDispls
		return nil
	}
	if err := c.checkBlocks(k.name, "in", len(a.in), a.sendCounts, a.sendDispls); err != nil {
		return err
	}
	if mine, theirs := a.sendCounts[c.rank], a.recvCounts[c.rank]; mine != theirs {
		return c.refuse(ErrCount, k.name, "this rank sends itself %d elements and expects %d", mine, theirs)
	}
	k.in, k.sendCounts, k.sendDispls = rawBytes(a.in), a.sendCounts, a.sendDispls
	return nil
}

// parts completes a reduction that leaves each rank a part of the result.
func (a *collArgs[T]) parts(k *collCall) (err error) {
	c, given, counts := a.c, a.in, a.sendCounts
	inPlace := a.in == nil || same(a.in, a.out) && len(a.in) == len(a.out)
	if inPlace {
		given = a.out
	}
	mine := len(given) / c.size
	all := mine * c.size
	if k.key.irregular {
		if err := c.checkBlocks(k.name, "in", len(given), counts, nil); err != nil {
			return err
		}
		if k.sendCounts, err = a.op.units(c, k.name, counts); err != nil {
			return err
		}
		mine, all = counts[c.rank], 0
		for _, n := range counts {
			all += n
		}
	} else {
		k.key.bytes = mine * sizeOf[T]()
	}
	if len(given) != all {
		return c.refuse(ErrCount, k.name, "the contribution has %d elements; %d ranks share %d", len(given), c.size, all)
	}
	if err := a.op.whole(c, k.name, mine); err != nil {
		return err
	}
	if !inPlace && len(a.out) != mine {
		return c.refuse(ErrCount, k.name, "out has %d elements; this rank's part of the result has %d", len(a.out), mine)
	}
	k.out = rawBytes(a.out)
	if k.key.inPlace = inPlace && all > 0; !k.key.inPlace {
		k.in = rawBytes(a.in)
	}
	return nil
}

// packedExchange holds the blocks of an exchange in both directions, each with its own
// layout, and their packed form. In MPI each block also has its own element type; here all
// elements of a slice have one type, and mixed types are sent as bytes. A nil one does
// nothing.
type packedExchange struct {
	sends, recvs []dtype.View
	in, out      []byte
}

func (w *packedExchange) pack() {
	if w == nil {
		return
	}
	at := 0
	for _, v := range w.sends {
		v.Pack(w.in[at:], 0)
		at += int(v.Len())
	}
}

func (w *packedExchange) unpack(int) {
	if w == nil {
		return
	}
	at := 0
	for _, v := range w.recvs {
		n := int(v.Len())
		v.Unpack(w.out[at:at+n], 0)
		at += n
	}
}

// withLayouts completes a call with a layout for each block: the blocks are packed one after
// the other, exchanged, and unpacked when the request is completed.
func (a *collArgs[T]) withLayouts(k *collCall, dests, sources int) (err error) {
	c, w := a.c, &packedExchange{}
	k.key.elem = 1
	if w.sends, k.sendCounts, w.in, err = blockViews(c, k.name, "in", dests, a.in, a.sends); err != nil {
		return err
	}
	if w.recvs, k.recvCounts, w.out, err = blockViews(c, k.name, "out", sources, a.out, a.recvs); err != nil {
		return err
	}
	if a.near == nil && c.inter == nil { // this rank is one of the peers
		if mine, theirs := k.sendCounts[c.rank], k.recvCounts[c.rank]; mine != theirs {
			return c.refuse(ErrCount, k.name, "this rank sends itself %d bytes and expects %d", mine, theirs)
		}
	}
	k.in, k.out, k.packed = w.in, w.out, w
	return nil
}

// blockViews applies layouts, one for each of n ranks or neighbors, to a slice and
// allocates their packed form.
func blockViews[T Elem](c *Comm, name, what string, n int, buf []T, layouts []*Layout[T]) (views []dtype.View, lens []int, packed []byte, err error) {
	if len(layouts) != n {
		return nil, nil, nil, c.refuse(ErrArg, name, "there are %d layouts for %s, which has %d blocks", len(layouts), what, n)
	}
	views, lens = make([]dtype.View, n), make([]int, n)
	total := 0
	for r, l := range layouts {
		if l == nil {
			continue
		}
		if views[r], err = l.view(c, name, buf); err != nil {
			return nil, nil, nil, err
		}
		lens[r] = int(views[r].Len())
		total += lens[r]
	}
	return views, lens, make([]byte, total), nil
}
