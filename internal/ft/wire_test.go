package ft

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
)

func TestWire(t *testing.T) {
	for _, m := range []Message{
		{Kind: Accept, Agreement: 1, Held: -1},
		{Kind: Report, Agreement: 1 << 31, Ballot: 3, Held: 2, Value: Value{1, 2, Set{0, 1, 2, 9, 11, 12}, 0}, HeldValue: Value{1 << 63, 1 << 63, Set{99}, 255}},
		{Kind: Decide, Agreement: 7, Held: -1, Value: Value{^uint64(0), 0, nil, 1}},
	} {
		got, ok := Parse(m.Append(nil), 100)
		if !ok || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v is decoded as %+v, valid: %v", m, got, ok)
		}
	}
	lost := Message{Kind: Decide, Held: -1}
	for r := range int32(4096) {
		lost.Value.Failed = append(lost.Value.Failed, 100_000+r)
	}
	if n := len(lost.Append(nil)); n > 32 {
		t.Errorf("a lost host of 4096 ranks takes %d bytes, want at most 32", n)
	}
}

func TestSets(t *testing.T) {
	for _, c := range [][3]Set{
		{nil, nil, nil}, {{1}, nil, {1}}, {nil, {1}, {1}}, {{1, 3}, {2}, {1, 2, 3}}, {{1, 2}, {2, 3}, {1, 2, 3}}, {{5}, {5}, {5}}, {{1, 9}, {0, 10}, {0, 1, 9, 10}},
	} {
		if got := c[0].Union(c[1]); !slices.Equal(got, c[2]) {
			t.Errorf("the union of %v and %v is %v, want %v", c[0], c[1], got, c[2])
		}
		with := c[0]
		for _, r := range c[1] {
			with = with.Add(r)
		}
		if !slices.Equal(with, c[2]) {
			t.Errorf("%v with each of %v is %v, want %v", c[0], c[1], with, c[2])
		}
	}
}

// TestTree checks that parents and children agree for every set of failed ranks.
func TestTree(t *testing.T) {
	for arity := range int32(4) {
		for failures := range 1 << 9 {
			testTree(t, 9, arity+1, failures)
		}
	}
}

func testTree(t *testing.T, n, arity int32, failures int) {
	var failed Set
	for r := range n {
		if failures&(1<<r) != 0 {
			failed = append(failed, r)
		}
	}
	reached := 0
	for r := range n {
		if failed.Has(r) {
			continue
		}
		for _, c := range childrenOf(r, n, arity, failed, nil) {
			if p := parentOf(c, arity, failed); p != r {
				t.Errorf("arity %d, failed %v: rank %d is a child of %d, but its parent is %d", arity, failed, c, r, p)
			}
			reached++
		}
	}
	if alive := int(n) - len(failed); alive > 0 && reached != alive-1 {
		t.Errorf("arity %d, failed %v: the tree has %d ranks below the root, want %d", arity, failed, reached, alive-1)
	}
}

func FuzzParse(f *testing.F) {
	m := Message{Kind: Report, Agreement: 9, Ballot: 1, Held: 0, Value: Value{1, 2, Set{0, 4, 5}, 6}, HeldValue: Value{3, 4, Set{8}, 7}}
	f.Add(m.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := Parse(b, 64)
		if !ok {
			return
		}
		c := m.Append(nil)
		if again, ok := Parse(c, 64); !ok || !bytes.Equal(again.Append(nil), c) {
			t.Errorf("%+v does not survive encoding: %+v", m, again)
		}
		NewGroup(3, 64, 2).Receive(5, m) // must not panic
	})
}
