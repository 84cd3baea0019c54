package coll

import "github.com/muster-mpi/muster/internal/sched"

// The allgathers that send runs of blocks: Standard Exchange and recursive doubling,
// Bruck, gather and broadcast. They work in a row, in which blocks are contiguous
// whatever the caller's offsets are. For blocks of equal length the row is Out itself.

// row is memory for all blocks, beginning with that of rank first.
type row struct {
	s     *Shape
	first int
	at    []int // offsets of the blocks of the row, and its end; nil if all lengths are equal
	mem   sched.Span
	isOut bool
}

// newRow returns a row in Out if the blocks are laid out alike there, otherwise in
// scratch.
func newRow(b *sched.Builder, s *Shape, first int) *row {
	w := &row{s: s, first: first, isOut: first == 0}
	size := s.Size * s.Recv.Each
	if s.Recv.Lens != nil {
		w.at, size = make([]int, 0, s.Size+1), 0
		for i := range s.Size {
			off, n := s.Recv.Block(wrap(first+i, s.Size))
			w.isOut = w.isOut && (n == 0 || off == size)
			w.at = append(w.at, size)
			size += n
		}
		w.at = append(w.at, size)
	}
	if w.isOut {
		w.mem = sched.Span{Buf: sched.Out, Len: size}
	} else {
		w.mem = b.Tmp(size)
	}
	return w
}

// run returns the span of blocks i to j-1 of the row.
func (w *row) run(i, j int) sched.Span {
	if w.at == nil {
		each := w.s.Recv.Each
		return w.mem.At(i*each, (j-i)*each)
	}
	return w.mem.At(w.at[i], w.at[j]-w.at[i])
}

// deliver copies all blocks to the caller's offsets.
func (w *row) deliver(b *sched.Builder, by func(i int) []sched.ID) {
	if w.isOut {
		return
	}
	m := mover{b: b}
	for i := range w.s.Size {
		rank := wrap(w.first+i, w.s.Size)
		if rank == w.s.Rank && w.s.InPlace {
			continue // already there, and possibly still being sent
		}
		m.copy(w.s.outBlock(rank), w.run(i, i+1), by(i)...)
	}
	m.flush()
}

// fold groups ranks for an exchange among a power of the radix: the number of groups is
// the largest such power, and a group has consecutive ranks, almost equally many each.
// The first rank of a group takes part for all. With radix k+1 a group has at most k
// others, so one step of k ports reaches them: the correction step of T2 3.4.3.
type fold struct{ size, groups, each, larger int }

func newFold(size, radix int) fold {
	groups := 1
	for groups*radix <= size {
		groups *= radix
	}
	return fold{size, groups, size / groups, size % groups}
}

// first returns the first rank of a group, and size for the group after the last.
func (f fold) first(group int) int { return group*f.each + min(group, f.larger) }

func (f fold) group(rank int) int {
	if edge := f.larger * (f.each + 1); rank >= edge {
		return f.larger + (rank-edge)/f.each
	}
	return rank / (f.each + 1)
}

// others returns the number of ranks of the largest group besides the first.
func (f fold) others() int { return f.first(1) - 1 }

// exchangeAllgather: the first rank of each group exchanges all its blocks with the k
// groups whose number differs in one digit to the base k+1, digit by digit from the
// lowest. Adjacent groups have adjacent blocks.
func exchangeAllgather(b *sched.Builder, s *Shape, k int) {
	f := newFold(s.Size, k+1)
	g := f.group(s.Rank)
	lead := f.first(g)
	w := newRow(b, s, 0)
	if s.Rank != lead {
		sent := sendSome(b, lead, s.ownInput())
		b.Step(1 + log(f.groups, k+1))
		// In place, the own block is sent from the span that it is received into.
		all := recvSome(b, lead, w.run(0, s.Size), sent)
		w.deliver(b, func(int) []sched.ID { return []sched.ID{all} })
		return
	}
	filled := []sched.ID{b.Copy(w.run(s.Rank, s.Rank+1), s.ownInput())}
	step := 0
	if f.others() > 0 {
		step++ // on all ranks, so that pictures show the same time
	}
	for m := lead + 1; m < f.first(g+1); m++ {
		filled = append(filled, recvSome(b, m, w.run(m, m+1)))
	}
	for span := 1; span < f.groups; span *= k + 1 {
		b.Step(step)
		step++
		low := g - g%span // first of the span groups whose blocks are here
		have, after := w.run(f.first(low), f.first(low+span)), filled
		if len(filled) == 1 {
			have, after = s.ownInput(), nil // the own block, before it is copied
		}
		digit := g / span % (k + 1)
		for j := 1; j <= k; j++ {
			// Every rank begins with the next digit, so that targets differ.
			there := g + ((digit+j)%(k+1)-digit)*span
			sendSome(b, f.first(there), have, after...)
		}
		for j := 1; j <= k; j++ {
			there := g + (wrap(digit-j, k+1)-digit)*span
			theirs := there - there%span
			filled = append(filled, recvSome(b, f.first(there), w.run(f.first(theirs), f.first(theirs+span))))
		}
	}
	b.Step(step)
	for m := lead + 1; m < f.first(g+1); m++ {
		sendSome(b, m, w.run(0, s.Size), filled...)
	}
	w.deliver(b, func(int) []sched.ID { return filled })
}

