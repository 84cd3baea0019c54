package trace

// How the time of each rank is spent, over the time of the job.

// RankTime divides the time of a rank, in ns: Calls contains Waits.
type RankTime struct {
	Rank                  int
	Calls, Waits, Outside int64
}

// RankTimes returns the times of all ranks.
func (a *Analysis) RankTimes(t *Trace) []RankTime {
	times := make([]RankTime, len(t.Ranks))
	for r, rank := range t.Ranks {
		times[r].Rank = rank.Rank
		for i := range rank.Events {
			times[r].Calls += rank.Events[i].End - rank.Events[i].Begin
		}
		times[r].Outside = max(0, a.End-a.Begin-times[r].Calls)
	}
	for _, w := range a.Waits {
		times[w.In.Rank].Waits += w.To - w.From
	}
	return times
}

// WaitShares divides the time of the trace into equal parts, and returns for each rank the share
// of each part in which it waited for another.
func (a *Analysis) WaitShares(t *Trace, parts int) [][]float64 {
	shares := make([][]float64, len(t.Ranks))
	for r := range shares {
		shares[r] = make([]float64, parts)
	}
	width := float64(max(a.End-a.Begin, 1)) / float64(parts)
	for _, w := range a.Waits {
		from, to := float64(w.From-a.Begin)/width, float64(w.To-a.Begin)/width
		for i := max(0, int(from)); i < parts && float64(i) < to; i++ {
			over := min(to, float64(i+1)) - max(from, float64(i))
			shares[w.In.Rank][i] = min(1, shares[w.In.Rank][i]+max(0, over))
		}
	}
	return shares
}
