package guard

import "testing"

func TestStrikeLimit(t *testing.T) {
	var g Guard
	var guesser, other Strikes
	for i := 1; i <= MaxStrikes; i++ {
		if g.Bars(guesser, true) {
			t.Fatalf("the peer is barred before strike %d", i)
		}
		if out := g.Strike(&guesser, true, uint64(1000+i)); out != (i == MaxStrikes) {
			t.Fatalf("strike %d returns %v", i, out)
		}
	}
	if !g.Bars(guesser, true) || g.Bars(other, true) || g.Bars(other, false) {
		t.Error("the guessing peer is not barred, or another one is")
	}
}

func TestLateAccessIsNoStrike(t *testing.T) {
	var g Guard
	var s Strikes
	for key := uint64(1); key <= remembered; key++ {
		g.End(key)
	}
	for key := uint64(1); key <= remembered; key++ {
		if g.Strike(&s, true, key); s != 0 {
			t.Fatalf("an access with key %d, which was just deregistered, is a strike", key)
		}
	}
	g.End(remembered + 1)
	if g.Strike(&s, true, 1); s != 1 {
		t.Error("a deregistered key is never forgotten")
	}
	if g.Strike(&s, true, 0); s != 2 {
		t.Error("key 0 counts as deregistered")
	}
}

func TestUnresolvedPeersShareStrikes(t *testing.T) {
	var g Guard
	for i := range MaxStrikes {
		var fresh Strikes // a new name for every guess
		if out := g.Strike(&fresh, false, uint64(i+1)); out != (i == MaxStrikes-1) {
			t.Fatalf("strike %d returns %v", i+1, out)
		}
	}
	if !g.Bars(0, false) || g.Bars(0, true) {
		t.Error("unresolved peers are not barred, or resolved ones are")
	}
}
