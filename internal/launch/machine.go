package launch

import "strings"

// Machine returns the number of hardware threads that this process may use, and the CPU
// time per second that its cgroup allows; 0 means no limit.
func Machine() (threads int, quota float64) {
	m := thisMachine()
	return m.threads, m.quota
}

// Cores returns the number of cores that this process may use and that its cgroup allows
// to keep busy: the number of ranks that do not share cores.
func Cores() int {
	m := thisMachine()
	if len(m.cores) == 0 {
		return m.usable()
	}
	return max(1, min(len(m.cores), m.usable()))
}

// IsThisMachine reports whether a host name, as batch systems write it, is that of this
// machine: with or without the domain.
func IsThisMachine(name string) bool {
	short, _, _ := strings.Cut(name, ".")
	own, _, _ := strings.Cut(hostname(), ".")
	return isThisMachine(name) || short == own
}
