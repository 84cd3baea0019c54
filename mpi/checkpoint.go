package mpi

// Checkpoints in memory. A rank keeps its own part and the parts of the ranks whose buddy it is,
// which run on another host if there is one. So every part survives the loss of a host.
//
// A checkpoint has two phases. In the first the ranks store their own parts and copies beside
// the checkpoint before. The second is a barrier: a rank that has passed it discards the
// checkpoint before, because all ranks have stored the new one. So after a failure either the ranks
// have all parts of the new one, or none has discarded the one before. Which of them it is is
// decided in Restore, from what all ranks have (checkpoint_plan.go).

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/muster-mpi/muster/internal/engine"
)

// Part is the part of a rank in a checkpoint.
type Part[T Elem] struct {
	// Rank is the rank that has saved the part, Size the number of ranks of its
	// communicator.
	Rank, Size int
	// Data are the slices given to Checkpoint.
	Data [][]T
}

// checkpoints are the checkpoints that a rank keeps.
type checkpoints struct {
	mu   sync.Mutex // held during a call: calls are collective, and made one after the other
	kept []*savedSet
	// over has the ranks of on, and carries the parts.
	on, over *Comm
	unused   [][]byte // buffers
}

// savedSet is what a rank keeps of a checkpoint.
type savedSet struct {
	setKey
	size     int
	complete bool        // this rank has passed the barrier
	parts    []savedPart // its own first, if it has saved one
}

// setKey identifies a checkpoint. A version can be saved again in another attempt, with other
// values, hence on another communicator.
type setKey struct {
	version uint64
	ctx     uint64 // of setContext
}

// setContext identifies a communicator among those of all attempts. The contexts of joined jobs
// begin anew.
func (c *Comm) setContext() uint64 { return uint64(c.w.joins.generation)<<32 | uint64(c.ctx) }

type savedPart struct {
	rank int
	own  bool
	data []byte // of pack
}

// Checkpoint stores a part of a checkpoint, copies of slices, in the memory of this rank and in
// that of another one, on another host if there is one. It is collective. All ranks give the
// same version, which is greater than that of the checkpoint before; the parts may have different lengths. After a
// failure, [Restore] returns the last checkpoint that all ranks have stored. One checkpoint is kept, and two during the
// call, so that memory for up to four times the data is needed.
//
// If a rank fails during the call, it returns an error on the others, or succeeds.
func Checkpoint[T Elem](c *Comm, version int, data ...[]T) error {
	const op = "Checkpoint"
	if err := admit[T](&c.w.types); err != nil {
		return c.refuse(ErrType, op, "%w", err)
	}
	if version < 1 {
		return c.refuse(ErrArg, op, "the version %d is less than 1", version)
	}
	k := &c.w.base().checkpoints
	k.mu.Lock()
	defer k.mu.Unlock()
	over, err := k.communicator(c, op)
	if err != nil {
		return err
	}
	for _, s := range k.kept {
		if s.complete && s.ctx == over.setContext() && uint64(version) <= s.version {
			return c.refuse(ErrArg, op, "the version %d is not greater than %d, that of the last checkpoint", version, s.version)
		}
	}
	return k.revokeIfFailed(k.store(uint64(version), pack(k, data)))
}

// communicator returns a communicator of the ranks of c for the messages of checkpoints, which
// must not match those of the program.
func (k *checkpoints) communicator(c *Comm, op string) (*Comm, error) {
	if err := c.intra(op); err != nil {
		return nil, err
	}
	if k.on == c {
		return k.over, nil
	}
	over, err := c.dup(op)
	if err != nil {
		return nil, err
	}
	if k.over != nil {
		_ = k.over.free()
	}
	over.SetName(c.Name() + ".checkpoint")
	k.on, k.over = c, over
	return over, nil
}

// revokeIfFailed makes the calls of the other ranks return if this one has failed.
func (k *checkpoints) revokeIfFailed(err error) error {
	if errors.Is(err, ErrProcFailed) || errors.Is(err, ErrRevoked) {
		k.over.e.Revoke(k.over.co.Ctx)
	}
	return err
}

