package mpiio

// Summary is what a rank tells all others of its access, so that they agree on how to make it.
type Summary struct {
	Pos, N int64 // of the request
	Lo, Hi int64 // its bounds in the file
	Pieces int64 // of the file
	View   int64 // length of the encoded view, 0 if the others have it, or Alone
}

// Alone as the view of a summary means that its rank needs no others (View.IsAlone).
const Alone = -1

// Terms are what the choice depends on besides the requests.
type Terms struct {
	// Always and Never are the wish of the program.
	Always, Never bool
	// LongPiece is the length of a piece from which on ranks access the file themselves.
	LongPiece int64
}

// fewPieces is the number of pieces of a request that a rank accesses itself, however short they are.
const fewPieces = 4

// Together reports whether some ranks access the file for all. They do where pieces are many, short, and
// so close to each other that long accesses of few ranks replace them.
func (t Terms) Together(all []Summary) bool {
	lo, hi, total := Bounds(all)
	worth := t.Always
	for _, s := range all {
		if s.View == Alone {
			return false
		}
		worth = worth || s.Pieces > fewPieces && s.N/s.Pieces < t.LongPiece
	}
	return worth && !t.Never && total > 0 && (t.Always || (hi-lo)/sparse <= total)
}

// Bounds returns the range of the file that all requests are in, and the number of bytes.
func Bounds(all []Summary) (lo, hi, total int64) {
	for _, s := range all {
		if s.N == 0 {
			continue
		}
		if total == 0 {
			lo, hi = s.Lo, s.Hi
		}
		lo, hi, total = min(lo, s.Lo), max(hi, s.Hi), total+s.N
	}
	return lo, hi, total
}

// Domain is the part [Lo, Hi) of a file that a rank accesses for all.
type Domain struct {
	Rank   int
	Lo, Hi int64
}

// shortestDomain is the length below which another rank that helps costs more than it saves.
const shortestDomain = 256 << 10

// Divide divides the range [lo, hi) of a file among aggregators, in parts that begin at multiples of align.
// Short ranges have fewer parts.
func Divide(lo, hi, align int64, aggregators []int) (parts []Domain) {
	n := min(int64(len(aggregators)), 1+(hi-lo)/shortestDomain)
	each := (hi-lo-1)/n + 1
	for i := range n {
		end := hi
		if i < n-1 {
			end = min(hi, (lo+each+align-1)/align*align)
		}
		if end > lo {
			parts = append(parts, Domain{aggregators[i], lo, end})
		}
		if lo = max(lo, end); lo >= hi {
			break
		}
	}
	return parts
}

// Rounds returns the number of windows of the longest domain.
func Rounds(parts []Domain, window int64) (n int64) {
	for _, d := range parts {
		n = max(n, (d.Hi-d.Lo+window-1)/window)
	}
	return n
}

// Window returns the range that a rank accesses in a round; it is empty after its last.
func (d Domain) Window(round, window int64) (lo, hi int64) {
	lo = min(d.Lo+round*window, d.Hi)
	return lo, min(lo+window, d.Hi)
}

// Aggregators returns the ranks that access files for all: at most each of every node, alternating
// between nodes, and at most limit in all.
func Aggregators(nodes []int, each, limit int) (ranks []int) {
	number := make([]int, len(nodes)) // of the rank on its node
	seen := map[int]int{}
	for r, node := range nodes {
		number[r] = seen[node]
		seen[node]++
	}
	for k := range each {
		for r := range nodes {
			if number[r] == k && len(ranks) < limit {
				ranks = append(ranks, r)
			}
		}
	}
	return ranks
}

// FirstOf returns the first rank of a node.
func FirstOf(nodes []int, node int) int {
	for r, n := range nodes {
		if n == node {
			return r
		}
	}
	return 0
}
