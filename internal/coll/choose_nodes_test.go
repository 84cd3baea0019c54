package coll

import (
	"slices"
	"testing"
)

// The choice of algorithms for ranks on several nodes.

// hosts models software iWARP between nodes with a core for each rank; sharedHosts the
// same over two rails, with ranks that share few cores, as in the lab.
var (
	hosts = Model{Startup: 3.4e-6, PerByte: 1.5e-9, Reduce: 0.12e-9, Copy: 0.06e-9, Ports: 1, Starts: 4, Eager: 12 << 10,
		Near: Near{Startup: 0.3e-6, PerByte: 0.13e-9}}
	sharedHosts = Model{Startup: 40e-6, PerByte: 1.5e-9, Reduce: 0.12e-9, Copy: 0.06e-9, Ports: 2, Starts: 16, Eager: 12 << 10, Stripe: 8 << 10, TimeSlices: true,
		Near: Near{Startup: 15e-6, PerByte: 0.13e-9}}
)

func onNodes(kind Kind, bytes int, nodes *Topology) *Shape {
	return &Shape{Kind: kind, Size: nodes.Size(), Elem: 4, Bytes: bytes, Commutes: true, Nodes: nodes,
		Send: Blocks{Each: bytes}, Recv: Blocks{Each: bytes}}
}

func TestChooseOnNodes(t *testing.T) {
	four := Consecutive(2, 4, 4, 4, 4)
	for _, c := range []struct {
		kind  Kind
		bytes int
		want  [2]string // by hosts, by sharedHosts
	}{
		{Barrier, 0, [2]string{"node-dissemination", "node-dissemination"}},
		{Bcast, 64, [2]string{"node-knomial", "node-knomial"}},
		{Bcast, 1 << 20, [2]string{"node-chain", "node-chain"}},
		{Gather, 64, [2]string{"linear", "linear"}},
		{Gather, 64 << 10, [2]string{"node-direct", "node-direct"}},
		{Allgather, 16, [2]string{"node-groups", "node-groups"}},
		{Allgather, 1 << 10, [2]string{"node-groups", "node-groups"}},
		{Allgather, 16 << 10, [2]string{"node-groups", "node-groups"}},
		{Allgather, 1 << 20, [2]string{"node-ring", "node-ring"}}, // one node at a time: see below
		{Alltoall, 64, [2]string{"node-carriers", "node-carriers"}},
		{Alltoall, 2 << 10, [2]string{"direct", "direct"}},
		{Alltoall, 1 << 20, [2]string{"direct", "direct"}},
		{Reduce, 64, [2]string{papShmDirect, papDirect}},
		{Allreduce, 64, [2]string{papShmDirect, papShmDirect}},
		{Allreduce, 1 << 20, [2]string{"node-columns", "node-circulant"}},
	} {
		for i, m := range []*Model{&hosts, &sharedHosts} {
			got, err := Choose(onNodes(c.kind, c.bytes, four), m, nil)
			if err != nil || got.Algorithm.Name != c.want[i] {
				t.Errorf("%s of %d bytes, model %d: %s %v, %v; want %s", c.kind, c.bytes, i, got.Algorithm.Name, got.Params, err, c.want[i])
			}
		}
	}
}

// TestChooseOneAtATime checks that parts too long for switch buffers are sent to one node
// after the other.
func TestChooseOneAtATime(t *testing.T) {
	for _, m := range []*Model{&hosts, &sharedHosts} {
		for bytes, want := range map[int]string{1 << 10: "node-groups", 1 << 20: "node-ring"} {
			c, err := Choose(onNodes(Allgather, bytes, Consecutive(2, 4, 4, 4, 4)), m, nil)
			if err != nil || c.Algorithm.Name != want || want == "node-groups" && c.Params[1] != 16 {
				t.Errorf("%d bytes: %s %v, %v; want %s", bytes, c.Algorithm.Name, c.Params, err, want)
			}
		}
	}
}

// TestChooseGroups checks that with a core for each rank the number of ranks that
// communicate with other nodes grows with the block length (T2 5.6), and that with time
// slices it is one.
func TestChooseGroups(t *testing.T) {
	four := Consecutive(2, 4, 4, 4, 4)
	groups := func(m *Model, bytes int) int {
		a, _ := Find(Allgather, "node-groups")
		for _, r := range rank(onNodes(Allgather, bytes, four), m) {
			if r.Algorithm == a {
				return r.Params[0]
			}
		}
		t.Fatal("node-groups cannot be")
		return 0
	}
	var got [2][]int
	for _, bytes := range []int{16, 1 << 10, 16 << 10, 64 << 10} {
		got[0], got[1] = append(got[0], groups(&hosts, bytes)), append(got[1], groups(&sharedHosts, bytes))
	}
	if !slices.Equal(got[0], []int{1, 1, 2, 4}) || !slices.Equal(got[1], []int{1, 1, 1, 1}) {
		t.Errorf("groups by size: %v, and with time slices %v", got[0], got[1])
	}
}

// TestChooseWithoutNodes checks that the node model does not affect a choice on one node.
func TestChooseWithoutNodes(t *testing.T) {
	for _, a := range Algorithms() {
		s := Shape{Kind: a.Kind, Size: 16, Elem: 4, Bytes: 1024, Commutes: true, Send: Blocks{Each: 1024}, Recv: Blocks{Each: 1024}}
		if a.Needs.Nodes {
			if ok, why := Applicable(&a, &s); ok || why != "all ranks are on one node" {
				t.Errorf("%s by %s on one node: %v, %s", a.Kind, a.Name, ok, why)
			}
			continue
		}
		a.EachParams(func(params []int) {
			if plain, on := a.Cost(&s, &ethernet, params), a.costOn(&s, &ethernet, params); plain != on {
				t.Errorf("%s by %s: %g, and %g on one node", a.Kind, a.Name, plain, on)
			}
		})
	}
}
