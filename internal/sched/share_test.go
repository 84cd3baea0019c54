package sched

import (
	"reflect"
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
			again, _ := b.Graph()
			shared := p.Share(again)
			if shared.Peers != c.peers || shared.Rank != AnyRank {
				t.Fatalf("%s: the shared graph of rank %d has addressing %d and rank %d", c.name, rank, shared.Peers, shared.Rank)
			}
			if got := shared.For(rank); !reflect.DeepEqual(got, own) {
				t.Fatalf("%s: rank %d gets\n%v, its own graph is\n%v", c.name, rank, got, own)
			}
			if p.Share(shared) != shared {
				t.Errorf("%s: a shared graph is shared again", c.name)
			}
		}
		if p.Len() != c.graphs || p.Bytes() > 4<<10 {
			t.Errorf("%s: the pool holds %d graphs of %d bytes, want %d", c.name, p.Len(), p.Bytes(), c.graphs)
		}
	}
	if got := int(reflect.TypeFor[Op]().Size()); got != opBytes {
		t.Errorf("an Op has %d bytes, opBytes is %d", got, opBytes)
	}
	if got := int(reflect.TypeFor[Graph]().Size() + reflect.TypeFor[Generator]().Size()); got > graphBytes {
		t.Errorf("a graph has %d bytes, graphBytes is %d", got, graphBytes)
	}
}

// TestShareKeepsApart checks that graphs with the same messages and other dependencies are
// not shared.
func TestShareKeepsApart(t *testing.T) {
	var p Pool
	var b Builder
	for _, waits := range []bool{false, true} {
		b.Reset(0, 4)
		after := b.Recv(1, Span{Buf: Tmp})
		if !waits {
			after = None
		}
		b.Send(2, Span{Buf: Tmp}, after)
		g, err := b.Graph()
		if err != nil {
			t.Fatal(err)
		}
		p.Share(g)
	}
	if p.Len() != 2 {
		t.Errorf("the pool holds %d graphs, want 2", p.Len())
	}
}
