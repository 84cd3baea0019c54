package p2p

// The outcomes that MPI allows, derived from the rules alone, without packets, protocols or
// hash tables: a sent message arrives some time later, after those that the same rank sent
// to the same destination before; it goes to the first posted receive that accepts it, or
// waits in a list; a receive takes the first message of the list that it accepts (MPI-4.1
// section 3.5). A standard send may complete at once or when it is matched (section 3.4);
// both are tried.

// outcome holds the message of every receive: 4 bits for each operation, 15 for none.
type outcome uint64

func (o outcome) of(rank, i int) int { return int(o >> (4 * message(rank, i)) & 15) }
func (o *outcome) set(rank, i, msg int) {
	shift := 4 * message(rank, i)
	*o = *o&^(15<<shift) | outcome(msg)<<shift
}

const nothing = 15

// oracleState is a state of a run in the oracle.
type oracleState struct {
	pc        [maxRanks]int8
	delivered [maxRanks][maxRanks]int8 // messages, from and to
	list      [maxRanks][8]int8        // waiting messages, in order; 0 terminates
	got       outcome
	ended     uint16 // completed sends
	matched   uint16 // received messages
	cancelled uint16 // receives, by the number that a message of theirs would have
}

type oracle struct {
	p       program
	seen    map[oracleState]bool
	allowed map[outcome]bool
	stuck   bool // some run deadlocks
}

// ask computes the outcomes of a program. It is safe if it never deadlocks.
func ask(p program) *oracle {
	o := &oracle{p: p, seen: map[oracleState]bool{}, allowed: map[outcome]bool{}}
	o.visit(oracleState{got: ^outcome(0)})
	return o
}

func (o *oracle) safe() bool { return !o.stuck }

func (o *oracle) visit(s oracleState) {
	if o.stuck || o.seen[s] {
		return
	}
	o.seen[s] = true
	changed := false
	for r := range o.p {
		for i := range int(s.pc[r]) {
			if o.p[r][i].cancel && s.waits(r, i) {
				changed = true
				later := s
				later.cancelled |= 1 << message(r, i)
				o.visit(later)
			}
		}
		if o.free(&s, r) {
			changed = true
			o.issue(s, r)
		}
		for d := range o.p {
			if msg := o.next(&s, r, d); msg >= 0 {
				changed = true
				o.deliver(s, msg, r, d)
			}
		}
	}
	if changed {
		return
	}
	for r, ops := range o.p {
		if int(s.pc[r]) < len(ops) {
			o.stuck = true
		}
		for i, op := range ops {
			if o.p.cancels() {
				continue // receives and messages may be left over
			}
			if !op.send && s.got.of(r, i) == nothing || op.send && s.matched>>message(r, i)&1 == 0 {
				o.stuck = true
			}
		}
	}
	o.allowed[s.got] = true
}

// waits reports whether a started receive still waits.
func (s *oracleState) waits(r, i int) bool {
	return s.got.of(r, i) == nothing && s.cancelled>>message(r, i)&1 == 0
}

// free reports whether a rank can continue its program.
func (o *oracle) free(s *oracleState, r int) bool {
	pc := int(s.pc[r])
	if pc == len(o.p[r]) {
		return false
	}
	if pc == 0 || !o.p[r][pc-1].block {
		return true
	}
	if o.p[r][pc-1].send {
		return s.ended>>message(r, pc-1)&1 != 0
	}
	return s.got.of(r, pc-1) != nothing
}

// issue performs the next operation of a rank.
func (o *oracle) issue(s oracleState, r int) {
	i := int(s.pc[r])
	op := o.p[r][i]
	s.pc[r]++
	if op.send {
		if !op.sync && op.block { // it may complete at once
			early := s
			early.ended |= 1 << message(r, i)
			o.visit(early)
		}
		o.visit(s)
		return
	}
	for k, m := range s.list[r] {
		if m == 0 {
			break
		}
		if o.p.fits(r, i, int(m-1)) {
			copy(s.list[r][k:], s.list[r][k+1:])
			s.list[r][len(s.list[r])-1] = 0
			o.match(&s, r, i, int(m-1))
			break
		}
	}
	o.visit(s)
}

// next returns the next message from r to d, -1 for none.
func (o *oracle) next(s *oracleState, r, d int) int {
	n := int8(0)
	for i := range int(s.pc[r]) {
		if op := o.p[r][i]; op.send && int(op.peer) == d {
			if n == s.delivered[r][d] {
				return message(r, i)
			}
			n++
		}
	}
	return -1
}

func (o *oracle) deliver(s oracleState, msg, r, d int) {
	s.delivered[r][d]++
	for i := range int(s.pc[d]) {
		if !o.p[d][i].send && s.waits(d, i) && o.p.fits(d, i, msg) {
			o.match(&s, d, i, msg)
			o.visit(s)
			return
		}
	}
	for k := range s.list[d] {
		if s.list[d][k] == 0 {
			s.list[d][k] = int8(msg + 1)
			break
		}
	}
	o.visit(s)
}

func (o *oracle) match(s *oracleState, rank, i, msg int) {
	s.got.set(rank, i, msg)
	s.matched |= 1 << msg
	s.ended |= 1 << msg
}

// overtakes checks an outcome against MPI's wording of the rule: if a receive got a message
// although it accepts an earlier one of the same sender, then that one went to a receive that
// was posted before.
func (p program) overtakes(got outcome) bool {
	for rank, ops := range p {
		for i, op := range ops {
			if op.send {
				continue
			}
			msg := got.of(rank, i)
			if msg == nothing {
				continue // it was cancelled, or is left over
			}
			from := msg / maxOps
			for earlier := message(from, 0); earlier < msg; earlier++ {
				if !p.fits(rank, i, earlier) {
					continue
				}
				fair := false
				for before := range i {
					fair = fair || !ops[before].send && got.of(rank, before) == earlier
				}
				if !fair {
					return true
				}
			}
		}
	}
	return false
}
