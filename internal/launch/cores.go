package launch

// The cores and GOMAXPROCS of each rank. The plan is pure; cores_linux.go reads the
// properties of the machine.

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/internal/pmi"
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
	// socket and numa are the numbers of the socket and the NUMA node of each core.
	// Empty: all cores are in one.
	socket, numa []int
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
// on eight cores have four each, not one each with six idle. If consecutive ranks are
// assigned to different sockets or NUMA nodes, the same holds within each of them.
func plan(m machine, ranks int, how Bind, within Domain) placement {
	p := placement{gomaxprocs: max(1, m.usable()/ranks)}
	if how == BindNone || len(m.cores) == 0 ||
		how == BindAuto && (ranks > len(m.cores) || m.usable() < m.threads) {
		return p
	}
	p.bind = make([][]int, ranks)
	parts := m.parts(within)
	for rank := range p.bind {
		part := parts[rank%len(parts)]
		inPart := (ranks - rank%len(parts) + len(parts) - 1) / len(parts)
		share := max(1, len(part)/inPart)
		var cores []int
		for i := range share {
			cores = append(cores, part[(rank/len(parts)*share+i)%len(part)])
		}
		for _, core := range m.widen(cores, how) {
			p.bind[rank] = append(p.bind[rank], m.cores[core]...)
		}
	}
	return p
}

// report returns one line for each rank, with its cores.
func (p placement) report(m machine, ranks []int) string {
	lines := make([]string, len(ranks))
	for i, rank := range ranks {
		var cpus []int
		if p.bind != nil {
			cpus = p.bind[i]
		}
		lines[i] = fmt.Sprintf("rank %d: %s", rank, m.describe(cpus))
	}
	return strings.Join(lines, "\n")
}

// domain returns the number of the part of the machine that a core belongs to.
func (m machine) domain(core int, of Domain) int {
	numbers := m.socket
	switch of {
	case DomainCore:
		return 0
	case DomainNUMA:
		numbers = m.numa
	}
	if len(numbers) == 0 {
		return 0
	}
	return numbers[core]
}

// parts returns the cores of each domain, in order. For single cores it is all of them.
func (m machine) parts(of Domain) (parts [][]int) {
	at := map[int]int{}
	for core := range m.cores {
		d := m.domain(core, of)
		if _, known := at[d]; !known {
			at[d] = len(parts)
			parts = append(parts, nil)
		}
		parts[at[d]] = append(parts[at[d]], core)
	}
	return parts
}

// widen returns all cores of the sockets or NUMA nodes that the given cores belong to.
func (m machine) widen(cores []int, how Bind) []int {
	of := DomainSocket
	switch how {
	case BindSocket:
	case BindNUMA:
		of = DomainNUMA
	default:
		return cores
	}
	var wide []int
	for core := range m.cores {
		if slices.ContainsFunc(cores, func(c int) bool { return m.domain(c, of) == m.domain(core, of) }) {
			wide = append(wide, core)
		}
	}
	return wide
}

// describe returns the hardware threads of a rank as text, with their sockets and NUMA
// nodes.
func (m machine) describe(cpus []int) string {
	if len(cpus) == 0 {
		return "not bound"
	}
	var sockets, nodes []int
	for core, threads := range m.cores {
		if slices.ContainsFunc(threads, func(t int) bool { return slices.Contains(cpus, t) }) {
			sockets = append(sockets, m.domain(core, DomainSocket))
			nodes = append(nodes, m.domain(core, DomainNUMA))
		}
	}
	list := func(one, many string, numbers []int) string {
		slices.Sort(numbers)
		if numbers = slices.Compact(numbers); len(numbers) == 1 {
			many = one
		}
		return many + " " + pmi.Ranks(numbers)
	}
	return list("CPU", "CPUs", slices.Clone(cpus)) + " (" + list("socket", "sockets", sockets) + ", " + list("NUMA node", "NUMA nodes", nodes) + ")"
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
