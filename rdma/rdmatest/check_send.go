package rdmatest

import (
	"math"
	"slices"

	"github.com/muster-mpi/muster/rdma"
)

// Single messages: sizes, memory ownership and completions.

func sendChecks() []check {
	return []check{
		{name: "send-sizes", on: reliable, run: sendSizes,
			rule: "the receiver sees Head and Body as one contiguous message, whatever their sizes"},
		{name: "send-largest", on: reliable, run: sendLargest,
			rule: "Head plus Body may be Attr.MaxSend bytes long"},
		{name: "send-names-its-sender", on: rdma.RD | rdma.UD, peers: 4, run: sendNamesSender,
			rule: "a completion identifies the remote side by the handle that Resolve returns for it"},
		{name: "send-from-unresolved-peer", on: rdma.RD, peers: 3, queues: queueConfig{unresolved: true}, run: sendFromUnresolved,
			rule: "a message may arrive from a peer that was not resolved yet, and Resolve then returns the handle it arrived with"},
		{name: "resolve-again", on: rdma.RD | rdma.UD, peers: 4, run: resolveAgain,
			rule: "the same address always returns the same handle, and each address a different one"},
		{name: "resolve-invalid", on: rdma.RD | rdma.UD, run: resolveInvalid,
			rule: "Resolve of an invalid address returns an error"},
		{name: "inline-makes-no-completion", on: all, run: inlineIsSilent,
			rule: "a successful inline send generates no completion"},
		{name: "inline-body-is-copied", on: reliable, run: inlineBodyIsCopied,
			rule: "Body of an inline send belongs to the caller again when PostSend returns"},
		{name: "send-completes-once", on: all, run: sendCompletesOnce,
			rule: "a send that is not inline completes once, with its ID, as OpSend"},
		{name: "send-body-is-free-at-completion", on: reliable, run: bodyIsFreeAtCompletion,
			rule: "Body belongs to the device until the completion, and to the caller from then on"},
	}
}

