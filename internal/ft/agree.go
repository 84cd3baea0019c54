package ft

import "slices"

// Value is what ranks agree on: the bitwise and of their flags, the maximum of their
// numbers, and the failed ranks. The value covers every rank that is not in Failed; it
// may also cover ranks that died after they had contributed. Slots is a flag of its own,
// with which the caller finds memory for further agreements (shared.go).
type Value struct {
	Flag   uint64
	Number uint64
	Failed Set
	Slots  uint8
}

// combine combines two contributions.
func (v Value) combine(w Value) Value {
	return Value{v.Flag & w.Flag, max(v.Number, w.Number), v.Failed.Union(w.Failed), v.Slots & w.Slots}
}

// Kind is the kind of a message.
type Kind uint8

// The kinds of messages.
const (
	Report Kind = 1 + iota
	Propose
	Accept
	Decide
)

// Message is a message of an agreement.
type Message struct {
	Kind      Kind
	Agreement uint32 // its number in the communicator
	Ballot    int32  // the root
	Value     Value  // contribution, proposal or decision; of an accept, only Failed
	Held      int32  // of a report: the highest ballot of a proposal held, or -1
	HeldValue Value
}

// Sent is a message and its destination.
type Sent struct {
	To int32
	Message
}

// Group is the state of one rank of a communicator.
type Group struct {
	// Out has the messages to send, in order. The caller removes them.
	Out []Sent

	me, n, arity int32
	failed       Set
	root, parent int32
	children     []int32
	latest       uint32       // number of the agreement that this rank has entered last
	running      []*agreement // in the order of numbers
}

// agreement is the state of one agreement.
type agreement struct {
	number   uint32
	entered  bool
	decided  bool
	reported bool // to the present parent, in the present ballot
	accepted bool // likewise
	ballot   int32
	parent   int32
	mine     Value
	held     int32 // ballot of the proposal held, or -1
	value    Value // the proposal held, or the decision
	reports  []Sent
	accepts  []int32
}

// Arity is the arity of the tree that programs use: a tree of three levels serves 21 ranks
// and one of six 1365. A higher arity makes the root the bottleneck.
const Arity = 4

// NewGroup returns the state of rank me of n ranks.
func NewGroup(me, n, arity int) *Group {
	g := &Group{me: int32(me), n: int32(n), arity: int32(arity)}
	g.rebuild()
	return g
}

// rebuild computes the tree.
func (g *Group) rebuild() {
	g.root, g.parent = root(g.failed), parentOf(g.me, g.arity, g.failed)
	g.children = childrenOf(g.me, g.n, g.arity, g.failed, nil)
}

// Enter starts the next agreement of this rank with its contribution, and returns its
// number. The previous one must have been decided.
func (g *Group) Enter(flag, number uint64, slots uint8) uint32 {
	g.latest++
	a := g.find(g.latest)
	a.entered, a.mine = true, Value{Flag: flag, Number: number, Slots: slots}
	// Every rank alive has decided the agreement before the one that this rank has decided
	// last: it has contributed to that.
	g.running = slices.DeleteFunc(g.running, func(b *agreement) bool { return b.number+1 < g.latest })
	g.step(a)
	return g.latest
}

// Decision returns the value of an agreement, if it is decided.
func (g *Group) Decision(number uint32) (Value, bool) {
	for _, a := range g.running {
		if a.number == number && a.decided {
			return a.value, true
		}
	}
	return Value{}, false
}

// Fail reports a failed rank.
func (g *Group) Fail(rank int) { g.know(g.failed.Add(int32(rank))) }

// Receive handles a message from a rank.
func (g *Group) Receive(from int, m Message) {
	if m.Agreement+1 < g.latest || m.Agreement > g.latest+1 {
		return // everyone has decided it; or not a message of a rank that obeys the rules
	}
	known := g.failed.Union(m.Value.Failed)
	for r := range m.Ballot { // the sender's root is the lowest rank alive
		known = known.Add(r)
	}
	if m.Ballot < g.n && !known.Has(g.me) {
		g.know(known)
	}
	a := g.find(m.Agreement)
	switch {
	case m.Kind == Decide:
		if !a.decided {
			a.value = m.Value
			g.decide(a, int32(from))
		}
	case a.decided:
		if m.Kind != Propose {
			g.send(int32(from), Message{Kind: Decide, Agreement: a.number, Ballot: g.root, Value: a.value, Held: -1})
		}
	case m.Ballot != g.root: // the sender does not know yet that its root has died
	case m.Kind == Report:
		a.reports = slices.DeleteFunc(a.reports, func(s Sent) bool { return s.To == int32(from) })
		a.reports = append(a.reports, Sent{int32(from), m})
		if a.held == g.root {
			g.propose(a, int32(from))
		}
		g.step(a)
	case m.Kind == Propose:
		if a.held != g.root {
			g.hold(a, m.Value)
			g.step(a)
		}
	case m.Kind == Accept:
		if !slices.Contains(a.accepts, int32(from)) {
			a.accepts = append(a.accepts, int32(from))
		}
		g.step(a)
	}
}

