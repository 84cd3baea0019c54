package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	mostPlaced = 256     // ranks; the search takes the cube of that
	leastMoved = 0.2     // share of the bytes between hosts that must become local
	leastBytes = 1 << 20 // between hosts
)

// placements compares the bytes between hosts with those of a better placement of the ranks: ranks
// of two hosts change places as long as that helps (Kernighan and Lin).
func (j *job) placements() []Finding {
	n := len(j.Trace.Ranks)
	hosts := map[string][]int{}
	host := make([]string, n)
	for i, r := range j.Trace.Ranks {
		host[i] = r.Host
		hosts[r.Host] = append(hosts[r.Host], r.Rank)
	}
	if len(hosts) < 2 || n > mostPlaced {
		return nil
	}
	traffic, inCalls := j.traffic()
	now := bytesBetween(traffic, host)
	placed := improve(traffic, slices.Clone(host))
	then := bytesBetween(traffic, placed)
	if now < leastBytes || float64(now-then) < leastMoved*float64(now) {
		return nil
	}
	groups := map[string][]string{}
	for i, h := range placed {
		groups[h] = append(groups[h], fmt.Sprint(j.Trace.Ranks[i].Rank))
	}
	var together []string
	for _, h := range sortKeys(groups) {
		together = append(together, strings.Join(groups[h], ","))
	}
	slices.SortFunc(together, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	saved := float64(now-then) / float64(now)
	return []Finding{{
		Gain:     saved * inCalls / (j.span * float64(n)),
		Evidence: fmt.Sprintf("messages between hosts have %d MB; with another placement %d MB", now>>20, then>>20),
		Change:   "place these ranks together: " + strings.Join(together, " | "),
	}}
}

// traffic returns the bytes between each two ranks, in either direction, and the time that ranks
// spend in calls that send or receive them.
func (j *job) traffic() (bytes [][]int, inCalls float64) {
	bytes = make([][]int, len(j.Trace.Ranks))
	for i := range bytes {
		bytes[i] = make([]int, len(bytes))
	}
	for _, m := range j.Messages {
		bytes[m.Send.Rank][m.Recv.Rank] += j.event(m.Send).Bytes
		bytes[m.Recv.Rank][m.Send.Rank] += j.event(m.Send).Bytes
	}
	for _, r := range j.Trace.Ranks {
		for i := range r.Events {
			if e := &r.Events[i]; e.Sends || e.From >= 0 || e.Kind == kindWait {
				inCalls += float64(e.End - e.Begin)
			}
		}
	}
	return bytes, inCalls
}

// bytesBetween returns the bytes between ranks of different hosts.
func bytesBetween(traffic [][]int, host []string) (sum int) {
	for i := range traffic {
		for k := range i {
			if host[i] != host[k] {
				sum += traffic[i][k]
			}
		}
	}
	return sum
}

// improve exchanges the places of the two ranks that gain most by it, until none do.
func improve(traffic [][]int, host []string) []string {
	// local returns the bytes between a rank and those of a host, without another rank.
	local := func(i int, h string, without int) (sum int) {
		for k, b := range traffic[i] {
			if host[k] == h && k != without {
				sum += b
			}
		}
		return sum
	}
	for {
		best, a, b := 0, -1, -1
		for i := range host {
			for k := range i {
				if host[i] == host[k] {
					continue
				}
				gain := local(i, host[k], k) + local(k, host[i], i) - local(i, host[i], i) - local(k, host[k], k)
				if gain > best {
					best, a, b = gain, i, k
				}
			}
		}
		if a < 0 {
			return host
		}
		host[a], host[b] = host[b], host[a]
	}
}
