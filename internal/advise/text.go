package advise

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/internal/trace"
)

// ranksShown is how many ranks of a finding the text names.
const ranksShown = 8

// Text formats findings for a terminal.
func Text(t *trace.Trace, all []Finding) string {
	var b strings.Builder
	_, hosts := t.Hosts()
	fmt.Fprintf(&b, "%d ranks on %d host(s), %v\n", len(t.Ranks), hosts, t.Span())
	if len(all) == 0 {
		fmt.Fprintf(&b, "nothing to change that would save %.0f %% of the time\n", 100*leastGain)
	}
	for i, f := range all {
		fmt.Fprintf(&b, "\n%d  %s, up to %.0f %% of the run time\n", i+1, f.Problem, 100*f.Gain)
		if len(f.Sites) > 0 {
			fmt.Fprintf(&b, "   where   %s\n", strings.Join(f.Sites, "; "))
		}
		if len(f.Ranks) > 0 && len(f.Ranks) < len(t.Ranks) {
			fmt.Fprintf(&b, "   ranks   %s\n", list(f.Ranks))
		}
		fmt.Fprintf(&b, "   seen    %s\n   change  %s\n", f.Evidence, f.Change)
		if p := f.Prediction; p != nil {
			fmt.Fprintf(&b, "   time    %v now, %v predicted (a replay without the change has an error of %.1f %%)\n", brief(p.Now*1e9), brief(p.Then*1e9), 100*p.ReplayError)
			if p.Part < 1 {
				fmt.Fprintf(&b, "           from a replay of the first %.0f %% of the calls\n", 100*p.Part)
			}
		}
	}
	return b.String()
}

func list(ranks []int) string {
	var names []string
	for _, r := range ranks[:min(len(ranks), ranksShown)] {
		names = append(names, strconv.Itoa(r))
	}
	text := strings.Join(names, ", ")
	if more := len(ranks) - ranksShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
