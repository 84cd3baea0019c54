package mpi

import "golang.org/x/sys/unix"

// allowedCPUs returns the CPUs that this process may use, as ranges with their last.
func allowedCPUs() (all [][2]int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	for cpu, left := 0, set.Count(); left > 0 && cpu < len(set)*64; cpu++ {
		if !set.IsSet(cpu) {
			continue
		}
		if n := len(all); n > 0 && all[n-1][1] == cpu-1 {
			all[n-1][1] = cpu
		} else {
			all = append(all, [2]int{cpu, cpu})
		}
		left--
	}
	return all
}
