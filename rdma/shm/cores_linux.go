package shm

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// OnlineCores returns the number of cores of the machine, not those this process may use:
// a rank that is bound to one core still has its peers on the others.
func OnlineCores() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return runtime.NumCPU()
	}
	n := 0
	for part := range strings.SplitSeq(strings.TrimSpace(string(text)), ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		first, err1 := strconv.Atoi(lo)
		last, err2 := first, error(nil)
		if isRange {
			last, err2 = strconv.Atoi(hi)
		}
		if err1 != nil || err2 != nil || last < first {
			return runtime.NumCPU()
		}
		n += last - first + 1
	}
	return n
}
