package p2p

// The programs to explore. A grammar gives each rank an alphabet of operations; all sequences
// of them with a given number of messages are programs, unless MPI allows them to deadlock:
// the oracle drops those. Programs that differ only in the names of ranks and tags count as
// one. A program is then dressed with sizes, modes and blocking calls.

// grammar generates the shapes of programs.
type grammar struct {
	ranks, messages int
	alphabet        func(rank int) []progOp
	// most operations of a rank; 0: maxOps
	most int
	// receives in excess of messages, if some are cancelled
	spare int
}

func sendOp(to, tag int) progOp { return progOp{send: true, peer: int8(to), tag: int8(tag)} }
func recvOp(from, tag int) progOp {
	return progOp{peer: int8(from), tag: int8(tag), size: roomFull}
}

// everyone makes every rank send to and receive from every other, with the given tags and
// wildcards. A single rank sends to itself.
func everyone(ranks int, sendTags, recvTags []int, anySource bool) func(int) []progOp {
	return func(rank int) (ops []progOp) {
		sources := []int{}
		for p := range ranks {
			if p == rank && ranks > 1 {
				continue
			}
			sources = append(sources, p)
			for _, tag := range sendTags {
				ops = append(ops, sendOp(p, tag))
			}
		}
		if anySource {
			sources = append(sources, AnySource)
		}
		for _, src := range sources {
			for _, tag := range recvTags {
				ops = append(ops, recvOp(src, tag))
			}
		}
		return ops
	}
}

// fanIn makes all other ranks send to the last one.
func fanIn(ranks int, sendTags []int, patterns [][2]int) func(int) []progOp {
	return func(rank int) (ops []progOp) {
		if rank < ranks-1 {
			for _, tag := range sendTags {
				ops = append(ops, sendOp(ranks-1, tag))
			}
			return ops
		}
		for _, p := range patterns {
			ops = append(ops, recvOp(p[0], p[1]))
		}
		return ops
	}
}

// shapes calls yield for every safe program of the grammar, once for each equivalence class.
func (g grammar) shapes(yield func(p program)) {
	seen := map[uint64]bool{}
	p := make(program, g.ranks)
	most := g.most
	if most == 0 {
		most = maxOps
	}
	var fill func(rank, sends, recvs int)
	fill = func(rank, sends, recvs int) {
		if rank == g.ranks {
			if sends == g.messages && recvs == g.messages+g.spare && (g.spare > 0 || p.balanced()) {
				if key := p.canonical(); !seen[key] {
					seen[key] = true
					if g.spare > 0 || ask(p).safe() {
						yield(p.clone())
					}
				}
			}
			return
		}
		fill(rank+1, sends, recvs) // the rank does no more
		if len(p[rank]) == most {
			return
		}
		for _, op := range g.alphabet(rank) {
			s, r := sends, recvs
			if op.send {
				s++
			} else {
				r++
			}
			if s > g.messages || r > g.messages+g.spare {
				continue
			}
			p[rank] = append(p[rank], op)
			fill(rank, s, r)
			p[rank] = p[rank][:len(p[rank])-1]
		}
	}
	fill(0, 0, 0)
}

// balanced reports whether every rank receives as many messages as are sent to it.
func (p program) balanced() bool {
	var n [maxRanks]int
	for rank, ops := range p {
		for _, op := range ops {
			if op.send {
				n[op.peer]++
			} else {
				n[rank]--
			}
		}
	}
	return n == [maxRanks]int{}
}

func (p program) clone() program {
	out := make(program, len(p))
	for r := range p {
		out[r] = append([]progOp(nil), p[r]...)
	}
	return out
}

var permutations = [][][]int{
	1: {{0}}, 2: {{0, 1}, {1, 0}}, 3: {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}},
}

// canonical returns the same number for programs that differ only in the names of ranks and
// of tags 0 and 1.
func (p program) canonical() uint64 {
	least := ^uint64(0)
	for _, to := range permutations[len(p)] {
		var from [maxRanks]int
		for r, name := range to {
			from[name] = r
		}
		for swap := range int8(2) {
			h := hasher(3)
			for r := range p {
				ops := p[from[r]]
				h.word(uint64(len(ops)))
				for _, op := range ops {
					if op.peer >= 0 {
						op.peer = int8(to[op.peer])
					}
					if op.tag >= 0 {
						op.tag ^= swap
					}
					h.word(op.code())
				}
			}
			least = min(least, uint64(h))
		}
	}
	return least
}

