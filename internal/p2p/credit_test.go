package p2p

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// Without credit, a short message uses a rendezvous, which needs no memory at the receiver;
// when the receiver has consumed some messages, eager is used again.
func TestCreditExhaustionAndRecovery(t *testing.T) {
	for _, force := range Rendezvous() {
		t.Run(force, func(t *testing.T) {
			j := newJob(t, 2, Config{EagerLimit: 64, Credit: 1000, Rendezvous: force}, 0)
			l := j.nodes[0].links[1]
			const messages = 20
			var sends []*Xfer
			for i := range messages {
				sends = append(sends, j.send(0, 1, i, 40, Standard)) // 168 of credit each
			}
			j.drain()
			if eager := l.Stats.ByProtocol[protoEager]; eager != 5 {
				t.Fatalf("%d messages went eagerly, want the 5 that credit allows", eager)
			}
			if l.Stats.NoCredit != messages-5 || l.credit < 0 {
				t.Fatalf("%d sends became a rendezvous, credit is %d", l.Stats.NoCredit, l.credit)
			}
			held := 0
			for g := j.nodes[1].m.match.arrived.head; g != nil; g = g.nodes[listArrived].next {
				held += len(g.data)
			}
			if held > 1000 {
				t.Fatalf("the receiver holds %d bytes, more than the credit", held)
			}
			for i := range messages {
				r := j.recv(1, 0, i, 40)
				j.drain()
				j.got(r, 0, i, 40, fmt.Sprint("message ", i))
				j.sent(sends[i], fmt.Sprint("send ", i))
			}
			before := l.Stats.ByProtocol[protoEager]
			for i := range messages {
				r := j.recv(1, 0, i, 40)
				s := j.send(0, 1, i, 40, Standard)
				j.drain()
				j.got(r, 0, i, 40, fmt.Sprint("message ", i, " after recovery"))
				j.sent(s, "its send")
			}
			if got := l.Stats.ByProtocol[protoEager] - before; got != messages {
				t.Fatalf("%d of %d messages went eagerly after the receiver had taken all", got, messages)
			}
			j.conserved()
			j.clean()
		})
	}
}

// conserved checks that no credit is lost or created when nothing is pending.
func (j *job) conserved() {
	j.t.Helper()
	for r, n := range j.nodes {
		for p, l := range n.links {
			back := j.nodes[p].links[r]
			if sum := l.credit + back.consumed; sum != back.granted {
				j.t.Fatalf("rank %d has %d of credit with rank %d, and %d is pending: together %d, want %d",
					r, l.credit, p, back.consumed, sum, back.granted)
			}
		}
	}
}

func TestSendNowNeedsCredit(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 64, Credit: 300}, 0)
	n := j.nodes[0]
	buf := n.mem.buffer(40)
	for i := range 3 {
		if got, want := n.m.SendNow(n.links[1], 0, 0, 5, buf), i < 1; got != want {
			t.Fatalf("SendNow number %d says %v, want %v", i, got, want)
		}
		j.settle(0)
	}
	if n.m.SendNow(n.links[1], 0, 0, 5, n.mem.buffer(65)) {
		t.Fatal("SendNow takes a message beyond the eager limit")
	}
	if n.m.SendOne(n.links[1], 0, 0, 5, buf) != nil {
		t.Fatal("SendOne takes a message without credit")
	}
	j = newJob(t, 2, Config{EagerLimit: 64}, 16)
	if m, l := j.nodes[0].m, j.nodes[0].links[1]; m.SendOne(l, 0, 0, 5, make([]byte, 17)) != nil || m.SendOne(l, 0, 0, 5, make([]byte, 16)) == nil {
		t.Fatal("SendOne takes what fits into a segment of 16 bytes, and no more")
	}
}

// A device that can only send has no rendezvous: eager is used beyond limit and credit, and
// nothing blocks.
func TestSendOnlyDevice(t *testing.T) {
	attr := testAttr(4)
	attr.Ops = rdma.Ops(rdma.OpSend)
	j := &job{world: newWorld(2, Config{EagerLimit: 8, Credit: 300, Rendezvous: "get"}, attr, 1<<16), t: t}
	var sends []*Xfer
	for i := range 10 {
		sends = append(sends, j.send(0, 1, i, 100, Standard))
	}
	j.drain()
	for i := range 10 {
		r := j.recv(1, 0, i, 100)
		j.drain()
		j.got(r, 0, i, 100, fmt.Sprint("message ", i))
		j.sent(sends[i], "its send")
	}
	j.conserved()
	j.clean()
}
