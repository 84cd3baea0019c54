package coll

import (
	"bytes"
	"fmt"
	"math/rand"
	"slices"

	"github.com/muster-mpi/muster/internal/sched"
)

// The adversary executes graphs on real bytes in the worst way that dependencies allow:
// it picks the next event at random; a receive overwrites its destination with garbage
// as soon as it is posted; a send is read when it is posted or when it is matched. It
// shares no code with sched.Run or with the validator, so it can check them. It executes
// graphs with a shared buffer with messages or in one memory for each node.

type adversary struct {
	rng      *rand.Rand
	graphs   []*sched.Graph
	mem      [][sched.Bufs][]byte
	commutes bool
	need     [][]int32
	ready    [][2]int // rank, operation
	sends    map[strand][]sentence
	recvs    map[strand][]sentence
	meetings []strand // with a matching send and receive
	segment  bool     // the ranks of a node have one memory
	left     int
}

// sentence is a posted message; its bytes are a copy from the time of posting, or nil.
type sentence struct {
	op    int
	early []byte
	ended bool
}

// runAdversary executes the graphs once and returns an error if the result is wrong.
func runAdversary(graphs []*sched.Graph, shapes []Shape, rng *rand.Rand) error {
	calls := defineCalls(shapes, rng)
	a := &adversary{rng: rng, graphs: graphs, commutes: shapes[0].Commutes, sends: map[strand][]sentence{}, recvs: map[strand][]sentence{}, segment: rng.Intn(2) == 0}
	seg := newSegments(graphs, shapes, a.segment, rng)
	for r, g := range graphs {
		a.mem = append(a.mem, [sched.Bufs][]byte{calls[r].in, calls[r].out, random(rng, g.Tmp), seg[r]})
		need := make([]int32, len(g.Ops))
		for i := range g.Ops {
			need[i] = int32(g.Need(i))
			if need[i] == 0 {
				a.ready = append(a.ready, [2]int{r, i})
			}
		}
		a.need = append(a.need, need)
		a.left += len(g.Ops)
	}
	given := make([][]byte, len(calls))
	for r := range calls {
		given[r] = bytes.Clone(calls[r].in)
	}
	if err := a.run(); err != nil {
		return err
	}
	for r, c := range calls {
		if !bytes.Equal(c.out, c.want) || !bytes.Equal(c.in, given[r]) {
			return fmt.Errorf("rank %d has %v, must have %v", r, c.out, c.want)
		}
	}
	return nil
}

func (a *adversary) run() error {
	for len(a.ready)+len(a.meetings) > 0 {
		if k := a.rng.Intn(len(a.ready) + len(a.meetings)); k < len(a.ready) {
			at := a.ready[k]
			a.ready = slices.Delete(a.ready, k, k+1)
			if err := a.begin(at[0], at[1]); err != nil {
				return err
			}
		} else {
			pair := a.meetings[k-len(a.ready)]
			a.meetings = slices.Delete(a.meetings, k-len(a.ready), k-len(a.ready)+1)
			if err := a.meet(pair); err != nil {
				return err
			}
		}
	}
	if a.left > 0 {
		return fmt.Errorf("%d operations never complete", a.left)
	}
	for _, lists := range []map[strand][]sentence{a.sends, a.recvs} {
		for pair, list := range lists {
			if len(list) > 0 {
				return fmt.Errorf("a message from rank %d to %d is left", pair.from, pair.to)
			}
		}
	}
	return nil
}

// at returns the bytes of a span, or an error if it is outside its buffer.
func (a *adversary) at(r int, s sched.Span) ([]byte, error) {
	m := a.mem[r][s.Buf]
	if s.Off < 0 || s.Len < 0 || s.Off+s.Len > len(m) {
		return nil, fmt.Errorf("rank %d: %+v is beyond %d bytes", r, s, len(m))
	}
	return m[s.Off : s.Off+s.Len], nil
}

// begin posts or executes an operation.
func (a *adversary) begin(r, i int) error {
	op := &a.graphs[r].Ops[i]
	src, err := a.at(r, op.Src)
	if err != nil {
		return err
	}
	dst, err := a.at(r, op.Dst)
	if err != nil {
		return err
	}
	if op.HandOver && a.segment {
		src, dst = src[:0], dst[:0]
	}
	switch op.Kind {
	case sched.Send:
		s := sentence{op: i}
		if a.rng.Intn(2) == 0 {
			s.early = append([]byte{}, src...)
			s.ended = a.rng.Intn(2) == 0
		}
		pair := strand{r, int(op.Peer), int(op.Stream)}
		a.sends[pair] = append(a.sends[pair], s)
		if len(a.recvs[pair]) >= len(a.sends[pair]) {
			a.meetings = append(a.meetings, pair)
		}
		a.postNext(r, i)
		if s.ended {
			a.end(r, i)
		}
	case sched.Recv:
		a.rng.Read(dst)
		pair := strand{int(op.Peer), r, int(op.Stream)}
		a.recvs[pair] = append(a.recvs[pair], sentence{op: i})
		if len(a.sends[pair]) >= len(a.recvs[pair]) {
			a.meetings = append(a.meetings, pair)
		}
		a.postNext(r, i)
	case sched.Copy:
		copy(dst, src)
		a.end(r, i)
	case sched.Reduce:
		if len(dst)%2 != 0 {
			return fmt.Errorf("rank %d: operation %d splits an element", r, i)
		}
		combine(a.commutes, dst, src)
		a.end(r, i)
	}
	return nil
}

// meet delivers the oldest message of a pair.
func (a *adversary) meet(pair strand) error {
	s, r := a.sends[pair][0], a.recvs[pair][0]
	a.sends[pair], a.recvs[pair] = a.sends[pair][1:], a.recvs[pair][1:]
	from, to := &a.graphs[pair.from].Ops[s.op], &a.graphs[pair.to].Ops[r.op]
	src, err := a.at(pair.from, from.Src)
	if err != nil {
		return err
	}
	dst, err := a.at(pair.to, to.Dst)
	if err != nil {
		return err
	}
	if a.segment && from.HandOver {
		src = nil
	}
	if a.segment && to.HandOver {
		dst = nil
	}
	if s.early != nil {
		src = s.early
	}
	if len(src) != len(dst) {
		return fmt.Errorf("rank %d sends %d bytes, rank %d takes %d", pair.from, len(src), pair.to, len(dst))
	}
	copy(dst, src)
	a.end(pair.to, r.op)
	if !s.ended {
		a.end(pair.from, s.op)
	}
	return nil
}

func (a *adversary) postNext(r, i int) {
	if t := a.graphs[r].NextPost(i); t >= 0 {
		a.satisfy(r, t)
	}
}

func (a *adversary) end(r, i int) {
	a.left--
	for _, j := range a.graphs[r].Successors(i) {
		a.satisfy(r, int(j))
	}
}

func (a *adversary) satisfy(r, i int) {
	if a.need[r][i]--; a.need[r][i] == 0 {
		a.ready = append(a.ready, [2]int{r, i})
	}
}
