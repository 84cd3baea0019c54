package p2p

import "testing"

type countEnds int

func (n *countEnds) OperationEnded() { *n++ }

func TestWatchEnd(t *testing.T) {
	m := New(Config{}, nil)
	var n countEnds
	x := m.New()
	m.WatchEnd(x, &n)
	m.Refuse(x, nil)
	if n != 1 {
		t.Errorf("the end of an operation was reported %d times", n)
	}
	m.WatchEnd(x, &n) // it has completed
	m.Free(x)
	for range 3 { // the second one is in the place of the first
		y := m.New()
		m.Refuse(y, nil)
	}
	if n != 1 {
		t.Errorf("operations that nobody watches were reported %d times", n-1)
	}
	z := m.New()
	m.WatchEnd(z, &n)
	m.Free(z) // as after the arrival of one packet, which is not reported
	m.Refuse(m.New(), nil)
	if n != 1 {
		t.Error("an operation was reported as the one that was in its place before")
	}
}
