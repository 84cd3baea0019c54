package mpi

// Collective calls, in one simple form each, on point-to-point messages in a
// context of their own (MPI-4.1 chapter 6). Collectives on a communicator are
// called in the same order by all ranks and messages between two ranks keep
// their order, so one tag serves all.

import (
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

const (
	collTag    = 0
	releaseTag = 1 // wakes a rank that sleeps at the gate
)

// csend, crecv and the non-blocking pair are the messages of collectives.
func (c *Comm) csend(op string, b []byte, dst int) error {
	if err := c.e.Send(&c.co, op, c.world(dst), collTag, b, p2p.Standard); err != nil {
		return c.failure(err, op, dst, noTag, 0)
	}
	return nil
}

func (c *Comm) crecv(op string, b []byte, src int) error {
	st, err := c.e.Recv(&c.co, op, c.world(src), int32(src), collTag, b)
	if err != nil {
		return c.failure(err, op, src, noTag, st.Bytes)
	}
	if st.Bytes != len(b) {
		return c.countsDiffer(op, src, st.Bytes, len(b))
	}
	return nil
}

func (c *Comm) cisend(b []byte, dst int) Request {
	o := c.e.Isend(&c.co, c.world(dst), collTag, b, p2p.Standard)
	return Request{c: c, op: o}
}

func (c *Comm) cirecv(b []byte, src int) Request {
	o := c.e.Irecv(&c.co, c.world(src), int32(src), collTag, b)
	return Request{c: c, op: o}
}

// receivedAll completes the requests of a collective, of which the first n are
// receives of so many bytes.
func (c *Comm) receivedAll(op string, reqs []Request, n, bytes int) error {
	var first error
	for i, r := range reqs {
		st, err := c.e.Wait(engine.NoContext, &c.co, op, r.op)
		switch {
		case first != nil:
		case err != nil:
			first = c.requestFailure(err, op, st.Bytes)
		case i < n && st.Bytes != bytes:
			first = c.countsDiffer(op, st.Source, st.Bytes, bytes)
		}
	}
	return first
}

func (c *Comm) countsDiffer(op string, src, got, want int) error {
	return c.refuse(ErrTruncate, op, "rank %d sent %d bytes where this rank expects %d: the counts differ between ranks", src, got, want)
}

func (c *Comm) checkRoot(op string, root int) error {
	if err := c.usable(op); err != nil {
		return err
	}
	if root < 0 || root >= c.size {
		return c.refuse(ErrRoot, op, "there is no rank %d: %s has ranks 0 to %d", root, c.name, c.size-1)
	}
	return nil
}

// Barrier returns when every rank has called it.
func Barrier(c *Comm) error {
	if err := c.usable("Barrier"); err != nil {
		return err
	}
	return c.barrier("Barrier")
}

// barrier: with a core for every rank, dissemination, ⌈log₂ n⌉ steps. When ranks
// share cores a step costs a context switch, so the flat forms, where a rank is
// switched to about once, are several times faster.
func (c *Comm) barrier(op string) error {
	if c.w.client.LocalSize() == c.w.comm.size && c.e.Crowded() {
		// Ranks of one host agree about that; those of several may not.
		return c.flatBarrier(op)
	}
	for d := 1; d < c.size; d *= 2 {
		if err := c.csend(op, nil, (c.rank+d)%c.size); err != nil {
			return err
		}
		if err := c.crecv(op, nil, (c.rank-d+c.size)%c.size); err != nil {
			return err
		}
	}
	return nil
}

func (c *Comm) flatBarrier(op string) error {
	if c == c.w.comm && c.w.client.LocalSize() == c.size {
		if opening, last := c.e.Arrive(); opening != 0 {
			return c.gateBarrier(op, opening, last)
		}
	}
	if c.rank != 0 {
		if err := c.csend(op, nil, 0); err != nil {
			return err
		}
		return c.crecv(op, nil, 0)
	}
	for r := 1; r < c.size; r++ {
		if err := c.crecv(op, nil, r); err != nil {
			return err
		}
	}
	for r := 1; r < c.size; r++ {
		if err := c.csend(op, nil, r); err != nil {
			return err
		}
	}
	return nil
}

// gateBarrier is the barrier of the world when all its ranks share a machine and a
// board: no message is sent unless somebody sleeps. Such a message comes in the
// name of rank 0, since the sleeper cannot know who will be last.
func (c *Comm) gateBarrier(op string, opening uint64, last bool) error {
	release := engine.Comm{Ctx: c.co.Ctx, Rank: 0, Name: c.name}
	if last {
		return c.e.OpenGate(opening, func(rank int) error {
			if err := c.e.Send(&release, op, rank, releaseTag, nil, p2p.Standard); err != nil {
				return c.failure(err, op, rank, noTag, 0)
			}
			return nil
		})
	}
	if c.e.AwaitGate(opening) {
		return nil
	}
	if _, err := c.e.Recv(&release, op, engine.Anyone, 0, releaseTag, nil); err != nil {
		return c.failure(err, op, ProcNull, noTag, 0)
	}
	return nil
}

// Bcast gives all ranks the contents of root's buf. All lengths are equal.
func Bcast[T Elem](c *Comm, buf []T, root int) error {
	b, err := bytesOf(&c.w.types, buf)
	if err != nil {
		return c.refuse(ErrType, "Bcast", "%w", err)
	}
	if err := c.checkRoot("Bcast", root); err != nil {
		return err
	}
	return c.bcast("Bcast", b, root)
}

// bcast: binomial tree.
func (c *Comm) bcast(op string, b []byte, root int) error {
	me := (c.rank - root + c.size) % c.size
	bit := 1
	for ; bit < c.size; bit *= 2 {
		if me&bit != 0 {
			if err := c.crecv(op, b, (me-bit+root)%c.size); err != nil {
				return err
			}
			break
		}
	}
	for bit /= 2; bit > 0; bit /= 2 {
		if me+bit < c.size {
			if err := c.csend(op, b, (me+bit+root)%c.size); err != nil {
				return err
			}
		}
	}
	return nil
}

// Reduce combines the in of all ranks into root's out, element by element, in
// the order of ranks. out is used at the root only and may be the same slice as
// in.
func Reduce[T Elem](c *Comm, in, out []T, op Op[T], root int) error {
	if err := c.checkRoot("Reduce", root); err != nil {
		return err
	}
	if c.rank == root && len(out) != len(in) {
		return c.refuse(ErrCount, "Reduce", "in has %d elements, out %d", len(in), len(out))
	}
	return reduce(c, "Reduce", in, out, op, root)
}

// reduce: binomial tree with rank 0 at the top, so that partial results are
// always of neighbouring ranks in order; then to the root, if that is another.
func reduce[T Elem](c *Comm, name string, in, out []T, op Op[T], root int) error {
	if op.Combine == nil {
		return c.refuse(ErrOp, name, "the operation has no Combine function")
	}
	if _, err := bytesOf(&c.w.types, in); err != nil {
		return c.refuse(ErrType, name, "%w", err)
	}
	acc := append([]T(nil), in...)
	var tmp []T
	for bit := 1; bit < c.size; bit *= 2 {
		if c.rank&bit != 0 {
			if err := c.csend(name, rawBytes(acc), c.rank-bit); err != nil {
				return err
			}
			break
		}
		if c.rank+bit < c.size {
			if tmp == nil {
				tmp = make([]T, len(in))
			}
			if err := c.crecv(name, rawBytes(tmp), c.rank+bit); err != nil {
				return err
			}
			op.Combine(tmp, acc)
			acc, tmp = tmp, acc
		}
	}
	switch {
	case root == 0 && c.rank == 0:
		copy(out, acc)
	case root != 0 && c.rank == 0:
		return c.csend(name, rawBytes(acc), root)
	case root != 0 && c.rank == root:
		return c.crecv(name, rawBytes(out), 0)
	}
	return nil
}

// Allreduce combines the in of all ranks into everybody's out, which may be the
// same slice as in.
func Allreduce[T Elem](c *Comm, in, out []T, op Op[T]) error {
	if err := c.usable("Allreduce"); err != nil {
		return err
	}
	if len(out) != len(in) {
		return c.refuse(ErrCount, "Allreduce", "in has %d elements, out %d", len(in), len(out))
	}
	return allreduce(c, "Allreduce", in, out, op)
}

func allreduce[T Elem](c *Comm, name string, in, out []T, op Op[T]) error {
	if err := reduce(c, name, in, out, op, 0); err != nil {
		return err
	}
	return c.bcast(name, rawBytes(out), 0)
}

// Gather collects the in of all ranks in root's out, in the order of ranks. out
// is used at the root only and has room for all.
func Gather[T Elem](c *Comm, in, out []T, root int) error {
	if err := c.checkRoot("Gather", root); err != nil {
		return err
	}
	return gather(c, "Gather", in, out, root)
}

func gather[T Elem](c *Comm, name string, in, out []T, root int) error {
	b, err := bytesOf(&c.w.types, in)
	if err != nil {
		return c.refuse(ErrType, name, "%w", err)
	}
	if c.rank != root {
		return c.csend(name, b, root)
	}
	if len(out) != len(in)*c.size {
		return c.refuse(ErrCount, name, "out has %d elements; %d ranks with %d each need %d", len(out), c.size, len(in), len(in)*c.size)
	}
	reqs := make([]Request, 0, c.size)
	for r := range c.size {
		if r != root {
			reqs = append(reqs, c.cirecv(rawBytes(out[r*len(in):(r+1)*len(in)]), r))
		}
	}
	copy(out[root*len(in):], in)
	return c.receivedAll(name, reqs, len(reqs), len(b))
}

// Allgather collects the in of all ranks in everybody's out, in the order of
// ranks.
func Allgather[T Elem](c *Comm, in, out []T) error {
	if err := c.usable("Allgather"); err != nil {
		return err
	}
	if len(out) != len(in)*c.size {
		return c.refuse(ErrCount, "Allgather", "out has %d elements; %d ranks with %d each need %d", len(out), c.size, len(in), len(in)*c.size)
	}
	return allgather(c, "Allgather", in, out)
}

func allgather[T Elem](c *Comm, name string, in, out []T) error {
	if err := gather(c, name, in, out, 0); err != nil {
		return err
	}
	return c.bcast(name, rawBytes(out), 0)
}

// Scatter gives each rank its part of root's in. in is used at the root only.
func Scatter[T Elem](c *Comm, in, out []T, root int) error {
	if err := c.checkRoot("Scatter", root); err != nil {
		return err
	}
	b, err := bytesOf(&c.w.types, out)
	if err != nil {
		return c.refuse(ErrType, "Scatter", "%w", err)
	}
	if c.rank != root {
		return c.crecv("Scatter", b, root)
	}
	n := len(out)
	if len(in) != n*c.size {
		return c.refuse(ErrCount, "Scatter", "in has %d elements; %d ranks with %d each need %d", len(in), c.size, n, n*c.size)
	}
	reqs := make([]Request, 0, c.size)
	for r := range c.size {
		if r != root {
			reqs = append(reqs, c.cisend(rawBytes(in[r*n:(r+1)*n]), r))
		}
	}
	copy(out, in[root*n:(root+1)*n])
	return c.receivedAll("Scatter", reqs, 0, 0)
}

// Alltoall sends the r-th part of in to rank r and receives its part for us as
// the r-th of out.
func Alltoall[T Elem](c *Comm, in, out []T) error {
	if err := c.usable("Alltoall"); err != nil {
		return err
	}
	if len(in) != len(out) || len(in)%c.size != 0 {
		return c.refuse(ErrCount, "Alltoall", "in has %d elements and out %d; they must be equal and a multiple of %d ranks", len(in), len(out), c.size)
	}
	if _, err := bytesOf(&c.w.types, in); err != nil {
		return c.refuse(ErrType, "Alltoall", "%w", err)
	}
	n := len(in) / c.size
	part := func(s []T, r int) []byte { return rawBytes(s[r*n : (r+1)*n]) }
	reqs := make([]Request, 0, 2*c.size)
	for d := 1; d < c.size; d++ {
		from := (c.rank - d + c.size) % c.size
		reqs = append(reqs, c.cirecv(part(out, from), from))
	}
	for d := 1; d < c.size; d++ {
		to := (c.rank + d) % c.size
		reqs = append(reqs, c.cisend(part(in, to), to))
	}
	copy(part(out, c.rank), part(in, c.rank))
	return c.receivedAll("Alltoall", reqs, c.size-1, len(part(out, 0)))
}
