package launch

// Time limits for the stages of a start. Functions take the current time as an argument.
//
//	starting agents   until the agent of every host has answered
//	starting ranks    from the moment the agents have the job, so after programs were
//	                  copied, until every process has been started
//	ranks joining     from the first rank that joins until all have joined; commands
//	                  without message passing never join and have no limit
//	fence             from the first rank in the first fence until all have entered

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

type startStage int

const (
	stageAgents startStage = iota
	stageRanks
	stageJoining
	stageFence
	startStages
)

func (s startStage) String() string {
	return [...]string{"starting agents", "starting ranks", "ranks joining", "fence"}[s]
}

// startWatch tracks which hosts and ranks have completed each stage.
type startWatch struct {
	limit time.Duration // of one stage; 0: none
	hosts []Host
	ranks [][]int             // of each host
	done  [startStages][]bool // per host, then per rank
	count [startStages]int
	since [startStages]time.Time
	over  bool // the first fence was passed, or there is nothing to wait for
}

func newStartWatch(cfg *Config, now time.Time) *startWatch {
	w := &startWatch{limit: cfg.Limits.Start, hosts: cfg.Hosts, ranks: cfg.layout.ranks}
	if w.hosts == nil {
		w.hosts = []Host{{Name: hostname()}}
		w.since[stageRanks] = now
	}
	w.over = w.limit <= 0
	w.since[stageAgents] = now
	w.done[stageAgents] = make([]bool, len(cfg.Hosts))
	for s := stageRanks; s < startStages; s++ {
		w.done[s] = make([]bool, cfg.Ranks)
	}
	return w
}

// ticker returns the ticker for checks of the time limit.
func (w *startWatch) ticker() *time.Ticker {
	if w.over {
		t := time.NewTicker(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTicker(min(time.Second, max(10*time.Millisecond, w.limit/10)))
}

func (w *startWatch) markReady(host int, now time.Time) { w.come(stageAgents, host, now) }

// markSent begins the stage in which the agents start the ranks.
func (w *startWatch) markSent(now time.Time) { w.since[stageRanks] = now }

func (w *startWatch) markStarted(rank int, now time.Time) { w.come(stageRanks, rank, now) }
func (w *startWatch) markJoined(rank int, now time.Time)  { w.come(stageJoining, rank, now) }

func (w *startWatch) markFenced(rank int, now time.Time) {
	w.come(stageFence, rank, now)
	if w.complete(stageFence) {
		w.over = true
	}
}

func (w *startWatch) come(s startStage, who int, now time.Time) {
	if w.over || w.done[s][who] {
		return
	}
	w.done[s][who] = true
	w.count[s]++
	if w.since[s].IsZero() {
		w.since[s] = now
	}
}

func (w *startWatch) complete(s startStage) bool { return w.count[s] == len(w.done[s]) }

// stage returns the current stage; false if there is none.
func (w *startWatch) stage() (startStage, bool) {
	for s := range startStages {
		if !w.complete(s) {
			return s, s <= stageRanks || w.count[s] > 0
		}
	}
	return 0, false
}

// late reports what has not come in time. gone reports which ranks have ended, whom
// nobody need wait for.
func (w *startWatch) late(now time.Time, gone func(rank int) bool) (string, bool) {
	s, under := w.stage()
	if w.over || !under || w.since[s].IsZero() || now.Sub(w.since[s]) < w.limit {
		return "", false
	}
	var missing []string
	for i, here := range w.ranks {
		if s == stageAgents {
			if !w.done[s][i] {
				missing = append(missing, w.hosts[i].Name)
			}
			continue
		}
		var ranks []int
		for _, rank := range here {
			if !w.done[s][rank] && !gone(rank) {
				ranks = append(ranks, rank)
			}
		}
		if len(ranks) > 0 {
			missing = append(missing, fmt.Sprintf("%s on %s", ranksNoun(ranks), w.hosts[i].Name))
		}
	}
	if len(missing) == 0 {
		return "", false
	}
	what := "missing: " + shortList(missing)
	if s == stageAgents {
		what = "no answer from " + shortList(missing)
	}
	return fmt.Sprintf("the start has taken longer than %s in the stage %q; %s; to allow more, use --start-timeout", seconds(w.limit), s, what), true
}

func ranksNoun(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	return "ranks " + pmi.Ranks(ranks)
}
