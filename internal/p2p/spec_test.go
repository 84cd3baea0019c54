package p2p

// Speculation beside its scripts (testdata/spec.txt and others): its limits, and when it
// stops.

import (
	"errors"
	"strings"
	"testing"
)

var specConfig = Config{EagerLimit: 8, Speculate: "always"}

// T1 4.2.3, accumulation of RTRs: a link never has more than maxOffers of them.
func TestRTRsDoNotAccumulate(t *testing.T) {
	j := newJob(t, 2, specConfig, 0)
	var recvs, sends []*Xfer
	for range maxOffers + 4 {
		recvs = append(recvs, j.recv(1, 0, 5, 20))
	}
	if s, here := j.nodes[1].links[0].Stats.RTRSent, len(j.nodes[0].links[1].offers); s != maxOffers || here != maxOffers {
		t.Fatalf("%d RTRs were sent and %d kept, want %d", s, here, maxOffers)
	}
	// A resolved one makes room for another.
	sends = append(sends, j.send(0, 1, 5, 20, Standard))
	j.drain()
	j.got(recvs[0], 0, 5, 20, "the first receive")
	j.offer(1, recvs[maxOffers])
	j.pending(recvs[maxOffers], "ready", "there is room for its RTR")
	for range recvs[1:] {
		sends = append(sends, j.send(0, 1, 5, 20, Standard))
	}
	j.drain()
	for i := range recvs {
		j.got(recvs[i], 0, 5, 20, "a receive")
		j.sent(sends[i], "its send")
	}
	if s := j.nodes[0].links[1].Stats; s.SpecSent != maxOffers+1 {
		t.Fatalf("%d messages were written at once, want %d", s.SpecSent, maxOffers+1)
	}
	if l := j.nodes[1].links[0]; l.offered != 0 || l.Stats.RTRUsed != maxOffers+1 {
		t.Fatalf("%d RTRs are open, %d were used", l.offered, l.Stats.RTRUsed)
	}
	j.clean()
}

// A sender remembers recentLen messages. An RTR that has crossed more of them is dropped,
// whatever their envelopes.
func TestLateRTRDropped(t *testing.T) {
	for crossed, want := range map[int]string{recentLen: "rndv_spec", recentLen + 1: "rndv_get"} {
		j := newJob(t, 2, Config{EagerLimit: 8, Rendezvous: "get"}, 0)
		r := j.recv(1, 0, 5, 20)
		m := j.nodes[1].m
		m.Offer(r)
		j.settle(1)
		for range crossed {
			j.send(0, 1, 6, 1, Standard)
		}
		j.deliver(1, 0, 0)
		s := j.send(0, 1, 5, 20, Standard)
		if s.Protocol() != want {
			t.Fatalf("after %d messages, the send goes by %s, want %s", crossed, s.Protocol(), want)
		}
		j.drain()
		j.got(r, 0, 5, 20, "the receive")
		for range crossed {
			j.recv(1, 0, 6, 1)
		}
		j.clean()
	}
}

// Messages before the peer's first offer are not remembered. The first offer is dropped if it
// has crossed a message, the next is not.
func TestFirstCrossingRTRDropped(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 8, Rendezvous: "get"}, 0)
	l := j.nodes[0].links[1]
	l.recent = nil
	for i, want := range []string{"rndv_get", "rndv_spec"} {
		r := j.recv(1, 0, 5, 20)
		j.nodes[1].m.Offer(r)
		j.settle(1)
		j.send(0, 1, 6, 1, Standard)
		j.deliver(1, 0, 0)
		s := j.send(0, 1, 5, 20, Standard)
		if s.Protocol() != want {
			t.Fatalf("offer %d: the send goes by %s, want %s", i, s.Protocol(), want)
		}
		j.drain()
		j.got(r, 0, 5, 20, "the receive")
		j.recv(1, 0, 6, 1)
	}
	if l.Stats.RTRStale != 1 {
		t.Fatalf("%d RTRs were stale, want 1", l.Stats.RTRStale)
	}
	j.clean()
}

