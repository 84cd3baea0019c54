package launch

// The assignment of ranks to hosts. All functions are pure.

import (
	"fmt"
	"strings"

	"github.com/muster-mpi/muster/internal/traffic"
)

// MapBy is the order in which ranks are assigned to hosts, and within a host to cores.
type MapBy struct {
	// Node assigns consecutive ranks to different hosts, in turn. Default: a host gets
	// all its ranks before the next one does.
	Node bool
	// Within is the part of a host to which consecutive ranks are assigned in turn.
	// Default: cores, so consecutive ranks are neighbors.
	Within Domain
	// Traffic assigns ranks that talk to each other to the same host, as far as the numbers
	// of ranks permit that hosts get by slot. Default: nil.
	Traffic *traffic.Matrix
}

// Domain is a part of a machine whose cores share caches or memory.
type Domain uint8

const (
	DomainCore Domain = iota
	DomainSocket
	DomainNUMA
)

// ParseMapBy parses the value of the flag --map-by: slot or node for hosts, and core,
// socket or numa within a host, separated by a comma if both are given.
func ParseMapBy(s string) (m MapBy, err error) {
	hosts, within := "", ""
	for word := range strings.SplitSeq(s, ",") {
		kind := &within
		switch word {
		case "slot", "node":
			kind = &hosts
			m.Node = word == "node"
		case "core":
		case "socket":
			m.Within = DomainSocket
		case "numa":
			m.Within = DomainNUMA
		default:
			return MapBy{}, fmt.Errorf("unknown mapping %q: use slot or node for hosts, and core, socket or numa within a host", word)
		}
		if *kind != "" {
			return MapBy{}, fmt.Errorf("%s and %s exclude each other", *kind, word)
		}
		*kind = word
	}
	return m, nil
}

// layout is the assignment of ranks to hosts.
type layout struct {
	ranks [][]int // of each host, in ascending order
	host  []int   // of each rank
}

// assignRanks assigns n ranks to hosts. If n is 0, it uses all slots. It returns the
// hosts that have ranks. If no host has a slot count, n is divided evenly.
func assignRanks(hosts []Host, n int, by MapBy) ([]Host, layout, error) {
	total, haveSlots := 0, false
	for _, h := range hosts {
		total += max(1, h.Slots)
		haveSlots = haveSlots || h.Slots > 0
	}
	if n == 0 {
		n = total
	}
	if n < 1 || n > maxRanks {
		return nil, layout{}, fmt.Errorf("launch: %d ranks: use 1 to %d", n, maxRanks)
	}
	if haveSlots && n > total {
		return nil, layout{}, fmt.Errorf("launch: %d ranks do not fit the %d slots of %s: increase the slot counts, or omit all of them to divide the ranks evenly",
			n, total, hostList(hosts))
	}
	limits := make([]int, len(hosts)) // the most ranks of each host
	for i, h := range hosts {
		limits[i] = max(1, h.Slots)
		if !haveSlots {
			limits[i] = n/len(hosts) + min(1, max(0, n%len(hosts)-i))
		}
	}
	counts, host := fillHosts(limits, n), make([]int, 0, n)
	if by.Node {
		counts, host = dealRanks(limits, n)
	}
	var used []Host
	l := layout{host: host}
	for i, h := range hosts {
		if counts[i] == 0 {
			continue
		}
		if !by.Node {
			for range counts[i] {
				l.host = append(l.host, len(used))
			}
		}
		used = append(used, h)
	}
	if by.Traffic != nil {
		if by.Traffic.Ranks() != n {
			return nil, layout{}, fmt.Errorf("launch: the traffic is that of %d ranks, but the job has %d: use -n %[1]d, or a trace of %d ranks", by.Traffic.Ranks(), n, n)
		}
		l.host = by.Traffic.Assign(l.host)
	}
	l.ranks = make([][]int, len(used))
	for rank, h := range l.host {
		l.ranks[h] = append(l.ranks[h], rank)
	}
	return used, l, nil
}

// fillHosts gives each host as many ranks as it takes, one host after the other.
func fillHosts(limits []int, n int) (counts []int) {
	for _, limit := range limits {
		c := min(limit, n)
		counts = append(counts, c)
		n -= c
	}
	return counts
}

// dealRanks gives one rank to each host in turn. The hosts that get ranks are the first
// ones, so the index of a host does not change when the others are omitted.
func dealRanks(limits []int, n int) (counts, host []int) {
	counts = make([]int, len(limits))
	for len(host) < n {
		for i, limit := range limits {
			if counts[i] < limit && len(host) < n {
				counts[i]++
				host = append(host, i)
			}
		}
	}
	return counts, host
}

// oneHost is the layout of a job on this machine.
func oneHost(n int) layout {
	l := layout{ranks: [][]int{make([]int, n)}, host: make([]int, n)}
	for rank := range n {
		l.ranks[0][rank] = rank
	}
	return l
}
