package bench

// Benchmarks of package rdma without MPI: two processes, a leader that measures and a
// follower that does the other half. The leader iterates over sizes and rounds, and the
// devices alternate. One measurement of one device is a trial. Each trial opens its device
// anew at both ends, so that no other device disturbs it (VerbsSession.trial).
//
// The steps of a trial, and the file of each:
//
//	the leader sends the parameters, both exchange addresses  verbs_control.go
//	a device, or a bare socket to compare it with, is a wire  verbs_wire.go, verbs_device.go, verbs_bare_linux_unsafe.go
//	the loops                                                 verbs_pingpong.go, verbs_stream.go, verbs_remote.go, …
//	medians, ratios, tables and pictures                      verbs_table.go

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Verbs is a benchmark of the devices below MPI.
type Verbs struct {
	Name   string
	Title  string // heading of the text output
	Doc    string // one line for the list
	Long   string // what exactly is measured
	Column string // heading of the main figure

	Sizes       []int         // default sizes; nil if it has none
	Connections []int         // default numbers of connections; nil: always one
	Peers       int           // default number of idle peers; 0: it has none
	Devices     []string      // compared if none are named
	Time        time.Duration // default duration of a trial

	// ask and answer return what the leader and the follower send for a message of a size.
	ask, answer func(size int) int
	lead        func(*VerbsSession, wire, *verbsTrial) ([]figure, error)
	follow      func(*VerbsSession, wire, *verbsTrial) error
}

// VerbsParams are the parameters of a benchmark.
type VerbsParams struct {
	Devices     []string // nil: those of the benchmark
	Against     string   // the device that the others are compared with; "": the first of Devices
	Sizes       []int    // nil: those of the benchmark
	Connections []int    // nil: those of the benchmark
	Rounds      int      // 0: 5
	Window      int      // messages in flight; 0: 64, or fewer of long ones
	Peers       int      // 0: those of the benchmark
	Time        time.Duration
}

// VerbsEndpoint tells OpenVerbs where and for which side to open a device.
type VerbsEndpoint struct {
	Address string // an IP address of this host that the peer can reach
	Side    int    // 0: the leader, 1: the follower
	Key     []byte // shared secret, new for each trial
}

// OpenVerbs opens a device by its name on the command line. The error is
// rdma.ErrUnsupported if this build or host does not have the device.
type OpenVerbs func(name string, at VerbsEndpoint) (rdma.Device, rdma.Transport, error)

// figure is one result of a trial.
type figure struct {
	metric, unit string
	value        float64
	way          string // how the bytes travelled
}

func same(size int) int { return size }
func one(int) int       { return 1 }

