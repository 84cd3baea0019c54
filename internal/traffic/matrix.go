package traffic

import "slices"

// Matrix is the number of bytes between each two ranks, in either direction.
type Matrix struct {
	with []map[int]int // by rank: the bytes with each other rank
}

// New returns the traffic of ranks that have not sent anything.
func New(ranks int) *Matrix {
	t := &Matrix{with: make([]map[int]int, ranks)}
	for i := range t.with {
		t.with[i] = map[int]int{}
	}
	return t
}

// Ranks returns the number of ranks.
func (t *Matrix) Ranks() int { return len(t.with) }

// Add adds bytes that rank a has sent to rank b. Messages of a rank to itself do not count.
func (t *Matrix) Add(a, b, bytes int) {
	if a != b && bytes > 0 {
		t.with[a][b] += bytes
		t.with[b][a] += bytes
	}
}

// Total returns the bytes of all messages.
func (t *Matrix) Total() (sum int) {
	for _, with := range t.with {
		for _, bytes := range with {
			sum += bytes
		}
	}
	return sum / 2
}

// BytesBetween returns the bytes between ranks of different hosts. host[i] is the host of rank i.
func (t *Matrix) BytesBetween(host []int) (sum int) {
	for i, with := range t.with {
		for k, bytes := range with {
			if host[i] != host[k] {
				sum += bytes
			}
		}
	}
	return sum / 2
}

// Assign returns a placement with at most as many bytes between hosts as the given one. Each
// host keeps its number of ranks.
func (t *Matrix) Assign(host []int) []int {
	best := slices.Clone(host)
	t.refine(best)
	grown := t.grow(host)
	t.refine(grown)
	if t.BytesBetween(grown) < t.BytesBetween(best) {
		best = grown
	}
	return best
}

// countRanks returns the number of ranks of each host.
func countRanks(host []int) []int {
	counts := make([]int, slices.Max(host)+1)
	for _, h := range host {
		counts[h]++
	}
	return counts
}

// grow fills one host after the other: each time with the rank that has most traffic with those
// already there, and begins with the one that has most with ranks without a host.
func (t *Matrix) grow(like []int) []int {
	host := slices.Repeat([]int{-1}, len(like))
	for h, count := range countRanks(like) {
		here := make([]int, len(host)) // by rank: traffic with this host
		for i := range host {
			for k, bytes := range t.with[i] {
				if host[k] < 0 && count > 0 {
					here[i] += bytes
				}
			}
		}
		for placed := range count {
			next := -1
			for i := range host {
				if host[i] < 0 && (next < 0 || here[i] > here[next]) {
					next = i
				}
			}
			if placed == 0 {
				clear(here)
			}
			host[next] = h
			for k, bytes := range t.with[next] {
				here[k] += bytes
			}
		}
	}
	return host
}

// mostPasses bounds refine; few passes change anything after the third.
const mostPasses = 12

// refine exchanges ranks of each two hosts until that does not help.
func (t *Matrix) refine(host []int) {
	hosts := len(countRanks(host))
	changed := slices.Repeat([]bool{true}, hosts)
	for range mostPasses {
		members := make([][]int, hosts)
		linked := map[[2]int]bool{} // pairs of hosts with traffic
		for i, h := range host {
			members[h] = append(members[h], i)
			for k := range t.with[i] {
				linked[[2]int{h, host[k]}] = true
			}
		}
		now, any := make([]bool, hosts), false
		for a := range hosts {
			for b := a + 1; b < hosts; b++ {
				if !linked[[2]int{a, b}] || !changed[a] && !changed[b] {
					continue
				}
				if t.exchange(host, members[a], members[b]) {
					now[a], now[b], any = true, true, true
				}
			}
		}
		if changed = now; !any {
			return
		}
	}
}

// lookAhead is the number of exchanges without a new optimum after which a series ends.
const lookAhead = 16

// exchange makes the series of exchanges between two hosts that saves most: each one the best
// of those that are left, even if it costs, because the next ones may save more.
func (t *Matrix) exchange(host, a, b []int) bool {
	type pair struct{ i, k int } // indices of a and b
	moved := make(map[int]bool, len(a)+len(b))
	gain := func(rank, from, to int) (sum int) { // of moving a rank
		for k, bytes := range t.with[rank] {
			switch host[k] {
			case to:
				sum += bytes
			case from:
				sum -= bytes
			}
		}
		return sum
	}
	ha, hb := host[a[0]], host[b[0]]
	saved, best, length := 0, 0, 0
	var series []pair
	gainA, gainB := make([]int, len(a)), make([]int, len(b))
	for len(series) < min(len(a), len(b)) && len(series)-length < lookAhead {
		for i, rank := range a {
			gainA[i] = gain(rank, ha, hb)
		}
		for k, rank := range b {
			gainB[k] = gain(rank, hb, ha)
		}
		next, most := pair{-1, -1}, 0
		for i := range a {
			if moved[a[i]] {
				continue
			}
			for k := range b {
				bound := gainA[i] + gainB[k] // without what the two send each other
				if moved[b[k]] || next.i >= 0 && bound <= most {
					continue
				}
				if sum := bound - 2*t.with[a[i]][b[k]]; next.i < 0 || sum > most {
					next, most = pair{i, k}, sum
				}
			}
		}
		i, k := next.i, next.k
		moved[a[i]], moved[b[k]] = true, true
		host[a[i]], host[b[k]] = hb, ha
		series = append(series, next)
		if saved += most; saved > best {
			best, length = saved, len(series)
		}
	}
	for _, p := range series[length:] {
		host[a[p.i]], host[b[p.k]] = ha, hb
	}
	for _, p := range series[:length] {
		a[p.i], b[p.k] = b[p.k], a[p.i]
	}
	return length > 0
}
