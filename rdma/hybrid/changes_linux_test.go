package hybrid

import (
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

// TestManyChangesLoseNothing changes the path of two busy peers a thousand times, while the
// kernel drops some of their datagrams and every third connection is reset. Each message
// arrives once and in order, which node.poll checks.
func TestManyChangesLoseNothing(t *testing.T) {
	changes := uint64(1000)
	if testing.Short() || race.Enabled {
		changes = 150
	}
	cfg := Config{CountMessages: true, BusyAfter: 4, recycleAfter: 100, Interval: time.Millisecond}
	nodes := newNodes(t, 2, cfg)
	a, b := nodes[0], nodes[1]
	for _, n := range nodes {
		loseDatagrams(t, n)
	}
	count := func(n *node) uint64 {
		p := &n.dev.policy
		return p.up + p.down + n.dev.losses.broken
	}
	resets, last := 0, uint64(0)
	exchange(t, "the path has changed often enough", nodes, 0, 1, func() bool {
		conn := a.peerOf(1).conn
		if up := a.dev.policy.up; up%3 == 0 && up != last && conn != nil && a.carriedBy(1) == byConnection && b.carriedBy(0) == byConnection && b.peerOf(0).conn != nil {
			last = up
			reset(t, nodes[resets%2], nodes[1-resets%2])
			resets++
		}
		return count(a) >= changes && count(b) >= changes
	})
	until(t, "all messages have arrived", nodes, arrived(nodes))
	for i, n := range nodes {
		c := n.counters()
		t.Logf("node %d: %d messages, %d connections made, %d left, %d broken, %d datagrams retransmitted", i, n.sent[1-i], c[rdma.ConnectionsMade], c[rdma.ConnectionsClosed], c[CountBroken], c[rdma.DatagramsRetransmitted])
		if c[CountLost] > 0 || len(n.bad) > 0 {
			t.Errorf("node %d: %d peers lost, completions %+v", i, c[CountLost], n.bad)
		}
		if c[CountBroken] == 0 || c[rdma.ConnectionsClosed] == 0 || c[rdma.DatagramsRetransmitted] == 0 {
			t.Errorf("node %d has seen no reset, no planned change or no loss: %v", i, c)
		}
	}
}

// TestChangeIsQuick measures how long a busy peer takes from the first offer until both
// directions use the connection: 20 ms are the aim, and the limit is for busy machines.
func TestChangeIsQuick(t *testing.T) {
	const rounds, limit = 15, 100 * time.Millisecond
	var times []time.Duration
	for range rounds {
		nodes := newNodes(t, 2, Config{CountMessages: true, BusyAfter: 32})
		var begin time.Time
		exchange(t, "both directions are moved", nodes, 0, 1, func() bool {
			if begin.IsZero() && nodes[0].dev.changing+nodes[1].dev.changing > 0 {
				begin = time.Now()
			}
			return nodes[0].carriedBy(1) == byConnection && nodes[1].carriedBy(0) == byConnection
		})
		times = append(times, time.Since(begin))
		until(t, "all messages have arrived", nodes, arrived(nodes))
		if nodes[0].dev.changing+nodes[1].dev.changing > 0 {
			t.Error("a change that has ended still asks for polls")
		}
		for _, n := range nodes {
			_ = n.dev.Close() // Cleanup closes it again, and reports errors
		}
	}
	slices.Sort(times)
	t.Logf("median %v, range %v to %v", times[rounds/2], times[0], times[rounds-1])
	if times[rounds/2] > limit {
		t.Errorf("the median of %d changes takes %v, the limit is %v", rounds, times[rounds/2], limit)
	}
}

// lossShare is the part of datagrams that the kernel drops, of 256.
const lossShare = 8

// loseDatagrams makes the kernel drop some of the datagrams to a node, by a socket filter.
func loseDatagrams(t *testing.T, n *node) {
	t.Helper()
	at, _, _ := strings.Cut(string(n.qp.data.Addr()), "/")
	port := netip.MustParseAddrPort(at).Port()
	const random = 0xfffff000 + 56 // SKF_AD_OFF + SKF_AD_RANDOM
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: random},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 255},
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: lossShare, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
		if err != nil || kind != unix.IPPROTO_UDP {
			continue
		}
		name, err := unix.Getsockname(fd)
		if in, ok := name.(*unix.SockaddrInet4); err == nil && ok && in.Port == int(port) {
			if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}); err != nil {
				t.Fatalf("attach a filter to the socket of port %d: %v", port, err)
			}
			return
		}
	}
	t.Fatalf("found no UDP socket on port %d", port)
}
