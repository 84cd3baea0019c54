package p2p

// Signatures of messages, notes, and contexts that were given up.

import (
	"errors"
	"testing"
)

// A receive reports whether its message has the expected signature, whichever side was first,
// with every protocol.
func TestSignatures(t *testing.T) {
	eachWay(t, func(t *testing.T, j *job, size int) {
		for _, late := range []bool{false, true} {
			for _, sign := range []uint32{7, 8} {
				recv := func() *Xfer {
					x := j.nodes[1].m.New()
					x.Buf, x.Source, x.Tag, x.Link, x.Sign = j.nodes[1].mem.buffer(size), 0, 5, j.nodes[1].links[0], 7
					return j.start(1, x)
				}
				var r *Xfer
				if !late {
					r = recv()
				}
				j.nodes[0].m.Sign = sign
				s := j.send(0, 1, 5, size, Standard)
				j.nodes[0].m.Sign = 0
				j.drain()
				if late {
					r = recv()
				}
				j.drain()
				j.got(r, 0, 5, size, "a receive with a signature")
				j.sent(s, "its send")
				if r.Differs != (sign != 7) || r.Differs && r.Sign != sign {
					t.Fatalf("signature %d for 7: differs %v, %d", sign, r.Differs, r.Sign)
				}
			}
		}
		j.clean()
	})
}

// In a context that was given up, receives fail, sends complete, and nothing is left; other
// contexts are not affected.
func TestDrop(t *testing.T) {
	broken := errors.New("broken")
	eachWay(t, func(t *testing.T, j *job, size int) {
		m := j.nodes[1].m
		here := j.recv(1, 0, 5, size)
		if here.stage != stagePosted { // its buffer was offered; the test of Cancel covers that
			return
		}
		kept := j.send(0, 1, 6, size, Standard)
		j.drain()
		m.Drop(0, broken)
		j.settle(1)
		later := j.send(0, 1, 7, size, Standard)
		j.drain()
		if !here.Done() || !errors.Is(here.Err, broken) {
			t.Errorf("a receive is in stage %s, error %v", here.Stage(), here.Err)
		}
		j.sent(kept, "a message that was there")
		j.sent(later, "a message that came later")
		if x := j.recv(1, 0, 8, size); !errors.Is(x.Err, broken) {
			t.Errorf("a later receive: %v", x.Err)
		}
		x := m.New()
		x.Ctx, x.Buf, x.Source, x.Link = 2, j.nodes[1].mem.buffer(size), 0, j.nodes[1].links[0]
		if j.start(1, x); x.Done() {
			t.Errorf("a receive in another context: %v", x.Err)
		}
		m.Cancel(x)
		j.drain()
		j.clean()
	})
}

// A note needs no receive, and is truncated to one packet.
func TestNotes(t *testing.T) {
	j := newJob(t, 2, Config{}, 4)
	any := j.recv(1, AnySource, AnyTag, 4)
	j.nodes[0].m.Notify(j.nodes[0].links[1], 3, 0, 9, []byte("abcdef"))
	j.settle(0)
	j.drain()
	notes := j.nodes[1].m.Out.Notes
	if len(notes) != 1 || string(notes[0].Data) != "abcd" || notes[0].Ctx != 3 || notes[0].Tag != 9 || notes[0].Link.Rank != 0 {
		t.Errorf("notes %+v", notes)
	}
	if any.Done() {
		t.Error("a note has met a receive")
	}
	j.nodes[1].m.Cancel(any)
	j.clean()
}
