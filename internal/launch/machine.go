package launch

// Machine reports how many hardware threads this process may use, and the CPU time
// per second that its cgroup allows; 0 is no limit.
func Machine() (threads int, quota float64) {
	m := thisMachine()
	return m.threads, m.quota
}
