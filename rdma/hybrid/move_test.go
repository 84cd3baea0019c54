package hybrid

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Exhaustive exploration of two ends: every order in which messages, notices and events of
// the devices can happen, with messages in both directions. A world is a value; choices
// lists what can happen in it, and each is tried on a copy.

// The contents of a direction of a path: messages by number, and fences.
const fenceMark = 0xFF

// side is one end with its devices.
type side struct {
	end
	next      byte          // next message to send
	got       []byte        // messages received by the user
	notices   []step        // in flight to the other side
	wire      [paths][]byte // in flight to the other side
	queue     [paths][]byte // delivered to this side, not received by the user
	answers   uint8         // fences of this side that were answered
	failures  uint8         // and those that failed
	open      bool          // it has a queue pair
	dialled   bool          // it is being connected
	up        bool          // it is connected
	collects  bool
	ends      bool   // its device has seen the end of the connection
	kept      []byte // all messages ever sent over connections that are kept
	wants     uint8  // connections that the policy may still request
	departs   uint8
	misfires  uint8
	connEpoch uint32
}

type world struct {
	sides   [2]side
	breaks  uint8 // that may still happen
	cut     bool  // the connection was cut
	trouble string
	trail   []string
}

func (w *world) clone() *world {
	c := *w
	c.trail = slices.Clone(w.trail)
	for i := range c.sides {
		s := &c.sides[i]
		s.got, s.notices, s.steps, s.kept = slices.Clone(s.got), slices.Clone(s.notices), nil, slices.Clone(s.kept)
		for p := range paths {
			s.wire[p], s.queue[p] = slices.Clone(s.wire[p]), slices.Clone(s.queue[p])
		}
	}
	return &c
}

// key returns a string that identifies the state of a world.
func (w *world) key() string {
	b := make([]byte, 0, 256)
	list := func(l []byte) { b = append(append(b, byte(len(l))), l...) }
	flag := func(all ...bool) {
		for _, one := range all {
			b = append(b, 0)
			if one {
				b[len(b)-1] = 1
			}
		}
	}
	for i := range w.sides {
		s := &w.sides[i]
		b = append(b, byte(s.phase), byte(s.epoch), byte(s.path), byte(s.count), byte(s.end.got), byte(s.connEpoch),
			s.next, s.failures, s.answers, byte(s.fences), s.wants, s.departs, s.misfires)
		flag(s.moving, s.pending, s.isReady, s.lost, s.isBroken, s.open, s.dialled, s.up, s.collects, s.ends)
		list(s.kept)
		for p := range paths {
			b = append(b, byte(s.sent[p]), byte(s.shown[p]))
			list(s.wire[p])
			list(s.queue[p])
		}
		list(s.got)
		b = append(b, byte(len(s.notices)))
		for _, st := range s.notices {
			b = append(b, byte(st.kind), byte(st.epoch), byte(st.count))
		}
	}
	b = append(b, w.breaks)
	flag(w.cut)
	return string(b)
}

// run executes the steps of a side.
func (w *world) run(i int) {
	s, o := &w.sides[i], &w.sides[1-i]
	for len(s.steps) > 0 {
		st := s.steps[0]
		s.steps = s.steps[1:]
		switch st.do {
		case sendNotice:
			s.notices = append(s.notices, st)
		case open:
			if s.open {
				w.trouble = "a second queue pair is opened"
			}
			s.open, s.dialled, s.up, s.ends, s.connEpoch = true, false, false, false, s.epoch
			s.queue[byConnection], s.wire[byConnection] = nil, nil
		case connect:
			s.dialled = true
		case shut:
			if s.up && !w.cut && len(s.wire[byConnection])+len(o.wire[byConnection])+len(s.queue[byConnection]) > 0 && s.connEpoch == o.connEpoch {
				w.trouble = "a connection is closed, not broken, with data on it"
			}
			if s.up && o.up && s.connEpoch == o.connEpoch {
				w.sever()
				o.ends = true
			}
			s.open, s.dialled, s.up = false, false, false
		case read:
			s.wire[byDatagram] = append(s.wire[byDatagram], fenceMark)
		case collect:
			s.collects = true
			w.sever()
		case replay:
			for _, m := range s.kept[st.count:] {
				s.sent[byDatagram]++
				s.wire[byDatagram] = append(s.wire[byDatagram], m)
			}
			s.kept = s.kept[:st.count]
			s.endReplay()
		}
	}
	s.steps = nil
}

