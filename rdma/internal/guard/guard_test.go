package guard

import "testing"

func TestAPeerThatGuessesIsOutAfterTheLimit(t *testing.T) {
	var g Guard
	var guesser, other Strikes
	for i := 1; i <= MaxStrikes; i++ {
		if g.Bars(guesser, true) {
			t.Fatalf("it is barred before strike %d", i)
		}
		if out := g.Strike(&guesser, true, uint64(1000+i)); out != (i == MaxStrikes) {
			t.Fatalf("after strike %d it is out: %v", i, out)
		}
	}
	if !g.Bars(guesser, true) || g.Bars(other, true) || g.Bars(other, false) {
		t.Error("the one who guessed is not barred, or somebody else is")
	}
}

func TestLateAccessesAreNoStrikes(t *testing.T) {
	var g Guard
	var s Strikes
	for key := uint64(1); key <= remembered; key++ {
		g.End(key)
	}
	for key := uint64(1); key <= remembered; key++ {
		if g.Strike(&s, true, key); s != 0 {
			t.Fatalf("an access with key %d, which has just ended, is a strike", key)
		}
	}
	g.End(remembered + 1)
	if g.Strike(&s, true, 1); s != 1 {
		t.Error("a key is remembered for ever")
	}
	if g.Strike(&s, true, 0); s != 2 {
		t.Error("no key at all is taken for one that has ended")
	}
}

func TestStrangersShareTheirStrikes(t *testing.T) {
	var g Guard
	for i := range MaxStrikes {
		var fresh Strikes // a new name for every guess
		if out := g.Strike(&fresh, false, uint64(i+1)); out != (i == MaxStrikes-1) {
			t.Fatalf("after strike %d it is out: %v", i+1, out)
		}
	}
	if !g.Bars(0, false) || g.Bars(0, true) {
		t.Error("strangers are not barred, or peers that were announced are")
	}
}
