package is

import (
	"slices"

	"github.com/muster-mpi/muster/apps/internal/npb"
	"github.com/muster-mpi/muster/mpi"
)

// maxBuckets is the largest number of buckets. Tables of this size are indexed with a
// mask, which makes the compiler leave out the check of the index.
const maxBuckets = 1 << 10

// sorter is one rank.
type sorter struct {
	p     params
	c     *mpi.Comm
	clock npb.Clock
	keys  []int32 // this rank's part of all keys, in their original order

	bucketed   []int32 // the same keys, bucket by bucket
	received   []int32 // the keys of all ranks in this rank's buckets
	population []int32 // how many of them are at most first, first+1, …
	first      int     // smallest key of this rank's buckets

	sizes, totals []int32 // of the buckets, here and on all ranks; then the keys of the probes
	counts        [2][]int
	displs        [2][]int // counts and displacements of keys to send and to receive
	correct       int      // probes whose rank was right
}

const send, recv = 0, 1

func newSorter(c *mpi.Comm, p params) *sorter {
	n := 1 << p.log2Keys / c.Size()
	s := &sorter{
		p: p, c: c,
		keys: make([]int32, n), bucketed: make([]int32, n), received: make([]int32, 3*n/2),
		population: make([]int32, 1<<p.log2Max),
		sizes:      make([]int32, maxBuckets+len(p.probes)),
		totals:     make([]int32, maxBuckets+len(p.probes)),
	}
	for i := range s.counts {
		s.counts[i], s.displs[i] = make([]int, c.Size()), make([]int, c.Size())
	}
	// A key is the sum of four random numbers, so that keys in the middle are frequent.
	random := npb.Random(npb.Seed)
	random.Skip(4 * n * c.Rank())
	quarter := float64(int(1) << p.log2Max / 4)
	for i := range s.keys {
		s.keys[i] = int32(quarter * (random.Next() + random.Next() + random.Next() + random.Next()))
	}
	return s
}

// rank makes one iteration: it determines the rank of every key.
func (s *sorter) rank(iteration int) error {
	if s.c.Rank() == 0 {
		s.keys[iteration] = int32(iteration)
		s.keys[iteration+iterations] = int32(1<<s.p.log2Max - iteration)
	}
	s.bucket()
	s.clock.EnterMPI()
	err := mpi.Allreduce(s.c, s.sizes, s.totals, mpi.Sum)
	s.clock.LeaveMPI()
	if err != nil {
		return err
	}
	smaller, buckets := s.divide()
	if err := s.exchange(); err != nil {
		return err
	}
	s.count(buckets)
	s.probe(iteration, smaller)
	return nil
}

// bucket sorts the keys by bucket. The keys of the probes, which the ranks need from each
// other, travel with the sizes of the buckets.
func (s *sorter) bucket() {
	clear(s.sizes)
	for i, probe := range s.p.probes {
		if probe.index/len(s.keys) == s.c.Rank() {
			s.sizes[maxBuckets+i] = s.keys[probe.index%len(s.keys)]
		}
	}
	sizes := (*[maxBuckets]int32)(s.sizes)
	shift := s.shift()
	for _, key := range s.keys {
		sizes[key>>shift&(maxBuckets-1)]++
	}
	var next [maxBuckets]int32
	for i := 1; i < maxBuckets; i++ {
		next[i] = next[i-1] + sizes[i-1]
	}
	out := s.bucketed
	for _, key := range s.keys {
		b := key >> shift & (maxBuckets - 1)
		out[next[b]] = key
		next[b]++
	}
}

// shift is how far a key is shifted to get its bucket.
func (s *sorter) shift() uint { return uint(s.p.log2Max-s.p.log2Buckets) & 31 }

// span is a range of buckets, without its end.
type span struct{ first, end int }

// divide gives each rank so many buckets that the ranks up to it have at least their share
// of keys. It returns the number of keys in the buckets of lower ranks, and those of this
// rank.
func (s *sorter) divide() (smaller int, buckets span) {
	clear(s.counts[send])
	to, here, all, first := 0, 0, 0, 0
	before := 0 // keys of the ranks below to
	for b := range 1 << s.p.log2Buckets {
		here += int(s.sizes[b])
		all += int(s.totals[b])
		if all < (to+1)*len(s.keys) {
			continue
		}
		s.counts[send][to] = here
		if to == s.c.Rank() {
			smaller, buckets = before, span{first, b + 1}
		}
		to, here, before, first = to+1, 0, all, b+1
	}
	return smaller, buckets
}

// exchange sends every key to the rank that has its bucket.
func (s *sorter) exchange() error {
	s.clock.EnterMPI()
	defer s.clock.LeaveMPI()
	if err := mpi.Alltoall(s.c, s.counts[send], s.counts[recv]); err != nil {
		return err
	}
	total := 0
	for way := range s.counts {
		total = 0
		for i, n := range s.counts[way] {
			s.displs[way][i] = total
			total += n
		}
	}
	s.received = slices.Grow(s.received[:0], total)[:total]
	return mpi.Alltoallv(s.c, s.bucketed, s.counts[send], s.displs[send], s.received, s.counts[recv], s.displs[recv])
}

// count counts the received keys by value and adds up the counts.
func (s *sorter) count(buckets span) {
	shift := s.shift()
	s.first = buckets.first << shift
	s.population = s.population[:(buckets.end-buckets.first)<<shift]
	population, first := s.population, int32(s.first)
	clear(population)
	for _, key := range s.received {
		population[key-first]++
	}
	sum := int32(0)
	for i, n := range population {
		sum += n
		population[i] = sum
	}
}

// probe compares the ranks of those probes that are here with the ones given: a key's rank
// is the number of keys that are smaller.
func (s *sorter) probe(iteration, smaller int) {
	for i, probe := range s.p.probes {
		at := int(s.totals[maxBuckets+i]) - s.first
		if at < 0 || at >= len(s.population) {
			continue
		}
		rank := smaller
		if at > 0 {
			rank += int(s.population[at-1])
		}
		if rank == probe.rank+probe.step*iteration {
			s.correct++
		}
	}
}

// countUnordered sorts the keys by their ranks, and returns how many are smaller than the one
// before them, on this rank or at the end of the rank before.
func (s *sorter) countUnordered() (n int, err error) {
	const tag = 1
	sorted := make([]int32, len(s.received)+1) // behind the largest key of lower ranks
	for _, key := range s.received {
		at := &s.population[int(key)-s.first]
		sorted[*at] = key
		*at--
	}
	if s.c.Rank() > 0 {
		if _, err := mpi.Recv(s.c, sorted[:1], s.c.Rank()-1, tag); err != nil {
			return 0, err
		}
	}
	if s.c.Rank() < s.c.Size()-1 {
		if err := mpi.Send(s.c, sorted[len(sorted)-1:], s.c.Rank()+1, tag); err != nil {
			return 0, err
		}
	}
	for i, key := range sorted[1:] {
		if key < sorted[i] {
			n++
		}
	}
	return n, nil
}