// store makes a checkpoint of this rank's part.
func (k *checkpoints) store(version uint64, mine []byte) error {
	c := k.over
	all := make([]uint64, 2*c.size) // version and length of each rank
	if err := Allgather(c, []uint64{version, uint64(len(mine))}, all); err != nil {
		return err
	}
	for r := range c.size {
		if v := all[2*r]; v != version {
			return c.refuse(ErrArg, "Checkpoint", "rank %d gives the version %d, rank %d %d; all ranks give the same", c.rank, version, r, v)
		}
	}
	s := &savedSet{setKey: setKey{version, c.setContext()}, size: c.size, parts: []savedPart{{c.rank, true, mine}}}
	buddy := buddies(c.nodesOf())
	var reqs []Request
	for r, b := range buddy {
		if b == c.rank && r != c.rank {
			copied := k.buffer(int(all[2*r+1]))
			s.parts = append(s.parts, savedPart{r, false, copied})
			reqs = append(reqs, Irecv(c, copied, r, engine.CheckpointTag))
		}
	}
	if b := buddy[c.rank]; b != c.rank {
		reqs = append(reqs, Isend(c, mine, b, engine.CheckpointTag))
	}
	if err := WaitAll(reqs...); err != nil {
		return err
	}
	k.kept = append(k.kept, s)
	if err := c.Barrier(); err != nil {
		return err
	}
	s.complete = true
	k.keepOnly(s)
	return nil
}

// keepOnly discards all other checkpoints. A part that was stored again is in two of them.
func (k *checkpoints) keepOnly(s *savedSet) {
	k.unused = k.unused[:0]
	for _, old := range k.kept {
		for _, p := range old.parts {
			again := slices.ContainsFunc(s.parts, func(q savedPart) bool { return addressOf(p.data) == addressOf(q.data) })
			if !again && !slices.ContainsFunc(k.unused, func(b []byte) bool { return addressOf(p.data) == addressOf(b) }) {
				k.unused = append(k.unused, p.data)
			}
		}
	}
	k.kept = append(k.kept[:0], s)
}

// buffer returns memory, of a discarded part if there is one of that size.
func (k *checkpoints) buffer(n int) []byte {
	for i, b := range k.unused {
		if cap(b) >= n && cap(b) <= 2*n {
			k.unused = slices.Delete(k.unused, i, i+1)
			return b[:n]
		}
	}
	return make([]byte, n)
}

// nodesOf returns the node of each rank.
func (c *Comm) nodesOf() []int {
	nodes := make([]int, c.size)
	for r := range nodes {
		nodes[r] = c.w.client.Node(c.world(r))
	}
	return nodes
}

// pack returns slices as bytes: the name of their type, their number and lengths, and their
// elements.
func pack[T Elem](k *checkpoints, data [][]T) []byte {
	name := reflect.TypeFor[T]().String()
	n := 0
	for _, s := range data {
		n += len(rawBytes(s))
	}
	head := binary.AppendUvarint(nil, uint64(len(name)))
	head = append(head, name...)
	head = binary.AppendUvarint(head, uint64(len(data)))
	for _, s := range data {
		head = binary.AppendUvarint(head, uint64(len(s)))
	}
	b := append(k.buffer(len(head) + n)[:0], head...)
	for _, s := range data {
		b = append(b, rawBytes(s)...)
	}
	return b
}

// unpack is the inverse of pack.
func unpack[T Elem](b []byte) (data [][]T, err error) {
	short := func() error { return fmt.Errorf("a part of %d bytes is incomplete", len(b)) }
	number := func() int {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<48 {
			err = short()
			return 0
		}
		b = b[n:]
		return int(v)
	}
	n := number()
	if err != nil || n > len(b) {
		return nil, short()
	}
	if name := string(b[:n]); name != reflect.TypeFor[T]().String() {
		return nil, fmt.Errorf("the checkpoint has elements of type %s, not %s", name, reflect.TypeFor[T]())
	}
	b = b[n:]
	count := number()
	if err != nil || count > len(b) {
		return nil, short()
	}
	data = make([][]T, count)
	lengths := make([]int, count)
	for i := range lengths {
		lengths[i] = number()
	}
	for i, n := range lengths {
		size := sizeOf[T]()
		if err != nil || size > 0 && n > len(b)/size {
			return nil, short()
		}
		data[i] = make([]T, n)
		b = b[copy(rawBytes(data[i]), b):]
	}
	return data, nil
}
