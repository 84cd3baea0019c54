package launch

// Ranks that cannot reach each other over the network, although the launcher reaches both,
// in a job that survives failures. Their calls have failed, and an agreement of all ranks
// would never end. So they report it, and the launcher decides which of them has failed:
// the reports of both sides arrive within a while, and the host that the most others cannot
// reach has failed. A rank that counts as failed finds its own failure on its board and
// leaves; otherwise its agent kills it.

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// rankPair are two ranks that cannot reach each other.
type rankPair struct{ a, b int }

// unreached are the reports that are not decided yet.
type unreached struct {
	pairs map[rankPair]bool
	timer *time.Timer
}

// due returns the channel of the decision.
func (u *unreached) due() <-chan time.Time {
	if u.timer == nil {
		return nil
	}
	return u.timer.C
}

func (u *unreached) stop() {
	if u.timer != nil {
		u.timer.Stop()
	}
}

// add notes a report. The first one begins the time until the decision.
func (u *unreached) add(rank, peer int, after time.Duration) {
	if len(u.pairs) == 0 {
		u.stop()
		u.timer = time.NewTimer(after)
	}
	if u.pairs == nil {
		u.pairs = map[rankPair]bool{}
	}
	u.pairs[rankPair{min(rank, peer), max(rank, peer)}] = true
}

// decideAfter is how long the launcher waits for further reports. Both sides of a connection
// time out within a third of the timeout (rdma/hybrid).
func (j *job) decideAfter() time.Duration {
	return pingShare / 3 * max(j.cfg.Remote.pingEvery, time.Millisecond)
}

// decideUnreached excludes ranks until no two ranks are left that cannot reach each other.
func (j *job) decideUnreached() {
	u := &j.unreached
	var pairs []rankPair
	for p := range u.pairs {
		if p.a != p.b && j.takesPart(p.a) && j.takesPart(p.b) {
			pairs = append(pairs, p)
		}
	}
	u.pairs = nil
	for len(pairs) > 0 && j.continues() {
		host, ranks := mostUnreached(pairs, j.cfg.layout.host)
		others := unreachedBy(pairs, ranks)
		elsewhere := !slices.ContainsFunc(others, func(r int) bool { return j.cfg.layout.host[r] == host })
		if elsewhere && (len(ranks) > 1 || !j.isStopped(ranks[0])) {
			ranks = slices.DeleteFunc(slices.Clone(j.cfg.layout.ranks[host]), func(r int) bool { return !j.takesPart(r) })
		}
		j.exclude(ranks, others)
		pairs = slices.DeleteFunc(pairs, func(p rankPair) bool { return slices.Contains(ranks, p.a) || slices.Contains(ranks, p.b) })
	}
}

// isStopped reports whether the process of a rank is stopped, by a signal or a debugger. Such
// a rank is unreachable alone; otherwise the network of its host is down, because messages
// are received also while a program computes.
func (j *job) isStopped(rank int) bool {
	rows, _ := j.backend.rows(false)
	return rank < len(rows) && rows[rank].process.stopped()
}

// takesPart reports whether a rank runs and has not left the job.
func (j *job) takesPart(rank int) bool {
	return j.ranks.all[rank].alive && j.server.Phase(rank) != pmi.PhaseFinalized
}

// exclude counts ranks of one host as failed.
func (j *job) exclude(ranks, others []int) {
	why := fmt.Sprintf("unreachable over the network for %s", ranksNoun(others))
	for _, rank := range ranks {
		j.ranks.remove(rank, ending{err: errors.New(why)})
	}
	text := fmt.Sprintf("%s on %s: %s", ranksNoun(ranks), j.backend.host(ranks[0]), why)
	j.continueWithout(spansOf(ranks...), cause{-1, text}, text, why, 1)
}

// mostUnreached returns the host that cannot reach the most other hosts, and its ranks that
// cannot reach others. Among equal hosts it is the last: the first has rank 0, and often the
// launcher. Of ranks of one host it is the last as well.
func mostUnreached(pairs []rankPair, hostOf []int) (host int, ranks []int) {
	others := map[int]map[int]bool{}
	note := func(a, b int) {
		if others[a] == nil {
			others[a] = map[int]bool{}
		}
		if a != b {
			others[a][b] = true
		}
	}
	for _, p := range pairs {
		note(hostOf[p.a], hostOf[p.b])
		note(hostOf[p.b], hostOf[p.a])
	}
	host = -1
	for h, reach := range others {
		if host < 0 || len(reach) > len(others[host]) || len(reach) == len(others[host]) && h > host {
			host = h
		}
	}
	if len(others[host]) == 0 {
		return host, []int{slices.MaxFunc(pairs, func(p, q rankPair) int { return p.b - q.b }).b}
	}
	for _, p := range pairs {
		for _, r := range []int{p.a, p.b} {
			if hostOf[r] == host && hostOf[p.a] != hostOf[p.b] && !slices.Contains(ranks, r) {
				ranks = append(ranks, r)
			}
		}
	}
	slices.Sort(ranks)
	return host, ranks
}

// unreachedBy returns the ranks that cannot reach some of the given ones.
func unreachedBy(pairs []rankPair, ranks []int) (others []int) {
	for _, p := range pairs {
		for _, r := range [][2]int{{p.a, p.b}, {p.b, p.a}} {
			if slices.Contains(ranks, r[0]) && !slices.Contains(others, r[1]) {
				others = append(others, r[1])
			}
		}
	}
	slices.Sort(others)
	return others
}
