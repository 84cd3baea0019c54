package launch

// The cores and GOMAXPROCS of each rank. The plan is pure; cores_linux.go reads the
// properties of the machine.

import (
	"math"
	"strconv"
	"strings"
)

// machine describes the processors that a job may use.
type machine struct {
	// cores lists the hardware threads of each usable core. Empty: unknown, so ranks
	// cannot be bound.
	cores [][]int
	// threads is the number of hardware threads in cores.
	threads int
	// quota is the CPU time per second that the cgroup allows. 0: no limit.
	quota float64
}

// usable returns the number of hardware threads that can be kept busy.
func (m machine) usable() int {
	n := m.threads
	if m.quota > 0 {
		n = min(n, int(math.Ceil(m.quota)))
	}
	return max(1, n)
}

// placement is the result of plan.
type placement struct {
	bind       [][]int // the hardware threads of each rank; nil: not bound
	gomaxprocs int
}

// plan divides the machine among the ranks. Ranks get equal, adjacent shares: two ranks
// on eight cores have four each, not one each with six idle.
func plan(m machine, ranks int, how Bind) placement {
	p := placement{gomaxprocs: max(1, m.usable()/ranks)}
	if how == BindNone || len(m.cores) == 0 ||
		how == BindAuto && (ranks > len(m.cores) || m.usable() < m.threads) {
		return p
	}
	p.bind = make([][]int, ranks)
	share := max(1, len(m.cores)/ranks)
	for rank := range p.bind {
		for i := range share {
			core := m.cores[(rank*share+i)%len(m.cores)]
			p.bind[rank] = append(p.bind[rank], core...)
		}
	}
	return p
}

// parseCPUList parses a CPU list of the kernel, such as "0-3,8".
func parseCPUList(s string) (cpus []int) {
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		from, to, isRange := strings.Cut(part, "-")
		lo, err := strconv.Atoi(from)
		if err != nil || lo < 0 {
			continue
		}
		hi := lo
		if isRange {
			if hi, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for c := lo; c <= hi && c < lo+maxCPUs; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

const maxCPUs = 1 << 14

// parseCPUMax parses cgroup v2's cpu.max: "max 100000" or "150000 100000".
func parseCPUMax(s string) float64 {
	quota, period, _ := strings.Cut(strings.TrimSpace(s), " ")
	return quotaOf(quota, period)
}

// quotaOf returns the ratio of two numbers of microseconds, or 0 for no limit, which v1
// writes as -1 and v2 as "max".
func quotaOf(quota, period string) float64 {
	q, err1 := strconv.ParseFloat(strings.TrimSpace(quota), 64)
	p, err2 := strconv.ParseFloat(strings.TrimSpace(period), 64)
	if err1 != nil || err2 != nil || q <= 0 || p <= 0 {
		return 0
	}
	return q / p
}

// cgroupPaths parses /proc/self/cgroup: the path in the v2 hierarchy and that of v1's
// cpu controller.
func cgroupPaths(s string) (v2, cpu string) {
	for line := range strings.SplitSeq(s, "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			v2 = parts[2]
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			if name == "cpu" {
				cpu = parts[2]
			}
		}
	}
	return v2, cpu
}

// lowestQuota returns the lowest limit of a group and all groups above it, which all
// apply. In a container the path may name groups that are not visible; the limit is then
// at the root.
func lowestQuota(path string, read func(group string) float64) float64 {
	lowest := 0.0
	for {
		if q := read(path); q > 0 && (lowest == 0 || q < lowest) {
			lowest = q
		}
		if path == "" || path == "/" {
			return lowest
		}
		path = path[:max(0, strings.LastIndexByte(path, '/'))]
	}
}