// AllVerbs lists the verbs benchmarks.
func AllVerbs() []Verbs {
	remote := []string{BareTCP, "rc", "rd"}
	return []Verbs{
		{Name: "verbs-latency", Title: "Verbs Latency Test", Doc: "half round trip of a message over bare devices and bare sockets, alternating", Column: "Latency (us)",
			Long:  "Half of the round trip of a message that both ends wait for by polling: the median over batches of some round trips.",
			Sizes: []int{8, 64, 512, 2 << 10, 8 << 10}, Devices: []string{BareTCP, BareUDP, "rc", "rd", "ud"}, Time: 100 * time.Millisecond,
			ask: same, answer: same, lead: leadPingPong, follow: followPingPong},
		{Name: "verbs-bw", Title: "Verbs Bandwidth Test", Doc: "a window of messages one way over bare devices and bare sockets, alternating", Column: "Bandwidth (MB/s)",
			Long: `A window of messages one way, answered by a short one. A size above a device's
longest message is written into the peer's memory (way "write"), and a short message follows
the window. Where messages may be lost, the follower counts what has arrived; UD sends long ones as
Write-Records.`,
			Sizes: []int{8 << 10, 64 << 10, 1 << 20}, Devices: []string{BareTCP, "rc", "rc-nocrc", "rd"}, Time: 300 * time.Millisecond,
			ask: same, answer: one, lead: leadStream, follow: followStream},
		{Name: "verbs-bibw", Title: "Verbs Bi-Directional Bandwidth Test", Doc: "windows of messages both ways over bare devices and bare sockets, alternating", Column: "Bandwidth (MB/s)",
			Long:  "Windows of messages both ways at once; both directions are counted. Messages only: a size that a device does not send in one piece is left out.",
			Sizes: []int{8 << 10, 32 << 10}, Devices: []string{BareTCP, "rc", "rc-nocrc", "rd"}, Time: 300 * time.Millisecond,
			ask: same, answer: same, lead: leadBothWays, follow: followBothWays},
		{Name: "verbs-write", Title: "Verbs RDMA Write Test", Doc: "RDMA Write: time until it is complete, and bandwidth with a window of them", Column: "Time (us)",
			Long:  "An RDMA Write from posting to completion, and the bandwidth of a window of Writes. The bare sockets send as many bytes and get one back for each.",
			Sizes: []int{64, 8 << 10, 1 << 20}, Devices: remote, Time: 200 * time.Millisecond,
			ask: same, answer: one, lead: leadRemote(rdma.OpWrite), follow: followRemote},
		{Name: "verbs-read", Title: "Verbs RDMA Read Test", Doc: "RDMA Read: time until it is complete, and bandwidth with a window of them", Column: "Time (us)",
			Long:  "An RDMA Read from posting to completion, and the bandwidth of a window of Reads. The bare sockets send one byte and get as many back.",
			Sizes: []int{64, 8 << 10, 1 << 20}, Devices: remote, Time: 200 * time.Millisecond,
			ask: one, answer: same, lead: leadRemote(rdma.OpRead), follow: followRemote},
		{Name: "verbs-connections", Title: "Verbs Multiple Connections Test", Doc: "1 to 256 connections between two processes: normalized latency and aggregate throughput", Column: "Latency (us)",
			Long: `T1 3.4.1, T2 5.4. Latency: one message is sent on every connection, one after the other, and one comes
back on each; half of the whole time divided by the number of connections. Throughput: windows both
ways over all connections, round-robin. RC has as many queue pairs and sockets, RD as many queue pairs on one socket.`,
			Sizes: []int{64, 8 << 10}, Connections: []int{1, 2, 4, 8, 16, 32, 64, 128, 256}, Devices: remote, Time: 100 * time.Millisecond,
			ask: same, answer: same, lead: leadConnections, follow: followConnections},
		{Name: "verbs-progress", Title: "Verbs Progress Test", Doc: "RDMA Write into a peer that computes and never calls the library", Column: "Progress (%)",
			Long: `The follower computes for a delay much longer than the transfer, without any call, then checks
which pages of the message have arrived. progress is their share, complete the share of Writes
that had arrived completely, time the time of a Write relative to one into a peer that polls.`,
			Sizes: []int{1 << 20}, Devices: []string{"rc", "rd", "shm"}, Time: 500 * time.Millisecond,
			ask: same, answer: one, lead: leadProgress, follow: followProgress},
		{Name: "verbs-memory", Title: "Verbs Memory of Idle Peers", Doc: "memory of a process for each of many idle peers, in user space and in the kernel", Column: "Memory (B)",
			Long: `The leader exchanges a message with each peer, which then stay idle. user is the growth of its
proportional set (smaps), kernel the memory of its sockets: their objects (slabinfo, which only
root may read) and their buffers (sockstat). Figures are per peer.`,
			Devices: []string{"rc", "rd"}, Time: time.Second, Peers: 1000,
			ask: one, answer: one, lead: leadMemory, follow: followMemory},
	}
}

