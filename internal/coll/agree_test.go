package coll

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"github.com/muster-mpi/muster/internal/sched"
)

// adder is a network that adds float32 numbers, whose rounding depends on the grouping.
type adder struct{ network }

func (w *adder) Reduce(_ *sched.Run, inout, in []byte) {
	for i := 0; i < len(inout); i += 4 {
		a := math.Float32frombits(binary.LittleEndian.Uint32(in[i:]))
		b := math.Float32frombits(binary.LittleEndian.Uint32(inout[i:]))
		binary.LittleEndian.PutUint32(inout[i:], math.Float32bits(a+b))
	}
}

// TestAllreduceAgrees adds numbers of very different magnitude: all ranks must get the
// same bits, so that decisions based on a sum agree (MPI-4.1 section 6.9.1, advice to
// implementors).
func TestAllreduceAgrees(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	const count = 29
	for _, a := range AlgorithmsOf(Allreduce) {
		rounded := false // some sum depends on its grouping, so the test is meaningful
		for ranks := 2; ranks <= 17; ranks++ {
			w := &adder{network{rank: map[*sched.Run]int{}, queues: map[strand]*queue{}}}
			forward := make([]float32, count)
			for r := range ranks {
				s := Shape{Kind: Allreduce, Rank: r, Size: ranks, Elem: 4, Bytes: 4 * count, Commutes: true, Nodes: put(a, ranks)}
				var b sched.Builder
				g, err := a.Graph(&b, &s, a.Default())
				if err != nil {
					t.Fatal(err)
				}
				in := make([]byte, 4*count)
				for i := range count {
					x := float32(rng.NormFloat64() * math.Pow(10, float64(rng.Intn(7))))
					binary.LittleEndian.PutUint32(in[4*i:], math.Float32bits(x))
					forward[i] += x
				}
				run := &sched.Run{Graph: g, Port: w, Mem: [sched.Bufs][]byte{in, make([]byte, 4*count), make([]byte, g.Tmp)}}
				w.runs = append(w.runs, run)
				w.rank[run] = r
			}
			if err := w.run(rng); err != nil {
				t.Fatalf("%s, %d ranks: %v", a.Name, ranks, err)
			}
			first := w.runs[0].Mem[sched.Out]
			for i, x := range forward {
				got := math.Float32frombits(binary.LittleEndian.Uint32(first[4*i:]))
				rounded = rounded || got != x
				if math.Abs(float64(got-x)) > 16 { // coarse: TestExecute checks that no value is missing
					t.Fatalf("%s, %d ranks: sum %d is %v, must be near %v", a.Name, ranks, i, got, x)
				}
			}
			for r, run := range w.runs {
				if !bytes.Equal(run.Mem[sched.Out], first) {
					t.Fatalf("%s, %d ranks: ranks 0 and %d round differently", a.Name, ranks, r)
				}
			}
		}
		if !rounded {
			t.Errorf("%s: no sum depends on its grouping; the test proves nothing", a.Name)
		}
	}
}