// The number of messages is counted in 32 bits on the wire.
func TestRTRCountWraps(t *testing.T) {
	j := newJob(t, 2, specConfig, 0)
	j.nodes[0].links[1].Stats.Sent = 1<<32 - 1
	j.nodes[1].links[0].Stats.Received = 1<<32 - 1
	for range 3 {
		r := j.recv(1, 0, 5, 20)
		j.send(0, 1, 6, 1, Standard) // crosses nothing, but counts
		s := j.send(0, 1, 5, 20, Standard)
		if s.Protocol() != "rndv_spec" {
			t.Fatalf("the send goes by %s", s.Protocol())
		}
		j.drain()
		j.got(r, 0, 5, 20, "the receive")
		j.recv(1, 0, 6, 1)
	}
	j.clean()
}

func TestNoRTRBehindManyReceives(t *testing.T) {
	j := newJob(t, 2, specConfig, 0)
	for range maxAhead + 1 {
		j.recv(1, 0, 5, 4) // these expect eager messages
	}
	r := j.recv(1, 0, 5, 20)
	j.pending(r, "posted", "too many receives are ahead")
	j.send(0, 1, 5, 4, Standard)
	j.drain()
	j.offer(1, r)
	j.pending(r, "ready", "one is gone")
}

// Violations of the protocol.
func TestRTRMisuse(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(j *job)
		want string
	}{
		{"more RTRs than it may send", func(j *job) {
			l := j.nodes[1].links[0]
			for range maxOffers + 1 {
				l.offered = 0
				j.recv(1, 0, 5, 20)
			}
		}, "more buffers than it may"},
		{"an RTS that names another receive", func(j *job) {
			j.recv(1, 0, 5, 20)
			j.recv(1, 0, 5, 20)
			j.nodes[0].links[1].offers[0].handle = j.nodes[0].links[1].offers[1].handle
			j.send(0, 1, 5, 20, Standard)
			j.drain()
		}, "not offered"},
		{"an RTS that names a receive without an RTR", func(j *job) {
			r := j.recv(1, 0, 5, 20)
			j.nodes[1].m.closeOffer(r, offerRevoked)
			j.send(0, 1, 5, 20, Standard)
			j.drain()
		}, "not offered"},
		{"a message longer than the buffer", func(j *job) {
			j.recv(1, 0, 5, 20)
			j.nodes[0].links[1].offers[0].length = 30
			j.send(0, 1, 5, 30, Standard)
			j.drain()
		}, "not offered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob(t, 2, specConfig, 0)
			c.do(j)
			err := errors.Join(j.nodes[0].links[1].Err, j.nodes[1].links[0].Err)
			if !errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the link should be given up because of %q, but: %v", c.want, err)
			}
			for rank, n := range j.nodes {
				n.m.Fail(errGone)
				if len(n.mem.regs) != 0 {
					t.Fatalf("rank %d leaves %d regions", rank, len(n.mem.regs))
				}
			}
		})
	}
	t.Run("an RTR to a device that cannot write", func(t *testing.T) {
		j := newJob(t, 2, specConfig, 0)
		m := j.nodes[1].m
		r := j.nodes[1].m.New()
		r.Buf, r.Tag, r.Link = j.nodes[1].mem.buffer(20), 5, j.nodes[1].links[0]
		m.Recv(r)
		m.Offer(r)
		j.settle(1)
		j.attr.Ops = 0
		j.deliver(1, 0, 0)
		if err := j.nodes[0].links[1].Err; !errors.Is(err, ErrProtocol) {
			t.Fatalf("the link should be given up, but: %v", err)
		}
	})
}

