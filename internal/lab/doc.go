// Package lab makes hosts on one machine, so that what needs several can be
// tried on any: each host is a network namespace with its own interfaces,
// addresses, routes and ports. A rail is a switch with a cable to every host; the
// switches are in one more namespace. The machine's own network is not touched.
//
//	l := lab.New(t, lab.Config{Hosts: 4, Rails: 2, Rate: "1gbit"})
//	cmd := l.Command(ctx, l.Hosts()[0], "muster", "run",
//		"--hosts", strings.Join(l.Hosts(), ","), "--rsh", l.Rsh(), "./prog")
//	l.Cut(l.Hosts()[1], 0) // and then see what the job does
//
// Only the network is separate. The hosts share the machine's files, processes,
// memory and host name, but each resolves the names of all hosts of its lab. The
// machine itself is not connected to the switches: a program that wants to talk to
// the hosts runs on one of them.
//
// It drives ip, tc and iptables and needs the right to make namespaces (root).
// Up and Down are for commands; New wraps them for tests, and skips where there
// is no lab to be had. What a killed process has left behind is removed by the
// next Up.
//
// A lab with a name (Config.Name) outlives its process, and Find gives it to
// another one: that is what muster lab does. Nothing is kept in files for this.
// What a lab is like (Status) is read from the kernel, so it is true even after
// somebody has changed it by hand.
package lab
