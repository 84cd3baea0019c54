package radix

import (
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// Classes lists the problem sizes.
const Classes = "SWAB"

const (
	keyBits    = 30
	digitBits  = 10
	digits     = 1 << digitBits
	iterations = 10
)

// classes has the number of keys as a power of two, the one of NAS IS for the same letter.
var classes = map[byte]int{'S': 16, 'W': 20, 'A': 23, 'B': 25}

// Run sorts the keys of a class on the ranks of c, several times. Any number of ranks will
// do.
func Run(c *mpi.Comm, class byte) (npb.Result, error) {
	log2, err := npb.Class(classes, class)
	if err != nil {
		return npb.Result{}, err
	}
	s := newSorter(c, 1<<log2)
	unsorted := slices.Clone(s.keys)
	var clock npb.Clock
	s.clock = &clock
	if err := s.sort(); err != nil { // untimed, to touch the memory
		return npb.Result{}, err
	}
	if err := clock.Start(c); err != nil {
		return npb.Result{}, err
	}
	for range iterations {
		copy(s.keys, unsorted)
		if err := s.sort(); err != nil {
			return npb.Result{}, err
		}
	}
	clock.Stop()

	checks, err := verify(c, unsorted, s.keys)
	if err != nil {
		return npb.Result{}, err
	}
	return clock.Finish(c, npb.Result{
		Name: "RADIX", Class: class, Size: fmt.Sprint(s.n), Iterations: iterations,
		Operation: "keys sorted", Operations: float64(iterations * s.n), Checks: checks,
	})
}

// sorter is a rank's share of the keys: a contiguous part of the n positions, before and
// after each pass.
type sorter struct {
	c     *mpi.Comm
	clock *npb.Clock
	n     int

	keys   []uint32
	byBits []uint32 // keys in the order of the digit of this pass
	staged []uint32 // what other ranks sent, rank by rank

	mine   []int32 // how many keys have each digit
	counts []int32 // the same of all ranks
	starts []int   // position of the first key of a rank with a digit: rank*digits + digit
	sends  []run   // in byBits, for each rank
	recvs  []run   // in staged, from each rank

	reqs []mpi.Request
}

// run is a part of a slice.
type run struct{ from, to int }

func newSorter(c *mpi.Comm, n int) *sorter {
	s := &sorter{c: c, n: n}
	first, end := s.share(c.Rank())
	s.keys, s.byBits, s.staged = make([]uint32, end-first), make([]uint32, end-first), make([]uint32, end-first)
	s.mine, s.counts, s.starts = make([]int32, digits), make([]int32, c.Size()*digits), make([]int, c.Size()*digits)
	s.sends, s.recvs = make([]run, c.Size()), make([]run, c.Size())
	s.reqs = make([]mpi.Request, 0, group)
	random := npb.Random(npb.Seed)
	random.Skip(first)
	for i := range s.keys {
		s.keys[i] = uint32(random.Next() * (1 << keyBits))
	}
	return s
}

// share returns the positions of a rank.
func (s *sorter) share(rank int) (first, end int) {
	return s.n * rank / s.c.Size(), s.n * (rank + 1) / s.c.Size()
}

// sort sorts the keys, from the lowest digit to the highest.
func (s *sorter) sort() error {
	for shift := 0; shift < keyBits; shift += digitBits {
		if err := s.count(shift); err != nil {
			return err
		}
		s.locate()
		s.arrange(shift)
		if err := s.exchange(); err != nil {
			return err
		}
		s.merge()
	}
	return nil
}

// count counts the keys with each digit, and gathers the counts of all ranks.
func (s *sorter) count(shift int) error {
	mine := (*[digits]int32)(s.mine)
	clear(mine[:])
	for _, k := range s.keys {
		mine[k>>shift%digits]++
	}
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	return mpi.Allgather(s.c, s.mine, s.counts)
}

// locate computes from the counts where keys go: those with a lower digit first, and those
// with the same digit in the order of their ranks, because a pass must not change the order
// of equal digits.
func (s *sorter) locate() {
	position := 0
	for d := range digits {
		for rank := range s.c.Size() {
			s.starts[rank*digits+d] = position
			position += int(s.counts[rank*digits+d])
		}
	}
	me := s.c.Rank()
	sent, received := 0, 0
	for rank := range s.c.Size() {
		n := s.overlap(me, rank)
		s.sends[rank] = run{sent, sent + n}
		sent += n
		n = s.overlap(rank, me)
		s.recvs[rank] = run{received, received + n}
		received += n
	}
}

// overlap returns how many keys of one rank belong to another.
func (s *sorter) overlap(src, dst int) int {
	first, end := s.share(dst)
	sum := 0
	for d := range digits {
		start := s.starts[src*digits+d]
		sum += max(0, min(end, start+int(s.counts[src*digits+d]))-max(first, start))
	}
	return sum
}

// arrange sorts the rank's keys by their digit. Keys that belong to one rank are then next
// to each other.
func (s *sorter) arrange(shift int) {
	var next [digits]int
	sum := 0
	for d, n := range s.mine {
		next[d] = sum
		sum += int(n)
	}
	for _, k := range s.keys {
		d := k >> shift % digits
		s.byBits[next[d]] = k
		next[d]++
	}
}

// merge stores the received keys where they belong. Those of one rank are in the order of
// their digits.
func (s *sorter) merge() {
	me := s.c.Rank()
	first, end := s.share(me)
	for rank := range s.c.Size() {
		from := s.staged[s.recvs[rank].from:s.recvs[rank].to]
		if rank == me {
			from = s.byBits[s.sends[me].from:s.sends[me].to]
		}
		for d := range digits {
			start := s.starts[rank*digits+d]
			stop := min(end, start+int(s.counts[rank*digits+d]))
			if start = max(first, start); start < stop {
				n := copy(s.keys[start-first:stop-first], from)
				from = from[n:]
			}
		}
	}
}
