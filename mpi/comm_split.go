package mpi

// Which ranks Split puts together. A binomial tree over the ranks collects the colors:
// consecutive subtrees report sequences of ranks as single entries, and a rank gets back
// only the colors of its own subtree. So a rank of a large communicator that is split by a
// rule, such as into nodes or into rows, neither receives nor stores a list of all ranks.

import (
	"encoding/binary"
	"math/bits"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/rankset"
)

// splitMembers returns the ranks of c that pass the same color, in the order of their keys.
func (c *Comm) splitMembers(op string, color, key int) (*rankset.List, error) {
	all := &rankset.Colors{}
	if color != Undefined {
		all = rankset.One(int64(color), int64(key), c.rank)
	}
	// The ranks below c.rank in the tree are those up to c.rank+span; a child at distance
	// step has the ranks up to the next child.
	span := c.rank & -c.rank
	if c.rank == 0 {
		span = 1 << bits.Len(uint(c.size-1))
	}
	below := map[int]*rankset.Colors{}
	for step := 1; step < span && c.rank+step < c.size; step *= 2 {
		theirs, err := c.recvColors(op, c.rank+step)
		if err != nil {
			return nil, err
		}
		below[step] = theirs
		all.Merge(theirs)
	}
	if parent := c.rank - span; c.rank > 0 {
		if err := c.sendColors(op, parent, all); err != nil {
			return nil, err
		}
		var err error
		if all, err = c.recvColors(op, parent); err != nil {
			return nil, err
		}
	}
	for step := span / 2; step > 0; step /= 2 { // the largest subtree first
		if theirs := below[step]; theirs != nil {
			if err := c.sendColors(op, c.rank+step, all.Only(theirs)); err != nil {
				return nil, err
			}
		}
	}
	return all.Members(int64(color)), nil
}

// colorsFirst is the size of the first message with colors, which begins with the number of
// bytes in all. Most are short and fit in it.
const colorsFirst = 256

func (c *Comm) sendColors(op string, to int, all *rankset.Colors) error {
	b := all.Append(make([]byte, 4, colorsFirst))
	binary.LittleEndian.PutUint32(b, uint32(len(b)))
	first := min(len(b), colorsFirst)
	err := c.e.Send(&c.co, op, c.world(to), engine.SplitTag, b[:first], p2p.Standard)
	if err == nil && first < len(b) {
		err = c.e.Send(&c.co, op, c.world(to), engine.SplitTag, b[first:], p2p.Standard)
	}
	if err != nil {
		return c.failure(err, op, to, noTag, len(b))
	}
	return nil
}

func (c *Comm) recvColors(op string, from int) (*rankset.Colors, error) {
	b := make([]byte, colorsFirst)
	st, err := c.e.Recv(&c.co, op, c.world(from), int32(from), engine.SplitTag, b)
	if err != nil {
		return nil, c.failure(err, op, from, noTag, 0)
	}
	if whole := int(binary.LittleEndian.Uint32(b)); whole > colorsFirst {
		b = append(b, make([]byte, whole-colorsFirst)...)
		if _, err := c.e.Recv(&c.co, op, c.world(from), int32(from), engine.SplitTag, b[colorsFirst:]); err != nil {
			return nil, c.failure(err, op, from, noTag, whole)
		}
	} else {
		b = b[:st.Bytes]
	}
	all, err := rankset.Parse(b[4:])
	if err != nil {
		return nil, c.failure(err, op, from, noTag, len(b))
	}
	return all, nil
}
