package p2p

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func TestChoice(t *testing.T) {
	all := rdma.Ops(rdma.OpSend, rdma.OpRead, rdma.OpWrite, rdma.OpPull, rdma.OpPush)
	// With these costs, and a packet of 56 bytes at 156: eager 100+n, get
	// 1312+n/2, put 1968+n/4, coop 4156+n/8 (with no cost of registration).
	costs := rdma.Attr{MaxSend: 1 << 20, MaxInline: 1 << 20,
		SendCost: rdma.Cost{Fixed: 100, PerByte: 1}, ReadCost: rdma.Cost{Fixed: 1000, PerByte: 0.5},
		PutCost: rdma.Cost{Fixed: 1500, PerByte: 0.25}, PullCost: rdma.Cost{Fixed: 4000, PerByte: 0.125}}
	for _, c := range []struct {
		name string
		cfg  Config
		ops  rdma.OpSet
		want string
	}{
		{"by cost", Config{}, all, "0 eager 2424 rndv_get 2624 rndv_put 17504 rndv_coop"},
		{"a low limit", Config{EagerLimit: 100}, all, "0 eager 100 rndv_get 2624 rndv_put 17504 rndv_coop"},
		{"a limit above the crossing", Config{EagerLimit: 1 << 20}, all, "0 eager 2424 rndv_get 2624 rndv_put 17504 rndv_coop"},
		{"ranks share cores", Config{TimeSlice: 500}, all, "0 eager 3824 rndv_put 9504 rndv_coop"},
		{"rendezvous too expensive", Config{TimeSlice: 1e6}, rdma.Ops(rdma.OpSend, rdma.OpRead), "0 eager 65536 rndv_get"},
		{"no eager", Config{EagerLimit: -1}, all, "0 rndv_get 2624 rndv_put 17504 rndv_coop"},
		{"forced get", Config{Rendezvous: "get"}, all, "0 eager 2424 rndv_get"},
		{"forced put", Config{Rendezvous: "put"}, all, "0 eager 2490 rndv_put"},
		{"forced coop", Config{Rendezvous: "coop"}, all, "0 eager 4635 rndv_coop"},
		{"no memory access", Config{}, rdma.Ops(rdma.OpSend), "0 eager"},
		{"no memory access, a low limit", Config{EagerLimit: 10}, rdma.Ops(rdma.OpSend), "0 eager"},
		{"only read", Config{}, rdma.Ops(rdma.OpSend, rdma.OpRead), "0 eager 2424 rndv_get"},
		{"only write", Config{}, rdma.Ops(rdma.OpSend, rdma.OpWrite), "0 eager 2490 rndv_put"},
		{"only the cooperative copy", Config{}, rdma.Ops(rdma.OpSend, rdma.OpPull, rdma.OpPush), "0 eager 4635 rndv_coop"},
		{"forced, but the device cannot", Config{Rendezvous: "coop"}, rdma.Ops(rdma.OpSend, rdma.OpRead), "0 eager 2424 rndv_get"},
	} {
		t.Run(c.name, func(t *testing.T) {
			attr := costs
			attr.Ops = c.ops
			m, l := New(c.cfg, newMemory(0, 0)), &Link{Attr: &attr}
			m.SetUp(l)
			var got strings.Builder
			for i, ch := range l.Choices() {
				if i == 0 {
					fmt.Fprintf(&got, "%d %s", ch.Lo, ch.Protocol)
				} else {
					fmt.Fprintf(&got, " %d %s", ch.Lo-1, ch.Protocol)
				}
			}
			if got.String() != c.want {
				t.Fatalf("choices are %q, want %q", got.String(), c.want)
			}
			if last := l.choice[len(l.choice)-1]; last.hi != MaxSize {
				t.Fatalf("nothing carries messages beyond %d bytes", last.hi)
			}
			// Compare the table with each protocol's Probe at many sizes.
			key := Key{m.cfg.EagerLimit, m.cfg.Rendezvous, m.cfg.TimeSlice}
			if c.name == "forced, but the device cannot" {
				key.Rendezvous = ""
			}
			for _, n := range []int{1, 10, 99, 100, 101, 2423, 2424, 2425, 2490, 2491, 2624, 2625, 4635, 4636, 17504, 17505, 65536, 65537, 1 << 30} {
				best, cost := uint8(protoEager), -1.0
				for i := range protocols {
					for _, r := range key.probe(i, l) {
						if n >= r.Lo && n <= r.Hi && (cost < 0 || r.Cost.Of(n) < cost) {
							best, cost = uint8(i), r.Cost.Of(n)
						}
					}
				}
				if got := l.choose(n); got != best && protocols[got].Probe(key, l)[0].Cost.Of(n) != cost {
					t.Fatalf("%d bytes go by %s, the least expensive is %s", n, protocolName(got), protocolName(best))
				}
			}
		})
	}
}

// A device with Attr.Oversubscribed includes the time slice in its costs.
func TestTimeSliceCountedOnce(t *testing.T) {
	attr := rdma.Attr{MaxSend: 1 << 20, MaxInline: 1 << 20, Ops: rdma.Ops(rdma.OpSend, rdma.OpRead), Oversubscribed: true,
		SendCost: rdma.Cost{Fixed: 100, PerByte: 1}, ReadCost: rdma.Cost{Fixed: 1000, PerByte: 0.5}}
	var limits []int
	for _, slice := range []float64{0, 1e6} {
		m, l := New(Config{TimeSlice: slice}, newMemory(0, 0)), &Link{Attr: &attr}
		m.SetUp(l)
		limits = append(limits, l.eagerMax)
	}
	if limits[0] != limits[1] || limits[0] != 2424 {
		t.Errorf("eager up to %d without turns and %d with them, want 2424 both times", limits[0], limits[1])
	}
}

// Every segment of a message must fit the device's limits.
func TestSegmentSize(t *testing.T) {
	for _, c := range []struct {
		maxSend, maxInline, hint, want int
	}{
		{1 << 20, 1 << 20, 0, 1<<20 - headSync},
		{1 << 20, 1 << 20, 4096, 4096},
		{4096, 4096, 8192, 4096 - headSync},
		{4096, 128, 0, 128},
		{64, 0, 0, 1},
	} {
		m, l := New(Config{}, newMemory(0, 0)), &Link{Attr: &rdma.Attr{MaxSend: c.maxSend, MaxInline: c.maxInline, SegmentHint: c.hint}}
		m.SetUp(l)
		if l.segment != c.want {
			t.Errorf("MaxSend %d, MaxInline %d, SegmentHint %d: segments of %d bytes, want %d", c.maxSend, c.maxInline, c.hint, l.segment, c.want)
		}
	}
}

// The table has a row for each number, with a name of its own. Names that force a protocol
// are short for it.
func TestProtocolTable(t *testing.T) {
	seen := map[string]bool{}
	for i, p := range protocols {
		if p.Protocol == nil || p.name == "" || seen[p.name] {
			t.Errorf("protocol %d has the name %q, want one of its own", i, p.name)
		}
		if seen[p.name] = true; p.forced != "" && p.name != "rndv_"+p.forced {
			t.Errorf("%s is forced by the name %s, want rndv_ and that name", p.name, p.forced)
		}
	}
	if protocolCount > protocolSlots {
		t.Errorf("%d protocols do not fit into LinkStats.ByProtocol: double protocolSlots", protocolCount)
	}
}
