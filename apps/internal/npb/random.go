package npb

// The random numbers of the NAS Parallel Benchmarks (Bailey 1994, section on random numbers):
// x(k+1) = a·x(k) mod 2⁴⁶. The report computes in floating point; in 64-bit integers the
// modulus is a mask, because the bits above the 46th never influence those below.

const (
	// Multiplier is 5¹³, the multiplier a of all benchmarks.
	Multiplier = 1220703125
	// Seed is the seed of all benchmarks except EP, which has its own.
	Seed = 314159265

	mask  = 1<<46 - 1
	scale = 1.0 / (1 << 46)
)

// Random is a sequence; its value is the last element.
type Random uint64

// Next advances the sequence and returns its next number, between 0 and 1.
func (r *Random) Next() float64 { return r.AdvanceBy(Multiplier) }

// AdvanceBy advances the sequence with another multiplier, such as one made by Power.
func (r *Random) AdvanceBy(a uint64) float64 {
	x := uint64(*r) * a & mask
	*r = Random(x)
	return float64(x) * scale
}

// Skip advances the sequence by n numbers, in about log n steps.
func (r *Random) Skip(n int) { *r = Random(uint64(*r) * Power(Multiplier, n) & mask) }

// Fill stores the next numbers of the sequence in out.
func (r *Random) Fill(out []float64) {
	x := uint64(*r)
	for i := range out {
		x = x * Multiplier & mask
		out[i] = float64(x) * scale
	}
	*r = Random(x)
}

// Power returns aⁿ mod 2⁴⁶, the multiplier that advances the sequence of a by n numbers.
func Power(a uint64, n int) uint64 {
	result := uint64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = result * a & mask
		}
		a = a * a & mask
	}
	return result
}
