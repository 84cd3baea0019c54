package launch

// Machine returns the number of hardware threads that this process may use, and the CPU
// time per second that its cgroup allows; 0 means no limit.
func Machine() (threads int, quota float64) {
	m := thisMachine()
	return m.threads, m.quota
}
