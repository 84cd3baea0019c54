package npb

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Result is what an application reports.
type Result struct {
	Name       string // in capitals, such as CG
	Class      byte
	Size       string // such as 1400 or 64x64x64
	Iterations int
	Operation  string  // what Operations counts, such as "floating point"
	Operations float64 // in the timed part, on all ranks together
	Checks     []Check // values that show whether the output is correct

	Ranks   int     // set by Clock.Finish, like the next two
	Seconds float64 // of the timed part, on the slowest rank
	InMPI   float64 // of Seconds, spent in communication; the mean of all ranks
}

// Check compares a value with the one that the specification gives.
type Check struct {
	Name      string
	Got, Want float64
	Tolerance float64 // of the relative error; 0 requires equality
}

// Error returns the relative error, or the absolute one if zero is expected.
func (k Check) Error() float64 {
	if k.Got == k.Want {
		return 0
	}
	if k.Want == 0 {
		return math.Abs(k.Got)
	}
	return math.Abs((k.Got - k.Want) / k.Want)
}

// OK reports whether the value is within the tolerance. NaN is not.
func (k Check) OK() bool { return k.Error() <= k.Tolerance }

// Verified reports whether all values are as specified.
func (r *Result) Verified() bool {
	return len(r.Checks) > 0 && !slices.ContainsFunc(r.Checks, func(k Check) bool { return !k.OK() })
}

// Mops returns the speed in millions of operations per second, of all ranks together.
func (r *Result) Mops() float64 { return r.Operations / r.Seconds / 1e6 }

// String returns the result as the block that the NAS Parallel Benchmarks print, with the
// time in MPI and the checked values added.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n %s Benchmark Completed.\n", r.Name)
	line := func(name, value string) { fmt.Fprintf(&b, " %-15s = %24s\n", name, value) }
	number := func(name string, v float64, digits int) { line(name, strconv.FormatFloat(v, 'f', digits, 64)) }
	line("Class", string(r.Class))
	line("Size", r.Size)
	line("Iterations", strconv.Itoa(r.Iterations))
	number("Time in seconds", r.Seconds, 3)
	number("Time in MPI", r.InMPI, 3)
	line("Total processes", strconv.Itoa(r.Ranks))
	number("Mop/s total", r.Mops(), 2)
	number("Mop/s/process", r.Mops()/float64(r.Ranks), 2)
	line("Operation type", r.Operation)
	for _, k := range r.Checks {
		fmt.Fprintf(&b, " %-15s = %24s, expected %s, error %.1e\n", k.Name, digits(k.Got), digits(k.Want), k.Error())
	}
	if r.Verified() {
		line("Verification", "SUCCESSFUL")
	} else {
		line("Verification", "UNSUCCESSFUL")
	}
	return b.String()
}

// digits formats a value as integers and as the specification's tables do.
func digits(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'e', 12, 64)
}

// Print writes the result to w.
func (r *Result) Print(w io.Writer) error {
	_, err := io.WriteString(w, r.String())
	return err
}

// Class returns the parameters of a class, or an error that lists the classes that exist.
func Class[P any](table map[byte]P, class byte) (P, error) {
	p, ok := table[class]
	if !ok {
		var names []string
		for _, c := range slices.Sorted(maps.Keys(table)) {
			names = append(names, string(c))
		}
		return p, fmt.Errorf("no class %q: use one of %s", string(class), strings.Join(names, ", "))
	}
	return p, nil
}

// CheckPowerOfTwo returns an error unless the number of ranks is a power of two.
func CheckPowerOfTwo(ranks int) error {
	if ranks&(ranks-1) != 0 {
		return fmt.Errorf("%d ranks: the number of ranks must be a power of two", ranks)
	}
	return nil
}
