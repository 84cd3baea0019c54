package mpi

// Collectives of values of any type, encoded as in value.go. The lengths of the encoded
// values are exchanged first; -1 informs the others that a rank could not encode its
// value, so that all ranks return an error.

import (
	"fmt"

	"github.com/muster-mpi/muster/internal/coll"
)

// GatherValue returns the values of all ranks at the root, in rank order, and nil on the
// other ranks. It is collective.
func GatherValue[T any](c *Comm, v T, root int) ([]T, error) {
	h := c.begin("GatherValue", CallCollective, root, AnyTag, 0)
	all, err := gatherValue(c, v, root)
	return all, h.finish(err)
}

func gatherValue[T any](c *Comm, v T, root int) ([]T, error) {
	const op = "GatherValue"
	if err := c.checkRoot(op, root); err != nil {
		return nil, err
	}
	b, counts, total, err := encodeForAll(c, op, &v)
	if err != nil {
		return nil, err
	}
	var all []byte
	if c.rank == root {
		all = make([]byte, total)
	}
	if err := gathervArgs(c, b, all, counts, nil, root).callInside("Gatherv"); err != nil || c.rank != root {
		return nil, err
	}
	return decodeAll[T](c, op, all, counts)
}

// AllgatherValue returns the values of all ranks, in rank order. It is collective.
func AllgatherValue[T any](c *Comm, v T) ([]T, error) {
	h := c.begin("AllgatherValue", CallCollective, ProcNull, AnyTag, 0)
	all, err := allgatherValue(c, "AllgatherValue", v)
	return all, h.finish(err)
}

func allgatherValue[T any](c *Comm, op string, v T) ([]T, error) {
	if err := c.intra(op); err != nil {
		return nil, err
	}
	b, counts, total, err := encodeForAll(c, op, &v)
	if err != nil {
		return nil, err
	}
	all := make([]byte, total)
	if err := allgathervArgs(c, b, all, counts, nil).callInside("Allgatherv"); err != nil {
		return nil, err
	}
	return decodeAll[T](c, op, all, counts)
}

// AllreduceValue combines the values of all ranks with merge, in rank order, and returns
// the result on all ranks: merge(merge(v0, v1), v2) and so on. Each rank receives all
// values and calls merge itself, so merge must give the same result everywhere; it may
// change and return its first argument. It is collective.
func AllreduceValue[T any](c *Comm, v T, merge func(a, b T) T) (T, error) {
	h := c.begin("AllreduceValue", CallCollective, ProcNull, AnyTag, 0)
	all, err := allgatherValue(c, "AllreduceValue", v)
	if h.finish(err) != nil {
		return v, err
	}
	out := all[0]
	for _, next := range all[1:] {
		out = merge(out, next)
	}
	return out, nil
}

// ScatterValue returns values[i] of the root on rank i. It is collective; values is used
// at the root only, where it has one element for each rank.
func ScatterValue[T any](c *Comm, values []T, root int) (v T, err error) {
	h := c.begin("ScatterValue", CallCollective, root, AnyTag, 0)
	v, err = scatterValue(c, values, root)
	return v, h.finish(err)
}

func scatterValue[T any](c *Comm, values []T, root int) (v T, err error) {
	const op = "ScatterValue"
	if err := c.checkRoot(op, root); err != nil {
		return v, err
	}
	var (
		all     []byte
		refused error
		counts  = make([]int, c.size)
		lengths = make([]int64, c.size) // of the root
		mine    = []int64{0}
	)
	if c.rank == root {
		if all, refused = encodeEach(c, op, values, counts); refused != nil {
			for i := range lengths {
				lengths[i] = -1
			}
		} else {
			for i, n := range counts {
				lengths[i] = int64(n)
			}
		}
	}
	if err := scatterArgs(c, lengths, mine, root).callInside("Scatter"); err != nil {
		return v, err
	}
	switch {
	case refused != nil:
		return v, refused
	case mine[0] < 0:
		return v, c.refuse(ErrType, op, "rank %d could not encode its values; its error says why", root)
	}
	b := make([]byte, mine[0])
	if err := scattervArgs(c, all, counts, nil, b, root).callInside("Scatterv"); err != nil {
		return v, err
	}
	return v, decodeValue(c, op, root, b, &v)
}

// encodeEach encodes the values for all ranks one after the other.
func encodeEach[T any](c *Comm, op string, values []T, counts []int) (all []byte, err error) {
	if len(values) != c.size {
		return nil, c.refuse(ErrCount, op, "there are %d values for %d ranks", len(values), c.size)
	}
	for i := range values {
		b, err := encodeValue(c, op, &values[i])
		if err != nil {
			return nil, err
		}
		counts[i] = len(b)
		all = append(all, b...)
	}
	return all, nil
}

// encodeForAll encodes a value and returns the lengths of those of all ranks.
func encodeForAll[T any](c *Comm, op string, v *T) (b []byte, counts []int, total int, err error) {
	b, refused := encodeValue(c, op, v)
	n := int64(len(b))
	if refused != nil {
		n = -1
	}
	lengths := make([]int64, c.size)
	if err := allgather(c, op, []int64{n}, lengths); err != nil {
		return nil, nil, 0, err
	}
	if refused != nil {
		return nil, nil, 0, refused
	}
	counts = make([]int, c.size)
	for r, n := range lengths {
		if n < 0 {
			return nil, nil, 0, c.refuse(ErrType, op, "rank %d could not encode its value; its error says why", r)
		}
		counts[r] = int(n)
		total += int(n)
	}
	return b, counts, total, nil
}

func decodeAll[T any](c *Comm, op string, all []byte, counts []int) ([]T, error) {
	out := make([]T, len(counts))
	for r, n := range counts {
		if err := decodeValue(c, op, r, all[:n], &out[r]); err != nil {
			return nil, fmt.Errorf("the value of rank %d: %w", r, err)
		}
		all = all[n:]
	}
	return out, nil
}

// valueCall names the call that transfers values of any type in place of op.
func valueCall(op string) string {
	if kind, _, ok := coll.KindOfFunction(op); ok && kind.ValueFunction() != "" {
		return "use " + kind.ValueFunction()
	}
	return "use SendValue and RecvValue"
}
