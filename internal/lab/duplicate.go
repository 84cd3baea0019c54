package lab

// Packets that arrive twice.

// Duplicate delivers packets that arrive at a host on a rail a second time, with a
// probability from 0 to 1. The second copy arrives by the loopback interface, so it may be
// ahead of the first.
func (l *Lab) Duplicate(host string, rail int, probability float64) error {
	return l.sample(host, rail, probability, func(r int) error {
		rule := append(sampleRule(r, probability), "-j", "TEE", "--gateway", l.Addr(host, r))
		return setRule(host, "mangle", "PREROUTING", "twice-"+device(r), rule, probability > 0)
	})
}

// segments lets the switch send packets of up to 64 KB to a host, or only of the MTU.
func (l *Lab) segments(host string, rail int, large bool) error {
	return offload(l.switchName(), l.port(host, rail), segments(large))
}

// setRule adds a rule to a chain of its own, which the built-in chain calls, or removes it.
// There is at most one.
func setRule(host, table, builtin, chain string, rule []string, on bool) error {
	run := func(args ...string) error {
		return command("", "ip", append([]string{"netns", "exec", host, "iptables", "-w", "-t", table}, args...)...)
	}
	if run("-n", "-L", chain) != nil {
		if !on {
			return nil
		}
		if err := run("-N", chain); err != nil {
			return err
		}
		if err := run("-I", builtin, "-j", chain); err != nil {
			return err
		}
	}
	if err := run("-F", chain); err != nil || !on {
		return err
	}
	return run(append([]string{"-A", chain}, rule...)...)
}