func exchangeAllgatherCost(s *Shape, m *Model, k int) float64 {
	all, largest := s.blocksTotal()
	f := newFold(s.Size, k+1)
	t := m.together(f.others(), largest) + m.together(f.others(), all)
	for span := 1; span < f.groups; span *= k + 1 {
		t += m.together(k, all*float64(span)/float64(f.groups))
	}
	return m.atLeast(t + m.Copy*s.rowCopies(all, largest))
}

// rowCopies returns the bytes that the algorithms with a row copy: the own block, and
// all blocks if lengths differ.
func (s *Shape) rowCopies(all, largest float64) float64 {
	if s.Recv.irregular() {
		return all + largest
	}
	return largest
}

// bruckAllgather works in a row that begins with the own block. In round i a rank has
// the blocks of (k+1)^i ranks from itself upwards, and receives those of the next
// k·(k+1)^i ranks; the last round receives only the missing ones.
func bruckAllgather(b *sched.Builder, s *Shape, params []int) {
	n, r, k := s.Size, s.Rank, params[0]
	if n <= k+1 {
		directAllgather(b, s, []int{k}) // one round of single blocks: no row needed
		return
	}
	w := newRow(b, s, r)
	filled := []sched.ID{b.Copy(w.run(0, 1), s.ownInput())}
	by := make([]sched.ID, n) // the operation that wrote the i-th block
	by[0] = filled[0]
	step := 0
	for span := 1; span < n; span *= k + 1 {
		b.Step(step)
		step++
		have, after := s.ownInput(), []sched.ID(nil) // the own block, before it is copied
		if span > 1 {
			after = filled
		}
		for j := 1; j <= k && j*span < n; j++ {
			count := min(span, n-j*span)
			if span > 1 {
				have = w.run(0, count)
			}
			sendSome(b, wrap(r-j*span, n), have, after...)
			got := recvSome(b, wrap(r+j*span, n), w.run(j*span, j*span+count))
			for i := range count {
				by[j*span+i] = got
			}
			filled = append(filled, got)
		}
	}
	b.Step(step)
	w.deliver(b, func(i int) []sched.ID { return by[i : i+1] })
}

func bruckAllgatherCost(s *Shape, m *Model, params []int) float64 {
	all, largest := s.blocksTotal()
	n, k := s.Size, params[0]
	t := 0.0
	for span := 1; span < n; span *= k + 1 {
		messages := min(k, (n-1)/span)
		t += m.together(messages, all*float64(min(span, n-span))/float64(n))
	}
	if n <= k+1 {
		return m.atLeast(t + m.Copy*largest)
	}
	return m.atLeast(t + m.Copy*(all+largest))
}

// gatherBcastAllgather goes up and down a tree with root 0. Its 2(N-1) messages are the
// minimum for an allgather (T2 4.4.1): where ranks share cores, messages cost more than
// steps.
func gatherBcastAllgather(b *sched.Builder, s *Shape, params []int) {
	n, r, k := s.Size, s.Rank, params[0]
	t, ok := knomial(b, r, n, k+1)
	if !ok {
		return
	}
	w := newRow(b, s, 0)
	rounds := log(n, k+1)
	mine := w.run(r, r+t.span)
	var filled []sched.ID
	if t.parent >= 0 && len(t.children) == 0 {
		mine = s.ownInput() // a leaf needs no row to send from
	} else {
		filled = append(filled, b.Copy(w.run(r, r+1), s.ownInput()))
	}
	for i := len(t.children) - 1; i >= 0; i-- {
		c := t.children[i]
		b.Step(rounds - 1 - c.step)
		filled = append(filled, recvSome(b, c.rank, w.run(c.rank, c.rank+c.span)))
	}
	if t.parent >= 0 {
		b.Step(rounds - 1 - t.step)
		sent := sendSome(b, t.parent, mine, filled...)
		b.Step(rounds + t.step)
		// The received blocks overlap those that were sent.
		filled = []sched.ID{recvSome(b, t.parent, w.run(0, n), append(filled, sent)...)}
	}
	all := b.Join(filled...)
	for _, c := range t.children {
		b.Step(rounds + c.step)
		sendSome(b, c.rank, w.run(0, n), all)
	}
	b.Step(2 * rounds)
	w.deliver(b, func(int) []sched.ID { return []sched.ID{all} })
}

func gatherBcastAllgatherCost(s *Shape, m *Model, params []int) float64 {
	all, largest := s.blocksTotal()
	n, k := s.Size, params[0]
	up := spreadCost(n, m, k+1, 0, func(below int) float64 {
		bytes := all * float64(min(below, n-below)) / float64(n)
		return m.startup(bytes) + bytes*m.perByte(1)
	})
	return m.atLeast(up + knomialCost(n, m, k+1, all) + m.Copy*s.rowCopies(all, largest))
}