// sever cuts the connection: the data in flight on it is lost.
func (w *world) sever() {
	for i := range w.sides {
		w.sides[i].wire[byConnection] = nil
	}
	w.cut = true
}

type choice struct {
	name     string
	optional bool // nothing waits for it
	apply    func(w *world)
}

func (w *world) choices(messages byte) (list []choice) {
	for i := range w.sides {
		s, o := &w.sides[i], &w.sides[1-i]
		add := func(name string, optional bool, apply func(w *world, s, o *side)) {
			list = append(list, choice{fmt.Sprintf("%d %s", i, name), optional, func(w *world) {
				apply(w, &w.sides[i], &w.sides[1-i])
				w.run(i)
			}})
		}
		if s.next < messages && !s.blocked() && s.phase != failed {
			add("sends", false, func(w *world, s, o *side) {
				p := s.path
				s.sent[p]++
				if p == byConnection {
					s.kept = append(s.kept, s.next)
				}
				if p == byConnection && w.cut {
					s.failures++ // accepted, and not delivered
				} else {
					s.wire[p] = append(s.wire[p], s.next)
				}
				s.next++
			})
		}
		for p := range paths {
			if len(o.wire[p]) > 0 {
				add(fmt.Sprintf("is delivered by %d", p), false, func(w *world, s, o *side) {
					m := o.wire[p][0]
					o.wire[p] = o.wire[p][1:]
					if m == fenceMark {
						o.answers++
					} else {
						s.queue[p] = append(s.queue[p], m)
					}
				})
			}
			if len(s.queue[p]) > 0 {
				add(fmt.Sprintf("shows by %d", p), false, func(w *world, s, o *side) {
					m := s.queue[p][0]
					s.queue[p] = s.queue[p][1:]
					if int(m) != len(s.got) {
						w.trouble = fmt.Sprintf("message %d is shown after %v", m, s.got)
					}
					s.got = append(s.got, m)
					s.shown[p]++
					s.reportSeen()
				})
			}
		}
		if s.answers > 0 {
			add("has a fence", false, func(w *world, s, o *side) {
				s.answers--
				s.endFence(true)
			})
		}
		if s.failures > 0 {
			add("notices the break", false, func(w *world, s, o *side) {
				s.failures--
				s.handleDisconnect()
			})
		}
		if s.ends && s.up {
			add("sees the end", false, func(w *world, s, o *side) {
				s.ends = false
				s.handleDisconnect()
			})
		}
		if len(o.notices) > 0 {
			add("receives "+fmt.Sprint(o.notices[0].kind), false, func(w *world, s, o *side) {
				st := o.notices[0]
				o.notices = o.notices[1:]
				s.handleNotice(st.kind, st.epoch, st.count, true)
			})
		}
		if s.dialled && !s.up && o.open && o.dialled && s.epoch == o.epoch && s.phase == connecting {
			add("connects", false, func(w *world, s, o *side) {
				s.up = true
				w.cut = false
				s.handleConnect(true)
			})
		}
		if s.dialled && !s.up && s.phase == connecting {
			// It fails because of the other side, which is no choice, or without a reason.
			can := !o.open || o.epoch != s.epoch
			if can || s.misfires > 0 {
				add("fails to connect", !can, func(w *world, s, o *side) {
					if !can {
						s.misfires--
					}
					s.handleConnect(false)
				})
			}
		}
		if s.collects && len(s.queue[byConnection]) == 0 {
			add("has collected", false, func(w *world, s, o *side) {
				s.collects = false
				s.endCollect(0)
			})
		}
		if s.wants > 0 && s.phase == noConnection {
			add("wants", true, func(w *world, s, o *side) { s.wants--; s.want() })
		}
		if s.departs > 0 && s.phase == joined {
			add("leaves", true, func(w *world, s, o *side) { s.departs--; s.leave() })
		}
	}
	if a, b := &w.sides[0], &w.sides[1]; w.breaks > 0 && !w.cut && a.up && b.up {
		list = append(list, choice{"the connection breaks", true, func(w *world) {
			w.breaks--
			w.sever()
			// A reset may reach one end only, which then notifies the other.
			w.sides[0].failures++
		}}, choice{"the connection breaks for both", true, func(w *world) {
			w.breaks--
			w.sever()
			w.sides[0].failures++
			w.sides[1].failures++
		}})
	}
	return list
}

