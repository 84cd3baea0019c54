package p2p

import (
	"fmt"
	"testing"
)

// Ranks flood one rank, which then receives everything. The credit of its senders together
// never exceeds that of the rank, and all senders that need more get the same share.
func TestSendersShareCredit(t *testing.T) {
	const (
		ranks, length  = 5, 100
		charge         = length + eagerCharge
		credit         = 80 * charge
		first          = credit / 2 / (ranks - 1)
		messages       = 60
		withinOneThird = credit / 8 / 3
	)
	cfg := Config{EagerLimit: length, Credit: credit, Senders: ranks - 1, leastCredit: 1, Rendezvous: "get"}
	j := &job{world: newWorld(ranks, cfg, testAttr(0), 1<<19), t: t}
	tag := 0
	// flood makes ranks send to rank 0, which receives only when all is sent.
	flood := func(name string, from ...int) {
		t.Helper()
		base := tag
		var sends []*Xfer
		for range messages {
			for _, r := range from {
				sends = append(sends, j.send(r, 0, tag, length, Standard))
			}
			tag++
		}
		j.drain()
		held := 0
		for g := j.nodes[0].m.match.arrived.head; g != nil; g = g.nodes[listArrived].next {
			if len(g.data) > 0 {
				held += len(g.data) + eagerCharge
			}
		}
		if sum := granted(j.nodes[0].links, 0); held > credit || sum > credit {
			t.Fatalf("%s: rank 0 holds %d and has granted %d, its credit is %d", name, held, sum, credit)
		}
		n := 0
		for k := base; k < tag; k++ {
			for _, r := range from {
				x := j.recv(0, r, k, length)
				j.drain()
				j.got(x, r, k, length, fmt.Sprint(name, ": message ", k, " of rank ", r))
				j.sent(sends[n], "its send")
				n++
			}
		}
		j.conserved()
	}
	has := func(rank int) int64 { return j.nodes[0].links[rank].granted }
	if has(1) != first {
		t.Fatalf("a sender begins with %d, want %d", has(1), first)
	}
	flood("one", 1)
	flood("one", 1)
	if has(1) != credit/2+first || has(2) != first {
		t.Errorf("the only sender has %d, want the whole reserve: %d", has(1), credit/2+first)
	}
	for range 3 {
		flood("two", 1, 2)
	}
	if share := int64(credit/4 + first); has(1) != share || has(2) != share {
		t.Errorf("of two who send one has %d and the other %d, want %d", has(1), has(2), share)
	}
	for range 6 {
		flood("all", 1, 2, 3, 4)
	}
	for r := 1; r < ranks; r++ {
		if d := has(r) - credit/4; d < -withinOneThird || d > withinOneThird {
			t.Errorf("of four who send, rank %d has %d, want about %d", r, has(r), credit/4)
		}
	}
	j.nodes[0].m.FailLink(j.nodes[0].links[4], ErrTransport)
	if p := &j.nodes[0].m.creditPool; p.busy != 3 || has(4) != first {
		t.Errorf("a rank that is gone keeps %d, and %d want more", has(4), p.busy)
	}
}

// The division of the initial credit.
func TestFirstCredit(t *testing.T) {
	for _, v := range []struct {
		credit         int64
		senders        int
		first, reserve int64
	}{
		{8 << 20, 0, 8 << 20, 0},
		{8 << 20, 1, 4 << 20, 4 << 20},
		{8 << 20, 31, 4 << 20 / 31, 8<<20 - 31*(4<<20/31)},
		{8 << 20, 4096, 1 << 10, 4 << 20},
		{8 << 20, 1_000_000, leastCredit, 4 << 20}, // what the RTS of each would take, and the reserve
		{2000, 2, 500, 1000},
	} {
		p := newCreditPool(&Config{Credit: v.credit, Senders: v.senders})
		if p.first != v.first || p.reserve != v.reserve {
			t.Errorf("%d credit for %d senders: each has %d, reserve %d; want %d and %d", v.credit, v.senders, p.first, p.reserve, v.first, v.reserve)
		}
	}
}

// Many ranks whose initial credit is too little for a message send to one rank. Each gets
// credit after its first RTS, as long as there is a reserve, so that later messages are
// eager, and all of them together never get more than the rank has.
func TestManySendersShareCredit(t *testing.T) {
	const (
		senders, length, rounds = 20, 200, 6
		credit                  = senders * leastCredit
	)
	cfg := Config{EagerLimit: length, Credit: credit, Senders: senders, Rendezvous: "get"}
	j := &job{world: newWorld(senders+1, cfg, testAttr(0), 1<<19), t: t}
	if p := &j.nodes[0].m.creditPool; p.first != leastCredit || p.first >= length+eagerCharge {
		t.Fatalf("a sender begins with %d; this test needs less than a message takes", p.first)
	}
	for round := range rounds {
		var sends []*Xfer
		for r := 1; r <= senders; r++ {
			sends = append(sends, j.send(r, 0, round, length, Standard))
		}
		j.drain()
		if sum := granted(j.nodes[0].links, 0); sum > credit/2+senders*leastCredit {
			t.Fatalf("round %d: rank 0 has granted %d, the reserve and the first credit are %d", round, sum, credit/2+senders*leastCredit)
		}
		for r := 1; r <= senders; r++ {
			x := j.recv(0, r, round, length)
			j.drain()
			j.got(x, r, round, length, "a message")
			j.sent(sends[r-1], "its send")
		}
	}
	eager := uint64(0)
	for r := 1; r <= senders; r++ {
		eager += j.nodes[r].links[0].Stats.ByProtocol[protoEager]
	}
	t.Logf("%d of %d messages were eager", eager, senders*rounds)
	if eager == 0 {
		t.Errorf("no message was eager: senders got no credit")
	}
}
