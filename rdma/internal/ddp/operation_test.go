package ddp

import (
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"testing"
)

func TestOperationBytes(t *testing.T) {
	read := ReadRequest{Sink: 0x01020304, SinkTO: 0x1111111122222222, Size: 0x55, Source: 0x0a0b0c0d, SourceTO: 0x3333333344444444}
	b := make([]byte, ControlMax)
	if got, want := hex.EncodeToString(b[:read.Put(b)]), "01020304"+"1111111122222222"+"00000055"+"0a0b0c0d"+"3333333344444444"; got != want {
		t.Errorf("read request: %s, want %s", got, want)
	}
	var read2 ReadRequest
	if !read2.Decode(b[:ReadRequestLen]) || read2 != read {
		t.Errorf("read request decodes to %+v", read2)
	}

	atomic := AtomicRequest{CompareSwap, 7, 0x0a0b0c0d, 8, 1, 2, 3, 4}
	want := "00000002" + "00000007" + "0a0b0c0d" + "0000000000000008" + "0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004"
	if got := hex.EncodeToString(b[:atomic.Put(b)]); got != want {
		t.Errorf("atomic request: %s, want %s", got, want)
	}
	var atomic2 AtomicRequest
	if !atomic2.Decode(b[:AtomicRequestLen]) || atomic2 != atomic {
		t.Errorf("atomic request decodes to %+v", atomic2)
	}

	answer := AtomicResponse{ID: 7, Original: 0x0102030405060708}
	if got := hex.EncodeToString(b[:answer.Put(b)]); got != "00000007"+"0102030405060708" {
		t.Errorf("atomic response: %s", got)
	}
	var answer2 AtomicResponse
	if !answer2.Decode(b[:AtomicResponseLen]) || answer2 != answer {
		t.Errorf("atomic response decodes to %+v", answer2)
	}

	for n := range ControlMax + 2 {
		b := make([]byte, n)
		if read2.Decode(b) != (n == ReadRequestLen) || atomic2.Decode(b) != (n == AtomicRequestLen) || answer2.Decode(b) != (n == AtomicResponseLen) {
			t.Errorf("%d bytes are decoded as an operation", n)
		}
	}
}

func TestAtomicApply(t *testing.T) {
	const all = ^uint64(0)
	for _, c := range []struct {
		name    string
		request AtomicRequest
		old     uint64
		want    uint64
		ok      bool
	}{
		{"add", AtomicRequest{Code: FetchAdd, Data: 5}, 10, 15, true},
		{"add wraps", AtomicRequest{Code: FetchAdd, Data: 1}, all, 0, true},
		{"add two halves", AtomicRequest{Code: FetchAdd, Data: 1<<32 | 1, Mask: 1<<63 | 1<<31}, 0x00000001_ffffffff, 0x00000002_00000000, true},
		{"swap", AtomicRequest{Code: CompareSwap, Data: 9, Mask: all, Compare: 4, CompareMask: all}, 4, 9, true},
		{"no swap", AtomicRequest{Code: CompareSwap, Data: 9, Mask: all, Compare: 4, CompareMask: all}, 5, 5, true},
		{"swap a part", AtomicRequest{Code: CompareSwap, Data: 0xffff, Mask: 0x00f0, Compare: 0x5, CompareMask: 0xf}, 0x1235, 0x12f5, true},
		{"code 1", AtomicRequest{Code: 1, Data: 9}, 5, 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := c.request.Apply(c.old); got != c.want || ok != c.ok {
				t.Fatalf("%#x, %v; want %#x, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

// TestAtomicFieldsCarryNothing compares with a sum that is computed field by field.
func TestAtomicFieldsCarryNothing(t *testing.T) {
	random := rand.New(seeded(3))
	for range 2000 {
		old, data := random.Uint64(), random.Uint64()
		tops := random.Uint64() & random.Uint64() & random.Uint64()
		var want uint64
		for low := 0; low < 64; {
			top := min(low+bits.TrailingZeros64(tops>>low), 63)
			field := uint64(1)<<(top-low)<<1 - 1
			want |= (old>>low + data>>low) & field << low
			low = top + 1
		}
		r := AtomicRequest{Code: FetchAdd, Data: data, Mask: tops}
		if got, _ := r.Apply(old); got != want {
			t.Fatalf("%#x + %#x with tops %#x: %#x, want %#x", old, data, tops, got, want)
		}
	}
}
