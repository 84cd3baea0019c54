package sched

import (
	"reflect"
	"slices"
	"testing"
)

// dissemination builds the graph of a barrier, doubling that of an exchange by bits.
func dissemination(b *Builder, rank, size int) {
	for d := 1; d < size; d *= 2 {
		b.Send((rank+d)%size, Span{Buf: Tmp})
		b.Recv((rank-d+size)%size, Span{Buf: Tmp})
	}
}

func doubling(b *Builder, rank, size int) {
	after := None
	for d := 1; d < size; d *= 2 {
		b.Send(rank^d, Span{Buf: Out, Len: 8}, after)
		after = b.Recv(rank^d, Span{Buf: Out, Off: 8, Len: 8}, after)
	}
}

func TestShare(t *testing.T) {
	for _, c := range []struct {
		name   string
		build  func(b *Builder, rank, size int)
		size   int
		graphs int
		peers  Addressing
	}{
		{"dissemination among 13", dissemination, 13, 1, Distance},
		{"doubling among 64", doubling, 64, 1, Bits},
	} {
		var p Pool
		var b Builder
		for rank := range c.size {
			b.Reset(rank, c.size)
			c.build(&b, rank, c.size)
			own, err := b.Graph()
			if err != nil {
				t.Fatal(err)
			}
			shared, err := p.Share(&b)
			if err != nil {
				t.Fatal(err)
			}
			if shared.Peers != c.peers || shared.Rank != AnyRank {
				t.Fatalf("%s: the shared graph of rank %d has addressing %d and rank %d", c.name, rank, shared.Peers, shared.Rank)
			}
			if got := shared.forRank(rank); !reflect.DeepEqual(got, own) {
				t.Fatalf("%s: rank %d gets\n%v, its own graph is\n%v", c.name, rank, got, own)
			}
		}
		if len(p.graphs) != c.graphs || p.bytes > 4<<10 {
			t.Errorf("%s: the pool holds %d graphs of %d bytes, want %d", c.name, len(p.graphs), p.bytes, c.graphs)
		}
	}
	if got := int(reflect.TypeFor[Op]().Size()); got != opBytes {
		t.Errorf("an Op has %d bytes, opBytes is %d", got, opBytes)
	}
	if got := int(reflect.TypeFor[Graph]().Size() + reflect.TypeFor[Generator]().Size()); got > graphBytes {
		t.Errorf("a graph has %d bytes, graphBytes is %d", got, graphBytes)
	}
}

// TestShareKeepsApart checks that graphs with the same messages and other dependencies or
// buffers are not shared, and that a pool without data ignores buffers.
func TestShareKeepsApart(t *testing.T) {
	for _, noData := range []bool{false, true} {
		p := Pool{NoData: noData}
		var b Builder
		for i := range 3 {
			b.Reset(0, 4)
			after := b.Recv(1, Span{Buf: Tmp})
			if i == 0 {
				after = None
			}
			b.Send(2, Span{Buf: Tmp, Off: 8 * (i / 2)}, after)
			if _, err := p.Share(&b); err != nil {
				t.Fatal(err)
			}
		}
		want := 3
		if noData {
			want = 2
		}
		if len(p.graphs) != want {
			t.Errorf("without data: %v: the pool holds %d graphs, want %d", noData, len(p.graphs), want)
		}
	}
}

// TestShareLists checks that a rank of a pool without data whose peers follow no rule has a list
// of them and shares the rest, unless messages to one peer are in another order.
func TestShareLists(t *testing.T) {
	p := Pool{NoData: true}
	var b Builder
	for i, c := range []struct {
		peers [2]int
		graph int
		list  []int32
	}{{[2]int{1, 2}, 0, nil}, {[2]int{1, 3}, 0, []int32{1, 3}}, {[2]int{2, 2}, 1, nil}} {
		b.Reset(0, 4)
		for _, peer := range c.peers {
			b.Send(peer, Span{Buf: Out, Len: 8})
		}
		got, err := p.Share(&b)
		if err != nil || got.Index != c.graph || !reflect.DeepEqual(got.List, c.list) {
			t.Errorf("case %d: graph %d with list %v (%v), want %d, %v", i, got.Index, got.List, err, c.graph, c.list)
		}
	}
}

// forRank returns the graph of a rank with absolute peers. It is g itself if g is the graph of
// one rank.
func (g *Graph) forRank(rank int) *Graph {
	if g.Peers == Absolute {
		return g
	}
	own := *g
	own.Rank, own.Peers, own.Ops = rank, Absolute, slices.Clone(g.Ops)
	for i := range own.Ops {
		if op := &own.Ops[i]; op.Kind <= Recv {
			op.Peer = g.Peer(rank, op)
		}
	}
	return &own
}
