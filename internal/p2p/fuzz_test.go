package p2p

import (
	"bytes"
	"testing"
)

// FuzzArrived feeds arbitrary packets to a machine with pending operations of every kind. It
// must not panic, must not write outside the posted buffers, and must not allocate memory on
// the strength of a header.
func FuzzArrived(f *testing.F) {
	add := func(pkts ...[]byte) {
		var in []byte
		for _, p := range pkts {
			in = append(append(in, byte(len(p))), p...)
		}
		f.Add(in)
	}
	add(eagerPacket(0, 0, 0, 5, 3, []byte("abc")))
	add(eagerPacket(0, 0, 0, 7, 10, []byte("abcd")), eagerPacket(1, 0, 0, 5, maxTotal>>6, []byte("abcd")))
	for kind := range kindCount {
		pkt := make([]byte, headRTS)
		for seq := range uint64(3) {
			put64(pkt, uint64(kind)|seq<<32|1<<16)
			for handle := range uint64(6) {
				put64(pkt[offHandle:], handle)
				put64(pkt[offTotal:], 8*handle)
				add(pkt, pkt)
			}
		}
	}
	// A valid conversation as seed.
	for _, force := range Rendezvous() {
		w := newWorld(2, Config{EagerLimit: 8, Rendezvous: force}, testAttr(4), 1<<12)
		j := &job{world: w}
		j.send(0, 1, 5, 3, Synchronous)
		j.send(0, 1, 6, 8, Standard)
		j.send(0, 1, 7, 20, Standard)
		add(w.wire(0, 1).inFlight...)
	}
	// RTRs that arrive, one that is revoked, and a message written by one of ours.
	w := newWorld(2, Config{EagerLimit: 8}, testAttr(4), 1<<12)
	j := &job{world: w}
	for _, x := range []*Xfer{j.recv(0, 1, 5, 20), j.recv(0, 1, 5, 30), j.recv(0, 1, 6, 30)} {
		w.nodes[0].m.Offer(x)
	}
	w.settle(0)
	w.nodes[0].m.Cancel(w.nodes[0].m.slab[0])
	w.settle(0)
	add(w.wire(0, 1).inFlight...)
	w = newWorld(2, Config{EagerLimit: 8, Speculate: "always"}, testAttr(4), 1<<12)
	j = &job{world: w}
	j.recv(1, 0, 5, 10)
	j.send(0, 1, 5, 10, Standard)
	w.complete(0, 0)
	add(w.wire(0, 1).inFlight...)
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, force := range append(Rendezvous(), "spec") {
			cfg := Config{EagerLimit: 8, Rendezvous: force, Credit: 10_000}
			if force == "spec" {
				cfg.Rendezvous, cfg.Speculate = "", "always"
			}
			w := newWorld(3, cfg, testAttr(4), 1<<10)
			j := &job{world: w, t: t}
			n := w.nodes[1]
			var buffers []region
			note := func(x *Xfer) *Xfer {
				buffers = append(buffers, region{off: n.mem.offset(x.Buf), n: len(x.Buf)})
				return x
			}
			early := note(j.recv(1, 0, 5, 10))
			note(j.recv(1, AnySource, 7, 4))
			note(j.send(1, 0, 5, 3, Synchronous))
			note(j.send(1, 0, 5, 8, Synchronous))
			note(j.send(1, 0, 5, 20, Standard))
			note(j.send(1, 2, 5, 20, Standard))
			for rest := in; len(rest) > 0; {
				size := min(int(rest[0]), len(rest)-1)
				pkt := bytes.Clone(rest[1 : 1+size])
				rest = rest[1+size:]
				if FormatPacket(pkt) == "" {
					t.Fatal("a packet without a form for people")
				}
				n.m.HandlePacket(n.links[0], pkt)
				w.settle(1)
				if len(pkt)&1 != 0 && !early.Done() {
					n.m.Cancel(early)
					w.settle(1)
				}
				for len(n.work) > 0 && w.ready(1, 0) {
					w.complete(1, 0)
				}
			}
			if n.links[0].Err == nil { // a send that may find an RTR
				note(j.send(1, 0, 5, 12, Synchronous))
				for len(n.work) > 0 && w.ready(1, 0) {
					w.complete(1, 0)
				}
			}
			if l := n.links[0]; len(l.offers) > maxOffers || l.offered < 0 {
				t.Fatalf("%d RTRs are here, %d are open", len(l.offers), l.offered)
			}
			if at := n.mem.spoilt(buffers); at >= 0 {
				t.Fatalf("byte %d outside the posted buffers was written", at)
			}
			for g := n.m.match.arrived.head; g != nil; g = g.nodes[listArrived].next {
				if cap(g.data) > max(keepAhead, 4*len(in)) {
					t.Fatalf("%d bytes of packets made the machine take %d", len(in), cap(g.data))
				}
			}
			n.m.Fail(errGone)
			if len(n.mem.regs) != 0 {
				t.Fatalf("%d regions stay registered", len(n.mem.regs))
			}
		}
	})
}

// FuzzCheckPacket checks that valid packets can be read and formatted.
func FuzzCheckPacket(f *testing.F) {
	f.Add(eagerPacket(0, 0, 0, 5, 3, []byte("abc")))
	f.Add(make([]byte, headRTS))
	f.Fuzz(func(t *testing.T, pkt []byte) {
		err, shown := checkPacket(pkt), FormatPacket(pkt)
		if (err != nil) != bytes.HasPrefix([]byte(shown), []byte("bad packet: ")) {
			t.Fatalf("check says %v, but the packet shows as %q", err, shown)
		}
		if err == nil && (len(pkt) < headLen || get64(pkt[offTotal:]) > maxTotal) {
			t.Fatalf("%q passed the check", shown)
		}
	})
}