// No RTR is sent on an unopened link, nor for an empty buffer.
func TestNoRTRWithoutNeed(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: -1, Speculate: "always"}, 0)
	j.pending(j.recv(1, 0, 5, 0), "posted", "an empty receive")
	j.nodes[1].links[0].Open = false
	j.pending(j.recv(1, 0, 6, 20), "posted", "a link that is not open")
	if n := j.nodes[1].links[0].Stats.RTRSent; n != 0 {
		t.Fatalf("%d RTRs were sent", n)
	}
}

// T1 4.2.6: with less than 80 % used, RTRs stop, except for probes; 7 of 8 probes used resume
// them.
func TestSpecHistory(t *testing.T) {
	rule := newSpecRule("")
	var h specHistory
	for range 10 { // 13 of 16 used is more than 80 %
		for i := range 16 {
			h.learn(&rule, i%16 < 13)
		}
	}
	if h.stopped {
		t.Fatal("stopped although 13 of 16 are used")
	}
	h.learn(&rule, true)
	h.learn(&rule, false)
	if !h.stopped {
		t.Fatalf("not stopped although 13 of 64 were wasted: %064b", h.wasted)
	}
	sent := 0
	for range 10 * (16 + 32) {
		if h.allow(&rule) {
			sent++
			h.learn(&rule, sent%2 == 0)
		}
	}
	if sent != 20 || !h.stopped {
		t.Fatalf("of 480 candidates %d were sent, stopped %v, want 20, true", sent, h.stopped)
	}
	for range 10 {
		h.learn(&rule, false)
	}
	if h.pause != rule.rest {
		t.Fatalf("the pause after ten that were wasted is %d", h.pause)
	}
	for i := 1; h.stopped; i++ {
		h.learn(&rule, true)
		if i > 7 {
			t.Fatal("7 used in a row do not suffice")
		}
	}
	for range 2 {
		if !h.allow(&rule) {
			t.Fatal("not sent again")
		}
	}
	rule = newSpecRule("always")
	h = specHistory{}
	for range 100 {
		h.learn(&rule, false)
	}
	if h.stopped {
		t.Fatal("stopped although they should always be sent")
	}
}

// A program whose senders are early (T1 fig. 4.18) soon sends hardly any RTRs, and sends them
// again when its receivers are early.
func TestSpeculationStopsAndResumes(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 8, Rendezvous: "get"}, 0)
	l, back := j.nodes[1].links[0], j.nodes[0].links[1]
	exchange := func(early bool) {
		j.nodes[0].mem.used, j.nodes[1].mem.used = guardLen, guardLen
		r := j.recv(1, 0, 5, 20)
		if early {
			j.offer(1, r)
		} else {
			j.nodes[1].m.Offer(r)
			j.settle(1)
		}
		s := j.send(0, 1, 5, 20, Standard)
		j.drain()
		j.got(r, 0, 5, 20, "a receive")
		j.sent(s, "a send")
		j.nodes[1].m.Free(r)
		j.nodes[0].m.Free(s)
	}
	for range 1000 {
		exchange(false)
	}
	// Four, and after pauses of 16, 32, 64, 128 and 256.
	if s := l.Stats; s.RTRSent != 4+5 || s.RTRWasted != s.RTRSent || s.RTRStopped != 1000-s.RTRSent || back.Stats.RTRStale != s.RTRSent {
		t.Fatalf("1000 crossings: %+v", s)
	}
	for range 512 + 256 + 128 + 64 + 32 + 16 + 16 {
		exchange(true)
	}
	sent := l.Stats.RTRSent
	for range 100 {
		exchange(true)
	}
	if s := l.Stats; s.RTRSent != sent+100 || back.Stats.SpecSent != s.RTRUsed {
		t.Fatalf("it should have begun again: %+v", s)
	}
	for range 100 { // and it stops again
		exchange(false)
	}
	if s := l.Stats; s.RTRSent > sent+100+13+3 {
		t.Fatalf("it should have stopped again: %+v", s)
	}
	j.clean()
}
