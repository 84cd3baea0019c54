package hybrid

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestHistoryKeepsUnacked adds and drops requests of random lengths: the remaining
// ones keep their bytes, and the memory is bounded by what is not acked.
func TestHistoryKeepsUnacked(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h history
	var want [][]byte // bodies from h.first on
	for round := range 50_000 {
		body := make([]byte, random.IntN(20_000))
		for i := range body {
			body[i] = byte(round + i)
		}
		wr := rdma.SendWR{ID: uint64(round), Op: rdma.OpSend, Body: rdma.MemOf(body)}
		h.add(&wr, uint64(round+1))
		want = append(want, bytes.Clone(body))
		clear(body) // it belongs to the user again
		if len(want) > random.IntN(40) {
			n := random.IntN(len(want) + 1)
			h.drop(h.first + uint64(n))
			want = want[n:]
		}
		if len(want) == 0 {
			continue
		}
		i := random.IntN(len(want))
		if r := h.record(h.first + uint64(i)); !bytes.Equal(r.wr.Body.Bytes(), want[i]) || r.message != h.first+uint64(i)+1 {
			t.Fatalf("round %d: request %d of %d is the wrong one", round, i, len(want))
		}
	}
	if got := h.memory(); got > 4<<20 {
		t.Errorf("the history takes %d bytes", got)
	}
}

func BenchmarkHistory(b *testing.B) {
	for _, size := range []int{8, 1 << 10, 16 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var h history
			wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Body: rdma.MemOf(make([]byte, size))}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				h.add(&wr, uint64(i))
				if h.since >= ackEvery || h.fresh >= ackBytes {
					h.since, h.fresh = 0, 0
					h.drop(h.next - 2)
				}
			}
		})
	}
}
