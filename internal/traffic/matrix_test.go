package traffic

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
)

// halo is the traffic of an exchange between neighbors of a grid without wrap-around.
func halo(width, height int) *Matrix {
	t := New(width * height)
	for y := range height {
		for x := range width {
			if x+1 < width {
				t.Add(y*width+x, y*width+x+1, 100)
			}
			if y+1 < height {
				t.Add(y*width+x, (y+1)*width+x, 100)
			}
		}
	}
	return t
}

func blocks(hosts, each int) (host []int) {
	for h := range hosts {
		host = append(host, slices.Repeat([]int{h}, each)...)
	}
	return host
}

// On four hosts, each quarter of a 4 × 4 grid is best, which has 8 of 24 pairs on two hosts.
func TestHaloIsCutIntoQuarters(t *testing.T) {
	m := halo(4, 4)
	rows := blocks(4, 4)
	badly := []int{0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3, 0, 1} // no neighbors on one host
	for _, from := range [][]int{rows, badly} {
		got := m.Assign(from)
		if between := m.BytesBetween(got); between != 800 {
			t.Errorf("from %v with %d bytes between hosts to %v with %d; the best have 800", from, m.BytesBetween(from), got, between)
		}
	}
}

// TestNeverWorse also checks that hosts keep their numbers of ranks, and that the gain that
// exchange claims is real, on random graphs.
func TestNeverWorse(t *testing.T) {
	r := seeded.Random(t)
	for range 200 {
		n := 2 + r.IntN(20)
		m, host := New(n), make([]int, n)
		for i := range host {
			host[i] = r.IntN(1 + r.IntN(5))
		}
		for range r.IntN(4 * n) {
			m.Add(r.IntN(n), r.IntN(n), r.IntN(1000))
		}
		got := m.Assign(host)
		if !slices.Equal(countRanks(got), countRanks(host)) {
			t.Fatalf("the hosts of %v have other numbers of ranks in %v", host, got)
		}
		if before, after := m.BytesBetween(host), m.BytesBetween(got); after > before {
			t.Fatalf("%d bytes between hosts before, %d after", before, after)
		}
	}
}

// Groups that talk only among themselves, in random order, find together.
func TestGroupsFindTogether(t *testing.T) {
	r := seeded.Random(t)
	const hosts, each = 32, 32
	order := r.Perm(hosts * each)
	m := New(hosts * each)
	for i := range order {
		for k := range i {
			if i/each == k/each {
				m.Add(order[i], order[k], 10)
			}
		}
	}
	if between := m.BytesBetween(m.Assign(blocks(hosts, each))); between > 0 {
		t.Errorf("%d of %d bytes are between hosts", between, m.Total())
	}
}

func BenchmarkHalo1024(b *testing.B) {
	m, host := halo(32, 32), blocks(32, 32)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(host), func(i, k int) { host[i], host[k] = host[k], host[i] })
	for b.Loop() {
		b.ReportMetric(float64(m.BytesBetween(m.Assign(host)))/float64(m.BytesBetween(host)), "left")
	}
}
