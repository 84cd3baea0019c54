package bytesize

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var errSize = errors.New("want a number of bytes such as 8, 64K or 4M")

// Parse parses one size. K, M and G are powers of 1024; a B or iB after them changes
// nothing. A negative number is accepted without a unit.
func Parse(s string) (int64, error) {
	upper := strings.ToUpper(strings.TrimSpace(s))
	digits := strings.TrimRight(upper, "KMGIB")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, errSize
	}
	shift := 0
	switch strings.TrimSuffix(strings.TrimSuffix(upper[len(digits):], "B"), "I") {
	case "":
	case "K":
		shift = 10
	case "M":
		shift = 20
	case "G":
		shift = 30
	default:
		return 0, errSize
	}
	if shift > 0 && (n < 0 || n > math.MaxInt64>>shift) {
		return 0, errSize
	}
	return n << shift, nil
}

// ParseList parses a size, or a range "1:1024": the first size, doubled until it exceeds
// the second, as the OSU benchmarks have it.
func ParseList(s string) ([]int64, error) {
	low, high, isRange := strings.Cut(s, ":")
	first, err := Parse(low)
	if err != nil || !isRange {
		return []int64{first}, err
	}
	last, err := Parse(high)
	if err != nil {
		return nil, err
	}
	if first < 1 || last < first {
		return nil, errors.New("want a range of sizes such as 1:1024")
	}
	var sizes []int64
	for n := first; n <= last; n *= 2 {
		sizes = append(sizes, n)
		if n > math.MaxInt64/2 {
			break
		}
	}
	return sizes, nil
}
