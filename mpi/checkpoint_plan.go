package mpi

// Which rank keeps copies of whose parts, and which parts go where after a failure. All functions
// are pure: every rank computes the same.

import (
	"fmt"
	"slices"
)

// buddies returns for each rank the one that keeps a copy of its part, given the nodes of the
// ranks: the rank with the same index on the next node, so that the ranks of a node share the
// copies of another one; or the next rank, if there is one node. A rank that is alone is its own buddy.
func buddies(nodes []int) []int {
	var order []int            // nodes in the order of their first ranks
	members := map[int][]int{} // ranks of each node
	for r, n := range nodes {
		if members[n] == nil {
			order = append(order, n)
		}
		members[n] = append(members[n], r)
	}
	buddy := make([]int, len(nodes))
	for i, n := range order {
		next := members[order[(i+1)%len(order)]]
		for index, r := range members[n] {
			if len(order) == 1 {
				index++
			}
			buddy[r] = next[index%len(next)]
		}
	}
	return buddy
}

// restorePlan is what the ranks do to restore a checkpoint.
type restorePlan struct {
	key        setKey
	size       int
	moves      []restoreMove // parts that their ranks have kept, then others
	storeAgain bool          // copies are missing, and every rank has one part
}

type restoreMove struct {
	part, from, to, length int
	own                    bool // from has saved it itself
}

// planRestore selects the last checkpoint of which all parts are there, given what each rank
// keeps. The plan is nil if there is none. If all ranks had stored one, that is an error.
func planRestore(holdings [][]holding) (*restorePlan, error) {
	sets := map[setKey]*restorePlan{}
	sources := map[setKey][]restoreMove{} // by part; length -1: nobody has it
	copies := map[setKey][]int{}          // by part: ranks that have it
	stored := map[setKey]bool{}           // all ranks had stored it
	var last *restorePlan
	for rank, own := range holdings {
		for _, h := range own {
			key := setKey{h.Version, h.Ctx}
			if sets[key] == nil {
				sets[key] = &restorePlan{key: key, size: h.Size}
				sources[key], copies[key] = slices.Repeat([]restoreMove{{length: -1}}, h.Size), make([]int, h.Size)
			}
			stored[key] = stored[key] || h.Complete
			for i, p := range h.Ranks {
				copies[key][p]++
				if s := &sources[key][p]; s.length < 0 || h.Own[i] {
					*s = restoreMove{part: p, from: rank, to: rank, length: h.Lengths[i], own: h.Own[i]}
				}
			}
		}
	}
	var lost error
	var newest setKey
	for key, plan := range sets {
		var missing []int
		for p, n := range copies[key] {
			if n == 0 {
				missing = append(missing, p)
			}
		}
		switch {
		case len(missing) == 0 && (last == nil || key.after(last.key)):
			last = plan
		case len(missing) > 0 && stored[key] && (lost == nil || key.after(newest)):
			newest = key
			lost = fmt.Errorf("the parts of ranks %d in checkpoint %d are lost: these ranks and those with the copies have failed", missing, key.version)
		}
	}
	if last == nil {
		return nil, lost
	}
	last.assign(sources[last.key], copies[last.key], len(holdings))
	return last, nil
}

// assign decides which of the ranks gets which part.
func (plan *restorePlan) assign(sources []restoreMove, copies []int, ranks int) {
	same := plan.size == ranks
	for p, m := range sources {
		if same {
			plan.storeAgain = plan.storeAgain || m.from != p || copies[p] < min(2, ranks)
			m.to = p
		}
		plan.moves = append(plan.moves, m)
	}
	slices.SortStableFunc(plan.moves, func(a, b restoreMove) int {
		switch {
		case a.own == b.own:
			return 0
		case a.own:
			return -1
		}
		return 1
	})
}