// explore tries all choices from a world on, and returns the number of different worlds.
func explore(t *testing.T, start *world, messages byte) (worlds, moves int) {
	known := map[string]bool{}
	stack := []*world{start}
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if k := w.key(); known[k] {
			continue
		} else {
			known[k] = true
		}
		worlds++
		waits := true
		for _, c := range w.choices(messages) {
			if !c.optional {
				waits = false
			}
			n := w.clone()
			n.trail = append(n.trail, c.name)
			c.apply(n)
			if n.trouble != "" {
				t.Fatalf("%s, after:\n\t%s", n.trouble, strings.Join(n.trail, "\n\t"))
			}
			stack = append(stack, n)
		}
		if !waits {
			continue
		}
		moves += int(w.sides[0].epoch)
		for i := range w.sides {
			s, o := &w.sides[i], &w.sides[1-i]
			switch {
			case s.phase == failed || o.phase == failed:
				t.Fatalf("end %d marks its peer as failed although nothing is lost, after:\n\t%s", i, strings.Join(w.trail, "\n\t"))
			case len(s.got) != int(messages):
				t.Fatalf("end %d has received %v and nothing more can happen: %+v, after:\n\t%s", i, s.got, w.sides, strings.Join(w.trail, "\n\t"))
			case s.phase != noConnection && s.phase != joined:
				t.Fatalf("end %d stays in phase %d, after:\n\t%s", i, s.phase, strings.Join(w.trail, "\n\t"))
			}
		}
	}
	return worlds, moves
}

// TestMoveEveryOrder explores moves with three messages in each direction.
func TestMoveEveryOrder(t *testing.T) {
	for _, v := range []struct {
		name     string
		messages byte
		wants    [2]uint8
		departs  [2]uint8
		misfires uint8
		breaks   uint8
		long     bool
	}{
		{name: "up", messages: 3, wants: [2]uint8{1, 0}},
		{name: "both offer", messages: 1, wants: [2]uint8{1, 1}},
		{name: "up and down", messages: 2, wants: [2]uint8{1, 0}, departs: [2]uint8{1, 0}},
		{name: "up and down by both", messages: 1, wants: [2]uint8{1, 0}, departs: [2]uint8{1, 1}},
		{name: "up, down and up", messages: 1, wants: [2]uint8{2, 0}, departs: [2]uint8{0, 1}},
		{name: "connecting fails", messages: 1, wants: [2]uint8{1, 1}, misfires: 1},
		{name: "broken", messages: 2, wants: [2]uint8{1, 0}, breaks: 1},
		{name: "broken while leaving", messages: 1, wants: [2]uint8{1, 0}, departs: [2]uint8{1, 0}, breaks: 1},
		{name: "broken and up again", messages: 1, wants: [2]uint8{1, 1}, breaks: 1},
		{name: "up and down, longer", messages: 3, wants: [2]uint8{1, 0}, departs: [2]uint8{0, 1}, long: true},
	} {
		t.Run(v.name, func(t *testing.T) {
			if v.long && testing.Short() {
				t.Skip("it explores the same in more worlds")
			}
			w := &world{breaks: v.breaks}
			for i := range w.sides {
				w.sides[i].first = i == 0
				w.sides[i].wants, w.sides[i].departs, w.sides[i].misfires = v.wants[i], v.departs[i], v.misfires
			}
			worlds, moves := explore(t, w, v.messages)
			t.Logf("%d worlds", worlds)
			if moves == 0 {
				t.Error("no connection was ever made")
			}
		})
	}
}

// TestUnreachable checks that a peer that notices do not reach has failed if messages
// depend on it.
func TestUnreachable(t *testing.T) {
	for _, v := range []struct {
		name string
		end  end
		want phase
	}{
		{"nothing in progress", end{}, noConnection},
		{"an offer", end{phase: offering}, noConnection},
		{"before the move", end{phase: awaiting}, noConnection},
		{"in the move", end{phase: joined, moving: true}, failed},
		{"on the connection", end{phase: joined, path: byConnection}, failed},
		{"broken", end{phase: broken, path: byConnection}, failed},
		{"broken, on datagrams", end{phase: broken}, noConnection},
		{"messages are sent again", end{phase: replaying, path: byConnection}, failed},
		{"failed", end{phase: failed}, failed},
	} {
		e := v.end
		if e.unreachable(); e.phase != v.want {
			t.Errorf("%s: the phase is %d, want %d", v.name, e.phase, v.want)
		}
		if shuts := slices.Contains(e.steps, step{do: shut}); shuts != (v.end.phase != noConnection && v.end.phase != failed) {
			t.Errorf("%s: steps %v", v.name, e.steps)
		}
	}
}
