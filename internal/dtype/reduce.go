package dtype

// The reductions of MPI-4.1 section 6.9.2 on slices: dst[i] becomes src[i] op dst[i],
// for the elements that both have. The slices are the same or do not overlap.
//
// Long slices use vector instructions where they exist for the type (reduce_amd64.s).
// The loops here are for all others. Their results are bitwise equal, except that of
// two NaNs a sum or product may keep either. They process eight elements at a time
// through array pointers: one bounds check for eight elements, and independent loads
// and stores.

// Integer is the constraint of integer types.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Real is the constraint of ordered number types.
type Real interface {
	Integer | ~float32 | ~float64
}

// Number is the constraint of types that can be added and multiplied.
type Number interface {
	Real | ~complex64 | ~complex128
}

// Sum adds. Integers wrap around.
func Sum[T Number](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpSum, dst, src) {
		return
	}
	for len(dst) >= 8 && len(src) >= 8 {
		d, s := (*[8]T)(dst), (*[8]T)(src)
		d[0] += s[0]
		d[1] += s[1]
		d[2] += s[2]
		d[3] += s[3]
		d[4] += s[4]
		d[5] += s[5]
		d[6] += s[6]
		d[7] += s[7]
		dst, src = dst[8:], src[8:]
	}
	for i := range min(len(dst), len(src)) {
		dst[i] += src[i]
	}
}

// Prod multiplies. Integers wrap around.
func Prod[T Number](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpProd, dst, src) {
		return
	}
	for len(dst) >= 8 && len(src) >= 8 {
		d, s := (*[8]T)(dst), (*[8]T)(src)
		d[0] *= s[0]
		d[1] *= s[1]
		d[2] *= s[2]
		d[3] *= s[3]
		d[4] *= s[4]
		d[5] *= s[5]
		d[6] *= s[6]
		d[7] *= s[7]
		dst, src = dst[8:], src[8:]
	}
	for i := range min(len(dst), len(src)) {
		dst[i] *= src[i]
	}
}

// Min keeps the smaller. A NaN takes precedence over every number, and -0 is smaller
// than 0, as with Go's min. The result therefore does not depend on the order of the
// ranks, and a NaN on any rank appears in the result.
func Min[T Real](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpMin, dst, src) {
		return
	}
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := (*[4]T)(dst), (*[4]T)(src)
		d[0] = min(d[0], s[0])
		d[1] = min(d[1], s[1])
		d[2] = min(d[2], s[2])
		d[3] = min(d[3], s[3])
		dst, src = dst[4:], src[4:]
	}
	for i := range min(len(dst), len(src)) {
		dst[i] = min(dst[i], src[i])
	}
}

// Max keeps the larger. A NaN takes precedence over every number, as in Min.
func Max[T Real](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpMax, dst, src) {
		return
	}
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := (*[4]T)(dst), (*[4]T)(src)
		d[0] = max(d[0], s[0])
		d[1] = max(d[1], s[1])
		d[2] = max(d[2], s[2])
		d[3] = max(d[3], s[3])
		dst, src = dst[4:], src[4:]
	}
	for i := range min(len(dst), len(src)) {
		dst[i] = max(dst[i], src[i])
	}
}

// LogicalAnd is 1 where both are not 0, else 0. A Go bool is a byte of 0 or 1
// and reduces as a uint8.
func LogicalAnd[T Integer](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpLogicalAnd, dst, src) {
		return
	}
	for i := range min(len(dst), len(src)) {
		dst[i] = truth[T](dst[i] != 0 && src[i] != 0)
	}
}

// LogicalOr is 1 where at least one is not 0, else 0.
func LogicalOr[T Integer](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpLogicalOr, dst, src) {
		return
	}
	for i := range min(len(dst), len(src)) {
		dst[i] = truth[T](dst[i]|src[i] != 0)
	}
}

// LogicalXor is 1 where exactly one is not 0, else 0.
func LogicalXor[T Integer](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpLogicalXor, dst, src) {
		return
	}
	for i := range min(len(dst), len(src)) {
		dst[i] = truth[T]((dst[i] != 0) != (src[i] != 0))
	}
}

func truth[T Integer](b bool) T {
	if b {
		return 1
	}
	return 0
}

// BitAnd combines bit by bit.
func BitAnd[T Integer](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpBitAnd, dst, src) {
		return
	}
	for i := range min(len(dst), len(src)) {
		dst[i] &= src[i]
	}
}

// BitOr combines bit by bit.
func BitOr[T Integer](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpBitOr, dst, src) {
		return
	}
	for i := range min(len(dst), len(src)) {
		dst[i] |= src[i]
	}
}

// BitXor combines bit by bit.
func BitXor[T Integer](dst, src []T) {
	if len(dst) > fewElements && vectorized(OpBitXor, dst, src) {
		return
	}
	for i := range min(len(dst), len(src)) {
		dst[i] ^= src[i]
	}
}

// Pair is a value and its index, for MinLoc and MaxLoc. Its memory layout is that of the
// C struct with the same two members.
type Pair[V Real, I Integer] struct {
	Value V
	Index I
}

// MinLoc keeps the pair with the smaller value; of equal values, the one with
// the smaller index (MPI-4.1 section 6.9.4). A NaN takes precedence over every number,
// as in Min; of two NaNs, the one with the smaller index.
func MinLoc[V Real, I Integer](dst, src []Pair[V, I]) {
	for i := range min(len(dst), len(src)) {
		d, s := dst[i], src[i]
		if s.Value < d.Value || (!(d.Value < s.Value) && before(s, d)) {
			dst[i] = s
		}
	}
}

// MaxLoc keeps the pair with the larger value; of equal values, the one with
// the smaller index. A NaN takes precedence, as in MinLoc.
func MaxLoc[V Real, I Integer](dst, src []Pair[V, I]) {
	for i := range min(len(dst), len(src)) {
		d, s := dst[i], src[i]
		if s.Value > d.Value || (!(d.Value > s.Value) && before(s, d)) {
			dst[i] = s
		}
	}
}

// before decides between pairs of which neither value is smaller or larger:
// they are equal, or at least one is a NaN.
func before[V Real, I Integer](s, d Pair[V, I]) bool {
	sNaN, dNaN := s.Value != s.Value, d.Value != d.Value
	if sNaN != dNaN {
		return sNaN
	}
	return s.Index < d.Index
}
