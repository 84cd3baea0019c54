package dgram

import (
	"testing"
	"time"
)

func TestVerdicts(t *testing.T) {
	start := psn(0xFFFFFFFE) // so that numbers wrap
	r := receiver{next: start, given: start}
	take := func(ps ...psn) {
		for _, p := range ps {
			r.accept(0, p, 0, ordinary)
		}
	}
	hand := func(n int) {
		for range n {
			if !r.waiting() {
				t.Fatalf("number %d is not there to be handed up", r.given)
			}
			r.handed()
		}
	}
	expect := func(p psn, want verdict) {
		t.Helper()
		if got := r.judge(p); got != want {
			t.Errorf("next %d, given %d: %d is judged %d and should be %d", r.next, r.given, p, got, want)
		}
	}
	expect(start, inOrder)
	expect(start+1, early)
	expect(start-1, duplicate)
	expect(start+window-1, early)
	expect(start+window, beyond)
	take(start+1, start+window-1)
	expect(start+1, duplicate)
	expect(start+window-1, duplicate)
	expect(start, inOrder)
	take(start)
	expect(start, duplicate)
	expect(start+2, early) // start and start+1 wait to be handed up
	hand(2)
	expect(start+2, inOrder)
	expect(start+window+1, early)
	expect(start+window+2, beyond)
	for p := start + 2; p != start+window-1; p++ {
		take(p)
	}
	if r.next != start+window || r.seen != (sightings{}) {
		t.Errorf("the last gap is closed, but next is %d and %x was seen beyond", r.next, r.seen)
	}
	hand(window - 2)
	if r.waiting() {
		t.Error("something waits although all was handed up")
	}
}

func TestReceiptsAreDue(t *testing.T) {
	var r receiver
	if r.due(time.Hour) {
		t.Error("a receipt is due for nothing")
	}
	r.accept(0, 0, 5, ordinary)
	if r.due(receiptDelay-1) || !r.due(receiptDelay) {
		t.Errorf("the receipt for one datagram is due at %v and should be at %v", r.wake(0), receiptDelay)
	}
	var got receipt
	r.write(100*time.Microsecond, &got)
	if want := (receipt{next: 1, stamp: 5, held: 100}); got != want {
		t.Errorf("the receipt is %+v and should be %+v", got, want)
	}
	if r.due(time.Hour) {
		t.Error("a receipt is due after it was written")
	}
	for p := range psn(receiptEvery) {
		if r.due(0) {
			t.Errorf("a receipt is due after %d datagrams", p)
		}
		r.accept(0, 1+p, 0, ordinary)
	}
	if !r.due(0) {
		t.Errorf("no receipt is due after %d datagrams", receiptEvery)
	}
	r.write(0, &got)
	for name, cause := range map[string]func(){
		"a wish":      func() { r.accept(0, r.next, 0, urgent) },
		"a gap":       func() { r.accept(0, r.next+1, 0, ordinary) },
		"a duplicate": func() { r.refuse(0, 0) },
	} {
		if cause(); !r.due(0) {
			t.Errorf("no receipt is due at once after %s", name)
		}
		r.write(0, &got)
	}
}

// TestSteadyTrafficAllocatesNothing drives both halves without a network.
func TestSteadyTrafficAllocatesNothing(t *testing.T) {
	var h hangar
	a, b := newPeer(&h, mss), newPeer(&h, mss)
	var m message
	var got receipt
	now := time.Duration(0)
	round := func() {
		m = message{length: 3 * mss}
		a.push(&m)
		for !a.idle() {
			now += 10 * time.Microsecond
			for seg, more := a.sender.next(now); more; seg, more = a.sender.next(now) {
				if b.judge(seg.number) != inOrder {
					t.Fatalf("number %d is not the next", seg.number)
				}
				b.accept(now, seg.number, stampOf(now), ordinary)
				b.handed()
			}
			b.receiver.write(now, &got)
			a.acknowledge(now, &got)
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("a message allocates %v times", n)
	}
}
