// Package lab makes hosts on one machine, so that what needs several can be
// tried on any: each host is a network namespace with its own interfaces,
// addresses, routes and ports, and a switch in one more namespace connects them.
// The machine's own network is not touched.
//
//	l := lab.New(t, lab.Config{Hosts: 4})
//	cmd := l.Command(ctx, l.Hosts()[0], "muster", "run",
//		"--hosts", strings.Join(l.Hosts(), ","), "--rsh", l.Rsh(), "./prog")
//
// Only the network is separate. The hosts share the machine's files, processes,
// memory and host name, but each resolves the names of all hosts of its lab. The
// machine itself is not connected to the switch: a program that wants to talk to
// the hosts runs on one of them.
//
// It drives ip, tc and iptables and needs the right to make namespaces (root).
// Up and Down are for commands; New wraps them for tests, and skips where there
// is no lab to be had. What a killed process has left behind is removed by the
// next Up.
package lab
