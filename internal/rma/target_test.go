package rma

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/dtype"
)

func encode(r Request, data ...byte) []byte {
	b := make([]byte, HeaderLen, HeaderLen+len(data))
	r.Encode(b)
	return append(b, data...)
}

// answers formats the answers to a request.
func answers(a *Answers) string {
	if a == nil {
		return "invalid"
	}
	var parts []string
	for _, x := range a.List {
		s := fmt.Sprintf("to %d tag %d", x.To, x.Tag)
		if o := Outcome(x.Data[0]); o != Done {
			s += " " + o.String()
		}
		if len(x.Data) > AnswerHead {
			s += fmt.Sprintf(" %v", x.Data[AnswerHead:])
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

// Consecutive requests to the four bytes 1 2 3 4.
func TestTargetServesRequests(t *testing.T) {
	mem := []byte{1, 2, 3, 4}
	target := NewTarget(mem, Elements{Size: 1, Kind: dtype.Uint8, Known: true})
	sum := Op(dtype.OpSum)
	region := target.Attach([]byte{50, 60})
	for i, c := range []struct {
		from    int32
		request []byte
		want    string
		mem     string
	}{
		{1, encode(Request{Kind: Get, Tag: 7, Offset: 1, Length: 2}), "to 1 tag 7 [2 3]", "[1 2 3 4]"},
		{1, encode(Request{Kind: Put, Offset: 3, Length: 1}, 9), "", "[1 2 3 9]"},
		{2, encode(Request{Kind: Accumulate, Op: sum, Length: 2}, 5, 5), "", "[6 7 3 9]"},
		{2, encode(Request{Kind: GetAccumulate, Op: sum, Tag: 8, Length: 2}, 1, 1), "to 2 tag 8 [6 7]", "[7 8 3 9]"},
		{2, encode(Request{Kind: GetAccumulate, Op: NoOp, Tag: 9, Length: 2}), "to 2 tag 9 [7 8]", "[7 8 3 9]"},
		{2, encode(Request{Kind: Accumulate, Op: Replace, Length: 1}, 1), "", "[1 8 3 9]"},
		{2, encode(Request{Kind: Accumulate, Op: NoOp, Length: 1}, 1), "", "[1 8 3 9]"},
		{3, encode(Request{Kind: CompareSwap, Tag: 1, Length: 1}, 2, 100), "to 3 tag 1 [1]", "[1 8 3 9]"},
		{3, encode(Request{Kind: CompareSwap, Tag: 1, Length: 1}, 1, 100), "to 3 tag 1 [1]", "[100 8 3 9]"},
		// Out of bounds, with an answer and without; the next flush reports the latter, once.
		{1, encode(Request{Kind: Get, Tag: 7, Offset: 3, Length: 2}), "to 1 tag 7 the target has no such memory", "[100 8 3 9]"},
		{1, encode(Request{Kind: Get, Tag: 7, Offset: 1<<64 - 1, Length: 2}), "to 1 tag 7 the target has no such memory", "[100 8 3 9]"},
		{1, encode(Request{Kind: Put, Offset: 4, Length: 1}, 1), "", "[100 8 3 9]"},
		{2, encode(Request{Kind: Flush, Tag: 5}), "to 2 tag 5", "[100 8 3 9]"},
		{1, encode(Request{Kind: Flush, Tag: 5}), "to 1 tag 5 the target has no such memory", "[100 8 3 9]"},
		{1, encode(Request{Kind: Flush, Tag: 5}), "to 1 tag 5", "[100 8 3 9]"},
		{1, encode(Request{Kind: GetAccumulate, Op: Op(dtype.OpMinLoc), Tag: 3, Length: 1}, 1), "to 1 tag 3 the operation is not defined for the elements of the window [100]", "[100 8 3 9]"},
		// Attached memory.
		{1, encode(Request{Kind: Get, Region: region, Tag: 7, Length: 2}), "to 1 tag 7 [50 60]", "[100 8 3 9]"},
		{1, encode(Request{Kind: Get, Region: region + 1, Tag: 7, Length: 2}), "to 1 tag 7 the target has no such memory", "[100 8 3 9]"},
		// Locks: 1 and 2 share, 3 waits for both, 1 again waits for 3.
		{1, encode(Request{Kind: LockShared, Tag: 1}), "to 1 tag 1", "[100 8 3 9]"},
		{2, encode(Request{Kind: LockShared, Tag: 2}), "to 2 tag 2", "[100 8 3 9]"},
		{3, encode(Request{Kind: LockExclusive, Tag: 3}), "", "[100 8 3 9]"},
		{1, encode(Request{Kind: Unlock, Tag: 4}), "to 1 tag 4", "[100 8 3 9]"},
		{1, encode(Request{Kind: LockShared, Tag: 5}), "", "[100 8 3 9]"},
		{2, encode(Request{Kind: Unlock}), "to 3 tag 3", "[100 8 3 9]"},
		{3, encode(Request{Kind: Unlock, Tag: 6}), "to 1 tag 5; to 3 tag 6", "[100 8 3 9]"},
		{1, encode(Request{Kind: Unlock}), "", "[100 8 3 9]"},
		{1, encode(Request{Kind: Unlock, Tag: 7}), "to 1 tag 7 the memory was not locked", "[100 8 3 9]"},
		// Invalid requests.
		{1, []byte{1, 2, 3}, "invalid", "[100 8 3 9]"},
		{1, encode(Request{Kind: Put, Length: 2}, 1), "invalid", "[100 8 3 9]"},
		{1, encode(Request{Kind: Get, Tag: -1, Length: 2}), "invalid", "[100 8 3 9]"},
		{1, encode(Request{Kind: Get, Tag: 1, Length: MaxPiece + 1}), "invalid", "[100 8 3 9]"},
		{1, encode(Request{Kind: kindCount}), "invalid", "[100 8 3 9]"},
	} {
		if got := answers(target.Serve(c.from, c.request)); got != c.want {
			t.Errorf("request %d: answers %q, want %q", i, got, c.want)
		}
		if got := fmt.Sprint(mem); got != c.mem {
			t.Errorf("request %d leaves %s, want %s", i, got, c.mem)
		}
	}
	if !target.Detach(region) || target.Detach(region) || target.Regions() != 0 {
		t.Error("memory cannot be detached exactly once")
	}
}

// A request with one answer does not allocate.
func TestServeNoAllocation(t *testing.T) {
	target := NewTarget(make([]byte, 64), Elements{Size: 8, Kind: dtype.Int64, Known: true})
	add := encode(Request{Kind: GetAccumulate, Op: Op(dtype.OpSum), Tag: 1, Length: 8}, make([]byte, 8)...)
	target.Serve(1, add)
	if n := testing.AllocsPerRun(100, func() { target.Serve(1, add) }); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
}

// A decoded request equals the encoded one, and no truncated or random request accesses
// memory outside of the target's.
func TestRequestEncoding(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	want := Request{Kind: Put, Op: Replace, Tag: 1<<31 - 1, Region: 1 << 60, Offset: 1 << 59, Length: 3}
	var got Request
	data, ok := got.Decode(encode(want, 1, 2, 3))
	if !ok || got != want || !bytes.Equal(data, []byte{1, 2, 3}) {
		t.Errorf("decoded %+v with %v, want %+v", got, data, want)
	}
	target := NewTarget(make([]byte, 100), Elements{Size: 4, Kind: dtype.Int32, Known: true})
	for range 20_000 {
		b := make([]byte, rng.IntN(60))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		if len(b) >= HeaderLen { // let most pass the first check
			b[0] = byte(rng.IntN(12))
			clear(b[8:32])
			b[16], b[24] = byte(rng.IntN(120)), byte(rng.IntN(40))
		}
		target.Serve(int32(rng.IntN(4)), b)
	}
}
