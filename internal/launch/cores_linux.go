package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// thisMachine reads the affinity of this process, the hardware threads, socket and NUMA
// node of each core, and the CPU quota of the cgroup.
func thisMachine() machine {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return machine{threads: 1, quota: cgroupQuota()}
	}
	m := machine{threads: set.Count(), quota: cgroupQuota()}
	taken := unix.CPUSet{}
	for cpu := 0; m.threads > 0 && cpu < len(set)*64; cpu++ {
		if !set.IsSet(cpu) || taken.IsSet(cpu) {
			continue
		}
		core := []int{}
		for _, sibling := range siblings(cpu) {
			if set.IsSet(sibling) {
				core = append(core, sibling)
				taken.Set(sibling)
			}
		}
		m.cores = append(m.cores, core)
		m.socket = append(m.socket, socketOf(cpu))
		m.numa = append(m.numa, numaOf(cpu))
	}
	return m
}

// socketOf returns the number of a CPU's socket, or 0 if the kernel does not report it.
func socketOf(cpu int) int {
	text, _ := os.ReadFile("/sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/topology/physical_package_id")
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// numaOf returns the number of a CPU's NUMA node, or 0 if the kernel has no support for
// NUMA. The node is a link in the CPU's folder.
func numaOf(cpu int) int {
	links, _ := filepath.Glob("/sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/node[0-9]*")
	for _, link := range links {
		if n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(link), "node")); err == nil {
			return n
		}
	}
	return 0
}

// siblings returns the hardware threads of the core that a CPU belongs to.
func siblings(cpu int) []int {
	text, err := os.ReadFile("/sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/topology/thread_siblings_list")
	list := parseCPUList(string(text))
	if err != nil || !slices.Contains(list, cpu) {
		return []int{cpu}
	}
	return list
}

func cgroupQuota() float64 {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	v2, v1 := cgroupPaths(string(text))
	const root = "/sys/fs/cgroup"
	q := lowestQuota(v2, func(group string) float64 {
		text, _ := os.ReadFile(filepath.Join(root, group, "cpu.max"))
		return parseCPUMax(string(text))
	})
	if q > 0 {
		return q
	}
	return lowestQuota(v1, func(group string) float64 {
		for _, controller := range []string{"cpu", "cpu,cpuacct"} {
			dir := filepath.Join(root, controller, group)
			quota, err := os.ReadFile(filepath.Join(dir, "cpu.cfs_quota_us"))
			if err != nil {
				continue
			}
			period, _ := os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us"))
			return quotaOf(string(quota), string(period))
		}
		return 0
	})
}