// find returns an agreement, new if it is not known.
func (g *Group) find(number uint32) *agreement {
	for _, a := range g.running {
		if a.number == number {
			return a
		}
	}
	a := &agreement{number: number, held: -1, ballot: g.root, parent: g.parent}
	g.running = append(g.running, a)
	return a
}

// know adds failures, and repairs the agreements under way.
func (g *Group) know(failed Set) {
	if len(failed) == len(g.failed) {
		return
	}
	g.failed = failed
	g.rebuild()
	for _, a := range g.running {
		moved := a.ballot != g.root || a.parent != g.parent
		if moved && a.decided {
			a.ballot, a.parent = g.root, g.parent
			if g.parent >= 0 { // which may not have the decision, and waits for this rank
				g.send(g.parent, Message{Kind: Decide, Agreement: a.number, Ballot: g.root, Value: a.value, Held: -1})
			}
		}
		if !a.decided {
			g.step(a)
		}
	}
}

// step does what an undecided agreement allows.
func (g *Group) step(a *agreement) {
	if a.ballot != g.root {
		a.reports, a.accepts = nil, nil
	}
	if a.ballot != g.root || a.parent != g.parent {
		a.ballot, a.parent, a.reported, a.accepted = g.root, g.parent, false, false
	}
	if !a.entered || a.decided {
		return
	}
	if a.held != g.root && !a.reported && g.allReported(a) {
		g.report(a)
	}
	if a.held != g.root || a.accepted || !g.allAccepted(a) {
		return
	}
	a.accepted = true
	if g.parent < 0 {
		g.decide(a, g.me)
		return
	}
	g.send(g.parent, Message{Kind: Accept, Agreement: a.number, Ballot: g.root, Value: Value{Failed: g.failed}, Held: -1})
}

func (g *Group) allReported(a *agreement) bool {
	for _, c := range g.children {
		if !slices.ContainsFunc(a.reports, func(s Sent) bool { return s.To == c }) {
			return false
		}
	}
	return true
}

func (g *Group) allAccepted(a *agreement) bool {
	for _, c := range g.children {
		if !slices.Contains(a.accepts, c) {
			return false
		}
	}
	return true
}

// report combines the reports of the subtree, for the parent or as the root's proposal.
func (g *Group) report(a *agreement) {
	a.reported = true
	m := Message{Kind: Report, Agreement: a.number, Ballot: g.root, Value: a.mine, Held: a.held}
	m.Value.Failed = g.failed
	if a.held >= 0 {
		m.HeldValue = a.value
	}
	for _, r := range a.reports {
		m.Value = m.Value.combine(r.Value)
		if r.Held > m.Held {
			m.Held, m.HeldValue = r.Held, r.HeldValue
		}
	}
	switch {
	case g.parent >= 0:
		g.send(g.parent, m)
	case m.Held >= 0:
		g.hold(a, m.HeldValue) // it may have been decided
	default:
		g.hold(a, m.Value)
	}
}

// hold stores the proposal of the present ballot and passes it on.
func (g *Group) hold(a *agreement, v Value) {
	a.held, a.value = g.root, v
	for _, c := range g.children {
		g.propose(a, c)
	}
}

func (g *Group) propose(a *agreement, to int32) {
	g.send(to, Message{Kind: Propose, Agreement: a.number, Ballot: g.root, Value: a.value, Held: -1})
}

// decide ends an agreement. The decision may come from below, if the parent died after it
// had sent it to another rank, so it also goes up.
func (g *Group) decide(a *agreement, from int32) {
	a.decided, a.ballot, a.parent, a.reports, a.accepts = true, g.root, g.parent, nil, nil
	m := Message{Kind: Decide, Agreement: a.number, Ballot: g.root, Value: a.value, Held: -1}
	for _, c := range g.children {
		if c != from {
			g.send(c, m)
		}
	}
	if g.parent >= 0 && g.parent != from {
		g.send(g.parent, m)
	}
}

func (g *Group) send(to int32, m Message) { g.Out = append(g.Out, Sent{to, m}) }
