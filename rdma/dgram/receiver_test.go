package dgram

import (
	"testing"
	"time"
)

func TestClassify(t *testing.T) {
	start := psn(0xFFFFFFFE) // so that numbers wrap
	r := receiver{next: start, nextUp: start}
	take := func(ps ...psn) {
		for _, p := range ps {
			r.accept(0, p, 0, ackNormal)
		}
	}
	hand := func(n int) {
		for range n {
			if !r.waiting() {
				t.Fatalf("number %d is not deliverable", r.nextUp)
			}
			r.markDelivered()
		}
	}
	expect := func(p psn, want classification) {
		t.Helper()
		if got := r.classify(p); got != want {
			t.Errorf("next %d, given %d: %d is classified as %d, want %d", r.next, r.nextUp, p, got, want)
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
	expect(start+2, early) // start and start+1 are not delivered yet
	hand(2)
	expect(start+2, inOrder)
	expect(start+window+1, early)
	expect(start+window+2, beyond)
	for p := start + 2; p != start+window-1; p++ {
		take(p)
	}
	if r.next != start+window || r.seen != (receiveHistory{}) {
		t.Errorf("the last gap is closed, but next is %d with history %x", r.next, r.seen)
	}
	hand(window - 2)
	if r.waiting() {
		t.Error("something is deliverable although all was delivered")
	}
}

func TestAckDue(t *testing.T) {
	var r receiver
	if r.due(time.Hour) {
		t.Error("an ack is due without a datagram")
	}
	r.accept(0, 0, 5, ackNormal)
	if r.due(ackDelay-1) || !r.due(ackDelay) {
		t.Errorf("the ack for one datagram is due at %v, want %v", r.wake(0), ackDelay)
	}
	var got ack
	r.write(100*time.Microsecond, &got)
	if want := (ack{next: 1, stamp: 5, held: 100}); got != want {
		t.Errorf("the ack is %+v, want %+v", got, want)
	}
	if r.due(time.Hour) {
		t.Error("an ack is due after it was written")
	}
	for p := range psn(ackEvery) {
		if r.due(0) {
			t.Errorf("an ack is due after %d datagrams", p)
		}
		r.accept(0, 1+p, 0, ackNormal)
	}
	if !r.due(0) {
		t.Errorf("no ack is due after %d datagrams", ackEvery)
	}
	r.write(0, &got)
	for name, cause := range map[string]func(){
		"a request":   func() { r.accept(0, r.next, 0, ackNow) },
		"a gap":       func() { r.accept(0, r.next+1, 0, ackNormal) },
		"a duplicate": func() { r.refuse(0, 0) },
	} {
		if cause(); !r.due(0) {
			t.Errorf("no ack is due at once after %s", name)
		}
		r.write(0, &got)
	}
}

// TestSteadyTrafficAllocatesNothing runs both halves without a network.
func TestSteadyTrafficAllocatesNothing(t *testing.T) {
	var h windowPool
	a, b := newPeer(&h, mss), newPeer(&h, mss)
	var m message
	var got ack
	now := time.Duration(0)
	round := func() {
		m = message{length: 3 * mss}
		a.push(&m)
		for !a.idle() {
			now += 10 * time.Microsecond
			for seg, more := a.sender.next(now); more; seg, more = a.sender.next(now) {
				if b.classify(seg.number) != inOrder {
					t.Fatalf("number %d is not the next", seg.number)
				}
				b.accept(now, seg.number, stampOf(now), ackNormal)
				b.markDelivered()
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