func (o progOp) code() uint64 {
	h := uint64(uint8(o.peer))<<24 | uint64(uint8(o.tag))<<16 | uint64(uint8(o.size))<<8
	for i, b := range []bool{o.send, o.sync, o.block, o.cancel} {
		if b {
			h |= 1 << i
		}
	}
	return h
}

// dress is a way to complete shapes.
type dress struct {
	sizes  func(messages int) [][]int8 // of the messages, in the order of ranks and operations
	sync   [][]bool                    // patterns over the messages, repeated; nil: none synchronous
	blocks []blocking
	rooms  []int8 // of all receives; nil: enough

	cancels []int // which receives are cancelled, a bit for each; nil: none
	// mixed rooms: every receive has one of rooms, in every combination
	mixed bool
}

// blocking selects which operations are blocking calls.
type blocking uint8

const (
	blockNone blocking = iota
	blockAll
	blockSends
	blockRecvs
)

// product returns every assignment of the given sizes.
func product(sizes ...int8) func(int) [][]int8 {
	return func(messages int) [][]int8 {
		out := [][]int8{{}}
		for range messages {
			var longer [][]int8
			for _, head := range out {
				for _, s := range sizes {
					longer = append(longer, append(append([]int8(nil), head...), s))
				}
			}
			out = longer
		}
		return out
	}
}

// patterns repeats each given pattern over the messages.
func patterns(lists ...[]int8) func(int) [][]int8 {
	return func(messages int) [][]int8 {
		var out [][]int8
		for _, l := range lists {
			row := make([]int8, messages)
			for i := range row {
				row[i] = l[i%len(l)]
			}
			out = append(out, row)
		}
		return out
	}
}

// clothe calls yield for every safe dress of a shape, with the outcomes that MPI allows.
func (d dress) clothe(shape program, messages int, yield func(p program, allowed map[outcome]bool)) {
	sync := d.sync
	if sync == nil {
		sync = [][]bool{{false}}
	}
	blocks := d.blocks
	if blocks == nil {
		blocks = []blocking{blockNone}
	}
	rooms := d.rooms
	if rooms == nil {
		rooms = []int8{roomFull}
	}
	cancels := d.cancels
	if cancels == nil {
		cancels = []int{0}
	}
	for _, b := range blocks {
		for _, s := range sync {
			d.wear(shape, messages, b, s, rooms, cancels, yield)
		}
	}
}

// wear is clothe for one choice of blocking calls and modes.
func (d dress) wear(shape program, messages int, b blocking, s []bool, rooms []int8, cancels []int, yield func(p program, allowed map[outcome]bool)) {
	receives := 0
	for _, ops := range shape {
		for _, op := range ops {
			if !op.send {
				receives++
			}
		}
	}
	for _, cancel := range cancels {
		if cancel>>receives != 0 {
			continue
		}
		p := shape.clone()
		n, c := 0, 0
		for r := range p {
			for i := range p[r] {
				op := &p[r][i]
				op.block = b == blockAll || b == blockSends && op.send || b == blockRecvs && !op.send
				if op.send {
					op.sync = s[n%len(s)]
					n++
				} else {
					op.cancel = cancel>>c&1 != 0
					c++
				}
			}
		}
		o := ask(p) // sizes do not affect matching
		if !o.safe() {
			continue
		}
		for _, sizes := range d.sizes(messages) {
			for k := range combinations(len(rooms), receives, d.mixed) {
				n = 0
				q := p.clone()
				for r := range q {
					for i := range q[r] {
						if op := &q[r][i]; op.send {
							op.size = sizes[n]
							n++
						} else {
							op.size = rooms[k%len(rooms)]
							if d.mixed {
								k /= len(rooms)
							}
						}
					}
				}
				yield(q, o.allowed)
			}
		}
	}
}

// combinations returns the number of ways to give each of n receives a room, or all of them
// the same.
func combinations(rooms, n int, mixed bool) int {
	if !mixed {
		return rooms
	}
	all := 1
	for range n {
		all *= rooms
	}
	return all
}

// every returns every pattern of true and false over n messages.
func every(n int) (out [][]bool) {
	for bitset := range 1 << n {
		row := make([]bool, n)
		for i := range row {
			row[i] = bitset>>i&1 != 0
		}
		out = append(out, row)
	}
	return out
}

// hasLong reports whether some message of the program uses a rendezvous.
func (p program) hasLong() bool {
	for _, ops := range p {
		for _, op := range ops {
			if op.send && op.size > sizeSegment {
				return true
			}
		}
	}
	return false
}
