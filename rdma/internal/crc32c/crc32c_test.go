package crc32c

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/muster-mpi/muster/internal/seeded"
)

// random returns n bytes that are the same in each run.
func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}

// check compares all functions of one width with hash/crc32. The copy begins shift bytes
// into its memory.
func check(w width, p []byte, crc uint32, shift int) error {
	want := crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), p)
	if got := w.update(crc, p); got != want {
		return fmt.Errorf("width %d: update of %d bytes: %08x, want %08x", w, len(p), got, want)
	}
	const before, after = 64, 64
	mem := bytes.Repeat([]byte{0xA5}, before+shift+len(p)+after)
	begin := before + shift
	if got := w.copy(mem[begin:], p, crc); got != want {
		return fmt.Errorf("width %d: copy of %d bytes: %08x, want %08x", w, len(p), got, want)
	}
	if !bytes.Equal(mem[begin:begin+len(p)], p) {
		return fmt.Errorf("width %d: copy of %d bytes: the bytes differ", w, len(p))
	}
	for i, b := range mem {
		if (i < begin || i >= begin+len(p)) && b != 0xA5 {
			return fmt.Errorf("width %d: copy of %d bytes: changed the byte at %d", w, len(p), i-begin)
		}
	}
	return nil
}

func TestEveryLength(t *testing.T) {
	mem, numbers := random(4<<10), seeded.Random(t)
	for _, w := range widths() {
		for n := range 2001 {
			for _, at := range []int{0, 1, n % 64} {
				if err := check(w, mem[at:at+n], numbers.Uint32(), (n+at)%7); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestEveryAlignment(t *testing.T) {
	mem, numbers := random(4<<10), seeded.Random(t)
	for _, w := range widths() {
		for from := range 64 {
			for to := range 64 {
				if err := check(w, mem[from:from+256+from*5+to*11], numbers.Uint32(), to); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestLong covers inputs of several calls of the assembly.
func TestLong(t *testing.T) {
	mem := random(5*foldLimit + 300)
	for _, w := range widths() {
		for _, limits := range []int{1, 2, 3, 5} {
			for _, more := range []int{-257, -1, 0, 1, 255, 256} {
				if err := check(w, mem[:limits*foldLimit+more], 0, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestSplits computes the CRC of a message piece by piece.
func TestSplits(t *testing.T) {
	mem, numbers := random(64<<10), seeded.Random(t)
	want := crc32.Checksum(mem, crc32.MakeTable(crc32.Castagnoli))
	for _, w := range widths() {
		for range 200 {
			dst := make([]byte, len(mem))
			var crc, copied uint32
			for at := 0; at < len(mem); {
				n := min(numbers.IntN(1<<numbers.IntN(15)+1), len(mem)-at)
				crc = w.update(crc, mem[at:at+n])
				copied = w.copy(dst[at:], mem[at:at+n], copied)
				at += n
			}
			if crc != want || copied != want || !bytes.Equal(dst, mem) {
				t.Fatalf("width %d: pieces have the CRC %08x, copied %08x, want %08x", w, crc, copied, want)
			}
		}
	}
}

func TestCopyOntoItself(t *testing.T) {
	for _, w := range widths() {
		mem := random(5000)
		if got, want := w.copy(mem, mem, 7), w.update(7, random(5000)); got != want || !bytes.Equal(mem, random(5000)) {
			t.Errorf("width %d: %08x, want %08x", w, got, want)
		}
	}
}

func TestCopyPanicsIfTooShort(t *testing.T) {
	for _, w := range widths() {
		for _, n := range []int{1, 300, 20000} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("width %d: copied %d bytes to %d", w, n, n-1)
					}
				}()
				w.copy(make([]byte, n-1, n+100)[:n-1:n-1], make([]byte, n), 0)
			}()
		}
	}
}

// TestKnownValue compares with the value of iSCSI's specification for 32 bytes of zeros.
func TestKnownValue(t *testing.T) {
	if got := Checksum(make([]byte, 32)); got != 0x8A9136AA {
		t.Errorf("the CRC of 32 zeros is %08x", got)
	}
	mem := random(3000)
	dst := make([]byte, len(mem))
	if a, b, c := Checksum(mem), Update(Checksum(mem[:1000]), mem[1000:]), Copy(dst, mem, 0); a != b || a != c || !bytes.Equal(dst, mem) {
		t.Errorf("Checksum %08x, Update %08x, Copy %08x", a, b, c)
	}
}

func FuzzCRC(f *testing.F) {
	f.Add([]byte("muster"), uint32(0), uint8(0), uint16(1))
	f.Add(random(700), uint32(1), uint8(13), uint16(300))
	f.Fuzz(func(t *testing.T, p []byte, crc uint32, shift uint8, split uint16) {
		// Short inputs are repeated, so that folding is reached from few bytes.
		p = bytes.Repeat(p, 1+int(split)/(len(p)+1))
		for _, w := range widths() {
			if err := check(w, p, crc, int(shift)); err != nil {
				t.Fatal(err)
			}
			at := min(int(split), len(p))
			if got, want := w.update(w.update(crc, p[:at]), p[at:]), w.update(crc, p); got != want {
				t.Fatalf("width %d: %d bytes, split at %d: %08x, want %08x", w, len(p), at, got, want)
			}
		}
	})
}

// The payload of a datagram, a message, a run of datagrams, a long message.
var lengths = []int{256, 1400, 8 << 10, 60 << 10, 1 << 20}

func BenchmarkUpdate(b *testing.B) {
	mem := random(1<<20 + 64)
	for _, n := range lengths {
		for _, w := range widths() {
			b.Run(fmt.Sprintf("%d/width=%d", n, w), func(b *testing.B) {
				b.SetBytes(int64(n))
				crc := uint32(0)
				for b.Loop() {
					crc = w.update(crc, mem[20:20+n])
				}
			})
		}
	}
}

func BenchmarkCopy(b *testing.B) {
	mem, dst := random(1<<20+64), random(1<<20)
	for _, n := range lengths {
		b.Run(fmt.Sprintf("%d/only", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(dst, mem[20:20+n])
			}
		})
		for _, w := range widths() {
			b.Run(fmt.Sprintf("%d/width=%d", n, w), func(b *testing.B) {
				b.SetBytes(int64(n))
				crc := uint32(0)
				for b.Loop() {
					crc = w.copy(dst, mem[20:20+n], crc)
				}
			})
		}
	}
}
