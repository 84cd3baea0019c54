// Package lab creates virtual hosts on one machine, so that programs for several hosts can
// be tested on any machine. Each host is a network namespace with its own interfaces,
// addresses, routes and ports. A rail is a switch with a cable to every host; the switches
// are in one more namespace. The machine's own network is not changed.
//
//	l := lab.New(t, lab.Config{Hosts: 4, Rails: 2, Rate: "1gbit"})
//	cmd := l.Command(ctx, l.Hosts()[0], "muster", "run",
//		"--hosts", strings.Join(l.Hosts(), ","), "--rsh", l.Rsh(), "./prog")
//	l.Cut(l.Hosts()[1], 0) // and then check how the job reacts
//
// Only the network is separate. The hosts share the machine's files, processes, memory and
// host name, but each resolves the names of all hosts of its lab. The machine itself is not
// connected to the switches: a program that communicates with the hosts must run on one of
// them.
//
// The package runs ip, tc and iptables and needs the right to create namespaces (root). Create
// and Remove are for commands; New wraps them for tests, and skips the test if no lab can be
// created. The next Create removes the labs that killed processes have left behind.
//
// A lab with a name (Config.Name) outlives its process, and Find opens it in another one,
// as muster lab does. No state is stored in files: Status reads the state from the kernel,
// so it is correct even after changes by hand.
package lab
