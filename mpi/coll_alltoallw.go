package mpi

// Alltoallw (MPI-4.1 section 6.8): an exchange in which each block has its own layout. In
// MPI each block also has its own element type; here all elements of a slice have one
// type, and mixed types are sent as bytes. The blocks are packed one after the other,
// exchanged by Alltoallv, and unpacked when the request is completed.

import (
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/dtype"
)

// Alltoallw sends the elements of in that sends[r] selects to rank r, and stores those
// from rank r in the elements of out that recvs[r] selects. All layouts count from the
// beginning of their slice. A nil layout is an empty block.
func Alltoallw[T Elem](c *Comm, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) error {
	k, w, err := alltoallwCall(c, "Alltoallw", in, sends, out, recvs)
	if err != nil {
		return err
	}
	w.pack()
	if err := c.blocking(&k); err != nil {
		return err
	}
	w.unpack(0)
	return nil
}

// Ialltoallw starts an [Alltoallw]. out holds the result when the request is complete.
func Ialltoallw[T Elem](c *Comm, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) Request {
	k, w, err := alltoallwCall(c, "Ialltoallw", in, sends, out, recvs)
	return c.startedPacked(&k, w, err)
}

// AlltoallwInit prepares an [Alltoallw].
func AlltoallwInit[T Elem](c *Comm, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) *Persistent {
	k, w, err := alltoallwCall(c, "AlltoallwInit", in, sends, out, recvs)
	return c.preparedPacked(&k, w, err)
}

// startedPacked starts an exchange of packed blocks.
func (c *Comm) startedPacked(k *collCall, w *packedExchange, refused error) Request {
	if refused != nil {
		return c.refused(refused)
	}
	w.pack()
	r := c.started(k, nil)
	switch {
	case r.more == nil:
		r.more = &requestMore{landing: w}
	case r.more.err == nil:
		r.more.landing = w
	}
	return c.landed(r)
}

// preparedPacked prepares an exchange of packed blocks.
func (c *Comm) preparedPacked(k *collCall, w *packedExchange, refused error) *Persistent {
	p := c.prepared(k, refused)
	if p.err == nil {
		p.coll.pack = w.pack
		p.coll.more = &requestMore{landing: w}
	}
	return p
}

// packedExchange holds the blocks of an exchange in both directions, and their packed
// form.
type packedExchange struct {
	sends, recvs []dtype.View
	in, out      []byte
}

func (w *packedExchange) pack() {
	at := 0
	for _, v := range w.sends {
		v.Pack(w.in[at:], 0)
		at += int(v.Len())
	}
}

func (w *packedExchange) unpack(int) {
	at := 0
	for _, v := range w.recvs {
		n := int(v.Len())
		v.Unpack(w.out[at:at+n], 0)
		at += n
	}
}

func alltoallwCall[T Elem](c *Comm, name string, in []T, sends []*Layout[T], out []T, recvs []*Layout[T]) (collCall, *packedExchange, error) {
	k := collCall{name: name, key: planKey{kind: coll.Alltoall, elem: 1, irregular: true}}
	if err := c.usable(name); err != nil {
		return k, nil, err
	}
	w := &packedExchange{}
	var err error
	if w.sends, k.sendCounts, w.in, err = blockViews(c, name, "in", c.size, in, sends); err != nil {
		return k, nil, err
	}
	if w.recvs, k.recvCounts, w.out, err = blockViews(c, name, "out", c.size, out, recvs); err != nil {
		return k, nil, err
	}
	if c.inter != nil { // no rank is in both groups
		k.in, k.out = w.in, w.out
		return k, w, nil
	}
	if mine, theirs := k.sendCounts[c.rank], k.recvCounts[c.rank]; mine != theirs {
		return k, nil, c.refuse(ErrCount, name, "this rank sends itself %d bytes and expects %d", mine, theirs)
	}
	k.in, k.out = w.in, w.out
	return k, w, nil
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
