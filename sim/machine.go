package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/muster-mpi/muster/rdma"
)

// Machine describes the computer that is simulated. Times are in nanoseconds. In JSON it
// is the machine file of muster sim.
type Machine struct {
	About string `json:"about,omitempty"`
	// Nodes, and Rails that connect each node with the others. Flags of muster sim
	// override them.
	Nodes int `json:"nodes"`
	Rails int `json:"rails"`
	// Cores of a host. If it has more ranks than cores, these have time slices.
	Cores int `json:"cores"`
	// NodesPerHost is the number of nodes that share the cores and the memory of a host,
	// as in a lab; 0 means 1.
	NodesPerHost int `json:"nodes_per_host,omitempty"`
	// Near describes messages within a node, Far between nodes.
	Near Level `json:"near"`
	Far  Level `json:"far"`
	// Copy and Reduce are the time of a processor per byte of a local copy or reduction.
	Copy   float64 `json:"copy"`
	Reduce float64 `json:"reduce"`
	// Memory is the time per byte that the ranks of a host copy, all together: the
	// inverse of the memory bandwidth. 0: no limit.
	Memory float64 `json:"memory"`
	// Stripe is the longest message that uses one rail; a longer one uses all. 0: every
	// message uses one.
	Stripe int `json:"stripe,omitempty"`
	// Burst is how long a rail that was idle transmits without a limit (a token bucket).
	Burst float64 `json:"burst,omitempty"`
	// Switch is the time to give a core to another rank, and Poll the time slice
	// of a rank that waits for a message. They matter if ranks share cores.
	Switch float64 `json:"switch,omitempty"`
	Poll   float64 `json:"poll,omitempty"`
	// Error is the median relative error of simulated times, from muster sim validate;
	// 0: unknown.
	Error float64 `json:"error,omitempty"`
}

// Level is the cost of messages between two ranks in LogGP.
type Level struct {
	// L is the latency.
	L float64 `json:"L"`
	// O is the time of a processor for a message, at each end, by its size: LogGP's o, and
	// its copies.
	O Curve `json:"o"`
	// Gap and G are the time that a rail is busy with a message, and with a byte of it.
	Gap float64 `json:"gap"`
	G   float64 `json:"G"`
	// Eager is the longest message that is sent without asking the receiver.
	Eager int `json:"eager"`
	// Device has the attributes of the device, for level packets. nil: assumed ones, with
	// which messages of up to Eager are sent without asking.
	Device *rdma.Attr `json:"device,omitempty"`
}

// device returns the attributes of the level's device.
func (l *Level) device(near bool) *rdma.Attr {
	if l.Device != nil {
		return l.Device
	}
	a := &rdma.Attr{Name: "assumed", Transports: rdma.RD, Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead), MaxSend: 16 << 10, MaxInline: 16<<10 - 64}
	if near {
		a.SegmentHint = 8 << 10
	}
	// The costs of eager and of a rendezvous by Read are equal at Eager.
	a.SendCost = rdma.Cost{PerByte: 1}
	a.ReadCost = rdma.Cost{Fixed: max(float64(l.Eager)-2*56, 0)}
	a.PutCost, a.PullCost = a.ReadCost, a.ReadCost
	return a
}

// Curve is a time by size. Between two points it is linear; above the last it has the
// slope of the last two.
type Curve []Point

// Point is a point of a Curve.
type Point struct {
	Bytes int     `json:"bytes"`
	Nanos float64 `json:"ns"`
}

// At returns the time of a size.
func (c Curve) At(bytes int) float64 {
	if len(c) == 1 || bytes <= c[0].Bytes {
		return c[0].Nanos
	}
	i := min(max(sort.Search(len(c), func(i int) bool { return c[i].Bytes >= bytes }), 1), len(c)-1)
	a, b := c[i-1], c[i]
	return max(a.Nanos+(b.Nanos-a.Nanos)*float64(bytes-a.Bytes)/float64(b.Bytes-a.Bytes), 0)
}

// Default returns an assumed machine: nodes of 64 cores with two rails of 200 Gbit/s. It
// was not measured.
func Default() *Machine {
	return &Machine{
		About: "assumed, not measured: 64 cores a node, 200 Gbit/s a rail",
		Nodes: 1, Rails: 2, Cores: 64,
		Near: Level{L: 150, O: Curve{{0, 120}, {8 << 10, 900}, {32 << 10, 3200}, {1 << 20, 55_000}}, Eager: 32 << 10},
		Far:  Level{L: 1300, O: Curve{{0, 350}, {8 << 10, 900}, {16 << 10, 1500}, {64 << 10, 1600}, {1 << 20, 2600}}, Gap: 20, G: 0.04, Eager: 16 << 10},
		Copy: 0.06, Reduce: 0.1, Memory: 0.005, Stripe: 32 << 10,
		Switch: 1500, Poll: 500,
	}
}

// Check returns an error if a value makes no sense.
func (m *Machine) Check() error {
	switch {
	case m.Nodes < 1 || m.Rails < 1 || m.Rails > 255 || m.Cores < 1 || m.NodesPerHost < 0:
		return fmt.Errorf("nodes, rails and cores must be at least 1, and rails at most 255")
	case m.Copy < 0 || m.Reduce < 0 || m.Memory < 0 || m.Burst < 0 || m.Switch < 0 || m.Poll < 0 || m.Stripe < 0 || m.Error < 0:
		return fmt.Errorf("times and sizes must not be negative")
	}
	for _, l := range []struct {
		name string
		*Level
	}{{"near", &m.Near}, {"far", &m.Far}} {
		if err := l.check(); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

func (l *Level) check() error {
	if l.L < 0 || l.Gap < 0 || l.G < 0 || l.Eager < 0 {
		return fmt.Errorf("times and sizes must not be negative")
	}
	if len(l.O) == 0 {
		return fmt.Errorf("o has no points")
	}
	if d := l.Device; d != nil && (d.MaxSend < 128 || d.MaxInline < 1 || !d.Ops.Has(rdma.OpSend)) {
		return fmt.Errorf("device: it must be able to send packets of 128 bytes")
	}
	for i, p := range l.O {
		if p.Bytes < 0 || p.Nanos < 0 || i > 0 && p.Bytes <= l.O[i-1].Bytes {
			return fmt.Errorf("the points of o must be in the order of their sizes, and not negative")
		}
	}
	return nil
}

// ParseMachine reads a machine file.
func ParseMachine(text []byte) (*Machine, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	m := &Machine{}
	if err := d.Decode(m); err != nil {
		return nil, err
	}
	return m, m.Check()
}

// Marshal returns the machine file.
func (m *Machine) Marshal() []byte {
	text, _ := json.MarshalIndent(m, "", "  ") // never fails: numbers and strings
	return append(text, '\n')
}