// FindVerbs returns the benchmark with a name.
func FindVerbs(name string) (Verbs, error) {
	list := AllVerbs()
	if i := slices.IndexFunc(list, func(b Verbs) bool { return b.Name == name }); i >= 0 {
		return list[i], nil
	}
	return Verbs{}, fmt.Errorf("bench: no benchmark %q; `muster bench` lists them", name)
}

// fill sets defaults and rejects invalid parameters.
func (p VerbsParams) fill(b *Verbs) (VerbsParams, error) {
	if p.Devices == nil {
		p.Devices = b.Devices
	}
	if p.Sizes == nil {
		p.Sizes = b.Sizes
	}
	if b.Sizes == nil {
		p.Sizes = []int{0}
	}
	if p.Connections == nil {
		p.Connections = b.Connections
	}
	if b.Connections == nil {
		p.Connections = []int{1}
	}
	p.Against, p.Rounds, p.Peers, p.Time = cmp.Or(p.Against, p.Devices[0]), cmp.Or(p.Rounds, 5), cmp.Or(p.Peers, b.Peers, 1), cmp.Or(p.Time, b.Time)
	if !slices.Contains(p.Devices, p.Against) {
		return p, fmt.Errorf("bench: %s: cannot compare with %s, which is not among the devices %v", b.Name, p.Against, p.Devices)
	}
	for i, d := range p.Devices {
		if slices.Contains(p.Devices[:i], d) {
			return p, fmt.Errorf("bench: %s: device %s is named twice", b.Name, d)
		}
	}
	for _, n := range p.Sizes {
		if n < 1 && b.Sizes != nil {
			return p, fmt.Errorf("bench: %s: size %d is too small; the smallest is one byte", b.Name, n)
		}
	}
	for _, n := range append(slices.Clone(p.Connections), p.Rounds, p.Peers) {
		if n < 1 {
			return p, fmt.Errorf("bench: %s: %d is out of range: rounds, connections and peers are 1 or more", b.Name, n)
		}
	}
	if p.Time < 0 || p.Window < 0 {
		return p, fmt.Errorf("bench: %s: negative time (%v) or window (%d)", b.Name, p.Time, p.Window)
	}
	return p, nil
}

// window returns the number of messages in flight: fewer of long ones, since 16 MB are
// enough for any path.
func (p *VerbsParams) window(size int) int {
	return cmp.Or(p.Window, max(4, min(64, 16<<20/max(size, 1))))
}

// Lead measures, and calls emit for each row when its rounds are over. The other end of
// the session must Follow.
func (b Verbs) Lead(s *VerbsSession, p VerbsParams, emit func(VerbsRow)) error {
	p, err := p.fill(&b)
	if err != nil {
		return err
	}
	missing := map[string]string{} // why a device is left out
	for _, connections := range p.Connections {
		for _, size := range p.Sizes {
			rows := newRows(&p, connections, size)
			// An operation that is unsupported in this row may be supported in another.
			refused := map[string]string{}
			for round := range p.Rounds {
				for i := range p.Devices {
					d := (i + round) % len(p.Devices)
					name := p.Devices[d]
					if missing[name] != "" || refused[name] != "" {
						continue
					}
					got, err := s.measure(&b, &verbsTrial{
						Bench: b.Name, Device: name, Size: size, Connections: connections,
						Window: p.window(size), Time: p.Time, Peers: p.Peers,
					})
					switch {
					case errors.Is(err, errNotOpened):
						missing[name] = err.Error()
					case errors.Is(err, rdma.ErrUnsupported):
						refused[name] = err.Error()
					case err != nil:
						return fmt.Errorf("bench: %s over %s, %d bytes, round %d: %w", b.Name, name, size, round+1, err)
					default:
						rows.add(d, got)
					}
				}
			}
			for d, name := range p.Devices {
				rows.leaveOut(d, cmp.Or(missing[name], refused[name]))
			}
			for _, row := range rows.list {
				row.Bench = b.Name
				emit(row)
			}
		}
	}
	return s.end()
}
