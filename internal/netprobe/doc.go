// Package netprobe selects the network interfaces that connect the hosts of a job: its
// rails.
//
// Names and kinds of interfaces only suggest candidates: a bridge may lead to other hosts,
// and an ordinary interface nowhere. So hosts probe each other over all candidates, and
// those over which a host has responded become rails.
//
//	find     lists the interfaces of this host                                 find.go
//	choose   rates them by name and kind, with reasons, and formats the result choose.go, table.go
//	prove    probes the next host over each candidate, and responds to probes  prove.go, hello.go
//	judge    selects from the responses of all hosts                           judge.go
//
// Only find and prove use the system. Hosts are probed in a ring, each by the one before
// it, so the work of a host does not grow with the job. Whether a rail reaches other peers
// shows when they first communicate.
package netprobe
