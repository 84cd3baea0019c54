package sched

import (
	"math/rand"
	"testing"
)

// heldPort keeps messages under way until the test completes them.
type heldPort struct {
	r     *Run
	held  []int // slots
	peers []int32
}

func (p *heldPort) Post(r *Run, id int, op *Op, _ []byte) (bool, error) {
	p.held = append(p.held, id)
	p.peers = append(p.peers, r.Peer(op))
	return false, nil
}

func (p *heldPort) Reduce(*Run, []byte, []byte) {}

// sequence returns a graph of n sends, to ranks 1, 2, 3 and so on, of which k are under way
// at a time.
func sequence(t testing.TB, n, k, window int) *Graph {
	t.Helper()
	var b Builder
	b.Reset(0, n+1)
	b.Generate(Generator{Len: n, Window: window, At: func(i int) (Op, Waits) {
		return Op{Kind: Send, Peer: int32(i + 1), Src: Span{Buf: Out, Len: 1}}, WaitEnds(ID(max(i-k, -1)))
	}})
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestGeneratedRun checks which operations are under way if messages complete in any order.
func TestGeneratedRun(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for _, c := range []struct{ n, k, window int }{{100, 3, 8}, {100, 8, 4}, {5, 1, 8}, {0, 1, 2}, {40, 40, 64}} {
		g := sequence(t, c.n, c.k, c.window)
		p := &heldPort{}
		p.r = &Run{Graph: g, Port: p, Mem: [Bufs][]byte{Out: make([]byte, 1)}}
		for round := range 2 {
			p.peers = p.peers[:0]
			for p.r.Start(); len(p.held) > 0; {
				if most := min(c.k, c.window); len(p.held) > most {
					t.Fatalf("%+v: %d messages are under way, want at most %d", c, len(p.held), most)
				}
				i := rng.Intn(len(p.held))
				id := p.held[i]
				p.held[i] = p.held[len(p.held)-1]
				p.held = p.held[:len(p.held)-1]
				p.r.HandleEnd(id, nil)
			}
			if !p.r.Done() || len(p.peers) != c.n {
				t.Fatalf("%+v, round %d: done is %v after %d messages, want %d", c, round, p.r.Done(), len(p.peers), c.n)
			}
			seen := make([]bool, c.n+1)
			for _, peer := range p.peers {
				if seen[peer] {
					t.Errorf("%+v: two messages to rank %d", c, peer)
				}
				seen[peer] = true
			}
		}
	}
}

// TestGeneratedRunDoesNotAllocate checks that a second run reuses the window.
func TestGeneratedRunDoesNotAllocate(t *testing.T) {
	p := &heldPort{held: make([]int, 0, 8), peers: make([]int32, 0, 1000)}
	p.r = &Run{Graph: sequence(t, 1000, 1, 8), Port: p, Mem: [Bufs][]byte{Out: make([]byte, 1)}}
	got := testing.AllocsPerRun(3, func() {
		p.peers = p.peers[:0]
		for p.r.Start(); len(p.held) > 0; {
			id := p.held[0]
			p.held = p.held[:0]
			p.r.HandleEnd(id, nil)
		}
	})
	if got != 0 {
		t.Errorf("a run of 1000 operations allocates %v times", got)
	}
}

// TestExpanded checks that an expanded graph has the dependencies of the window.
func TestExpanded(t *testing.T) {
	g, err := sequence(t, 20, 9, 4).Expand()
	if err != nil {
		t.Fatal(err)
	}
	if g.Len() != 20 || g.Generated() {
		t.Fatalf("the expanded graph has %d operations", g.Len())
	}
	for i, want := range map[int]int{0: 0, 3: 0, 4: 1, 6: 3, 7: 4, 12: 4} {
		// Operation 12 waits for 5 to 8 by the window, and for 3, which is in none of its lists.
		if i == 12 {
			want++
		}
		if got := g.Need(i); got != want {
			t.Errorf("operation %d waits for %d others, want %d", i, got, want)
		}
	}
}
