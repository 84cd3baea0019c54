package dtype

import (
	"fmt"
	"testing"
)

// Strided packing against a plain copy of the packed bytes.
func BenchmarkPack(b *testing.B) {
	ok := must(b)
	const total = 64 << 10
	f64 := ok(Basic(8, 8))
	cases := []struct {
		name string
		l    *Layout
	}{
		{"contiguous", ok(Contiguous(total/8, f64))},
	}
	for _, n := range []int64{4, 8, 16, 24, 64, 512} {
		e := ok(Basic(n, 1))
		cases = append(cases, struct {
			name string
			l    *Layout
		}{fmt.Sprintf("vector/%dB", n), ok(Vector(total/n, 1, 2, e))})
	}
	irregular := make([]int64, total/64)
	for i := range irregular {
		irregular[i] = int64(20*i + i%3)
	}
	cases = append(cases, struct {
		name string
		l    *Layout
	}{"indexed/64B", ok(IndexedBlock(8, irregular, f64))})
	dst := make([]byte, total)
	for _, c := range cases {
		_, hi, err := c.l.Span(1)
		if err != nil {
			b.Fatal(err)
		}
		v, err := c.l.View(make([]byte, hi), 0, 1)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("pack/"+c.name, func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				v.Pack(dst, 0)
			}
		})
		b.Run("unpack/"+c.name, func(b *testing.B) {
			b.SetBytes(total)
			for b.Loop() {
				v.Unpack(dst, 0)
			}
		})
	}
	b.Run("copy", func(b *testing.B) {
		src := make([]byte, total)
		b.SetBytes(total)
		for b.Loop() {
			copy(dst, src)
		}
	})
}