// bodySizes returns the sizes around which devices change their behavior.
func bodySizes(attr *rdma.Attr) []int {
	var sizes []int
	for n := range 140 { // the limits of cells, cache lines and headers lie in this range
		sizes = append(sizes, n)
	}
	for _, edge := range []int{attr.MaxInline, 256, 1 << 10, 4 << 10, attr.SegmentHint, 16 << 10, attr.MaxSend - rdma.HeadMax, attr.MaxSend} {
		for d := -2; d <= 2; d++ {
			if n := edge + d; n >= 0 && n <= 256<<10 {
				sizes = append(sizes, n)
			}
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func sendSizes(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	for _, head := range []int{0, 1, 24, 40, rdma.HeadMax - 1, rdma.HeadMax} {
		for _, body := range bodySizes(a.attr) {
			if head+body > a.attr.MaxSend {
				continue
			}
			ways := []*work{a.send(1, head, body)}
			if body <= a.attr.MaxInline {
				ways = append(ways, a.sendInline(1, head, body))
			}
			b.arrived = b.arrived[:0]
			r.post(a, ways...)
			r.pollUntil("the messages have arrived", func() bool { return len(b.arrived) == len(ways) && a.open == 0 })
			for i, w := range ways {
				if err := differ(b.arrived[i].data, w.text); err != nil {
					r.t.Fatalf("head of %d and body of %d bytes, inline %v: %v", head, body, w.inline, err)
				}
				if w.done && w.status != rdma.StatusOK {
					r.t.Fatalf("head of %d and body of %d bytes, inline %v: send completes with %v", head, body, w.inline, w.status)
				}
			}
		}
	}
}

func sendLargest(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	for _, head := range []int{0, 1, rdma.HeadMax} {
		w := a.send(1, head, a.attr.MaxSend-head)
		b.arrived = nil
		r.post(a, w)
		r.pollUntil("the largest message has arrived", func() bool { return len(b.arrived) == 1 && w.done })
		if err := differ(b.arrived[0].data, w.text); err != nil {
			r.t.Fatalf("message of MaxSend = %d bytes, %d of them head: %v", a.attr.MaxSend, head, err)
		}
	}
}

// sendNamesSender relies on node.take, which rejects unknown handles, and compares the
// contents to verify that the handle is the right one.
func sendNamesSender(r *rig) {
	for _, n := range r.nodes {
		for _, to := range r.nodes {
			if to == n {
				continue
			}
			w := n.send(to.index, 8, 0)
			w.inline = true
			to.arrived = nil
			r.pollUntil("the message has arrived; if it was lost, another", func() bool {
				if len(to.arrived) == 0 {
					r.post(n, w)
				}
				return len(to.arrived) > 0
			})
			r.settle()
			if got := to.arrived[0]; got.from != n.index {
				r.t.Errorf("node %d received a message of node %d with the handle of node %d", to.index, n.index, got.from)
			}
		}
	}
}

func sendFromUnresolved(r *rig) {
	a, b, c := r.nodes[0], r.nodes[1], r.nodes[2]
	var handles []rdma.PeerID
	b.sink = func(_ int, m *rdma.Completion) error {
		handles = append(handles, m.Peer)
		return nil
	}
	for i, n := range []*node{c, a} {
		n.resolve(1)
		r.post(n, n.sendInline(1, 16, 0))
		r.pollUntil("the unresolved peer's message has arrived", func() bool { return len(handles) > i })
	}
	for i, n := range []*node{c, a} {
		b.resolve(n.index)
		if b.peers[n.index] != handles[i] {
			r.t.Errorf("a message of node %d arrived with the handle %d, but Resolve returns %d", n.index, handles[i], b.peers[n.index])
		}
	}
	w := b.send(2, 0, 10)
	r.post(b, w)
	r.pollUntil("the answer to the unresolved peer has arrived", func() bool { return len(c.arrived) == 1 && w.done })
	if err := differ(c.arrived[0].data, w.text); err != nil {
		r.t.Errorf("the answer to the unresolved peer: %v", err)
	}
}

func resolveAgain(r *rig) {
	for _, n := range r.nodes {
		seen := map[rdma.PeerID]int{}
		for _, other := range r.nodes {
			if other == n {
				continue
			}
			addr := other.ports[0].qp.Addr()
			id, err := n.dev.Resolve(addr)
			if err != nil || id != n.peers[other.index] {
				r.t.Errorf("node %d resolved %q as %d at first and as %d, %v later", n.index, addr, n.peers[other.index], id, err)
			}
			if twin, taken := seen[id]; taken {
				r.t.Errorf("node %d has the handle %d for node %d and node %d", n.index, id, twin, other.index)
			}
			seen[id] = other.index
		}
	}
}

func resolveInvalid(r *rig) {
	for _, addr := range []rdma.Addr{"", "nonsense", "::", "-1/-1/-1"} {
		if id, err := r.nodes[0].dev.Resolve(addr); err == nil {
			r.t.Errorf("Resolve(%q) returns the handle %d", addr, id)
		}
	}
}

// inlineIsSilent leaves time for a completion, which node.take would reject.
func inlineIsSilent(r *rig) {
	a := r.nodes[0]
	for i := range 100 {
		r.post(a, a.sendInline(1, i%(rdma.HeadMax+1), i))
	}
	r.settle()
}

func inlineBodyIsCopied(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	var ws []*work
	for _, size := range []int{1, 8, a.attr.MaxInline / 2, a.attr.MaxInline} {
		if size > a.attr.MaxInline {
			continue
		}
		w := a.sendInline(1, 3, size)
		ws = append(ws, w)
		// The receiver does not poll in between, so the device reads whatever it defers
		// after node.offer has overwritten the body.
		if _, err := a.offer([]*work{w}); err != nil {
			r.t.Fatalf("post an inline send of %d bytes to an idle peer: %v", size, err)
		}
	}
	r.pollUntil("the inline messages have arrived", func() bool { return len(b.arrived) == len(ws) })
	for i, w := range ws {
		if err := differ(b.arrived[i].data, w.text); err != nil {
			r.t.Errorf("inline body of %d bytes, overwritten after PostSend: %v", len(w.body), err)
		}
	}
}

func sendCompletesOnce(r *rig) {
	a := r.nodes[0]
	var ws []*work
	for i, id := range []uint64{0, 1, 1 << 31, 1 << 32, 1 << 63, math.MaxUint64} {
		w := a.send(1, i, []int{0, 1, 3000}[i%3])
		w.id = id
		ws = append(ws, w)
	}
	r.post(a, ws...)
	r.pollUntil("each send has completed", func() bool { return a.open == 0 })
	for _, w := range ws {
		if w.status != rdma.StatusOK {
			r.t.Errorf("send with the ID %#x completes with %v", w.id, w.status)
		}
	}
	r.settle() // node.take would reject a second completion
}

func bodyIsFreeAtCompletion(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	for _, size := range []int{1, 100, 3000, min(a.attr.MaxSend, 64<<10)} {
		w := a.send(1, 0, size)
		b.arrived = nil
		r.post(a, w)
		// If the send completes before the receiver polls, node.take has overwritten the
		// body by the time the receiver gets the message.
		for range 100 {
			r.step(a)
		}
		r.pollUntil("the message has arrived", func() bool { return len(b.arrived) == 1 && w.done })
		if err := differ(b.arrived[0].data, w.text); err != nil {
			r.t.Errorf("body of %d bytes, overwritten after its completion: %v", size, err)
		}
	}
}
