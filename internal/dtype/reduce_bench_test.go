package dtype

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Reductions against a plain copy, by the bytes that each touches: a reduction of n
// bytes reads two operands and writes one, 3n; a copy reads one and writes one, 2n.
// "×copy" is (3n / time of a reduction) ÷ (2n / time of a copy). Both work on the
// same two slices, alternating about every 100 µs; the first pass over the data is not
// counted. The times are medians.
func BenchmarkReduceAgainstCopy(b *testing.B) {
	for _, bytes := range []int{8 << 10, 64 << 10, 1 << 20} {
		againstCopy(b, "sum/float64", bytes, bytes/8, Sum[float64])
		againstCopy(b, "max/float64", bytes, bytes/8, Max[float64])
		againstCopy(b, "sum/float32", bytes, bytes/4, Sum[float32])
		againstCopy(b, "sum/int64", bytes, bytes/8, Sum[int64])
		againstCopy(b, "prod/int64", bytes, bytes/8, Prod[int64])
		againstCopy(b, "max/int64", bytes, bytes/8, Max[int64])
		againstCopy(b, "prod/int8", bytes, bytes, Prod[int8])
		againstCopy(b, "bitor/uint8", bytes, bytes, BitOr[uint8])
		againstCopy(b, "logicaland/int32", bytes, bytes/4, LogicalAnd[int32])
	}
}

func againstCopy[T Real](b *testing.B, name string, bytes, n int, reduce func(dst, src []T)) {
	b.Run(fmt.Sprintf("%s/%dKB", name, bytes>>10), func(b *testing.B) {
		dst, src := make([]T, n), make([]T, n)
		for i := range src {
			src[i] = T(i % 5)
		}
		calls := max(1, 4<<20/bytes)
		measure := func(work func()) float64 {
			work()
			start := time.Now()
			for range calls {
				work()
			}
			return float64(time.Since(start).Nanoseconds()) / float64(calls)
		}
		var reducing, copying []float64
		for b.Loop() {
			copying = append(copying, measure(func() { copy(dst, src) }))
			reducing = append(reducing, measure(func() { reduce(dst, src) }))
		}
		r, c := median(reducing), median(copying)
		b.ReportMetric(3*float64(bytes)/r, "GB/s")
		b.ReportMetric(2*float64(bytes)/c, "copy-GB/s")
		b.ReportMetric(3*c/(2*r), "×copy")
	})
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
