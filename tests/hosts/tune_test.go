//go:build ofi && cgo && linux

package hosts

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// muster tune on two hosts writes a table that jobs of the same shape use, and others ignore.
func TestTuneOnTwoHosts(t *testing.T) {
	b := build(t)
	l := lab.New(t, lab.Config{Hosts: 2, Rails: 2})
	table := filepath.Join(t.TempDir(), "tuning.json")
	muster := func(perHost int, env []string, args ...string) string {
		cmd := b.run(t, l, perHost, nil, append([]string{b.muster}, args...)...)
		cmd.Env = append(append(cmd.Environ(), "MUSTER_NETWORK=iwarp"), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	tune := []string{"tune", "--quick", "--collectives", "barrier,allreduce", "--sizes", "64,8K", "--budget", "2ms", "--out", table}
	out := muster(2, nil, tune...)
	if !strings.Contains(out, "rules for 4 ranks on 2 nodes with 2 rails") {
		t.Errorf("tune does not print what it measured:\n%s", out)
	}
	for _, c := range []struct {
		name    string
		perHost int
		env     []string
		used    bool
	}{
		{"the same shape", 2, nil, true},
		{"another number of ranks", 3, nil, false},
		{"another number of rails", 2, []string{"MUSTER_INTERFACE=eth0"}, false},
	} {
		for _, explain := range [][]string{{"explain", "barrier"}, {"explain", "allreduce", "--size", "64"}, {"explain", "allreduce", "--size", "1M"}} {
			out := muster(c.perHost, append(c.env, "MUSTER_TUNING="+table), explain...)
			if used := strings.Contains(out, "of the tuning table"); used != c.used {
				t.Errorf("%s, %s: the table is used: %v, want %v\n%s", c.name, strings.Join(explain, " "), used, c.used, out)
			}
		}
	}
	// A second run for another shape keeps the rules of the first.
	muster(3, nil, tune...)
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ranks": [4, 4], "nodes": [2, 2], "rails": [2, 2]`, `"ranks": [6, 6], "nodes": [2, 2], "rails": [2, 2]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the table has no rule with %s:\n%s", want, text)
		}
	}
}

var (
	choiceFlag   = flag.Bool("choice", false, "run TestChoiceIsNearBest, which takes many minutes on a quiet machine")
	choiceRounds = flag.Int("choice.rounds", 5, "number of runs of TestChoiceIsNearBest; medians count")
	choiceOps    = flag.String("choice.op", "", "collectives of TestChoiceIsNearBest (default: all)")
	choiceSizes  = flag.String("choice.sizes", "", "sizes of TestChoiceIsNearBest (default: those of muster bench choice)")
)

// The algorithm that the library chooses takes at most 10 % longer than the best one, for
// every collective and size, also if the ranks are no multiple of the hosts.
func TestChoiceIsNearBest(t *testing.T) {
	if !*choiceFlag {
		t.Skip("it takes many minutes: run with -timeout 3h -args -choice")
	}
	const within = 1.1
	b := build(t)
	l := lab.New(t, lab.Config{Hosts: 4, Rails: 2, Rate: "1gbit"})
	for _, counts := range [][]int{{4, 4, 4, 4}, {4, 4, 3, 3}} {
		t.Run(fmt.Sprint(counts), func(t *testing.T) {
			var cells []*choiceCell
			for range *choiceRounds {
				cells = b.choices(t, l, counts, cells)
			}
			for _, c := range cells {
				t.Log(c)
				if m := median(c.ratios); m > within {
					t.Errorf("%s of %d bytes takes %.2f times as long as the best algorithm, want at most %g: %v", c.op, c.size, m, within, c)
				}
			}
		})
	}
}

// choiceCell has the figures of a collective and size, by round.
type choiceCell struct {
	op           string
	size         int
	chosen, best []string
	ratios       []float64
}

func (c *choiceCell) String() string {
	return fmt.Sprintf("%s %d: ratio %.2f (%.2f to %.2f); choice %s; best %s", c.op, c.size, median(c.ratios), slices.Min(c.ratios), slices.Max(c.ratios), names(c.chosen), names(c.best))
}

// names returns each of several names once.
func names(list []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), ", ")
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// choices runs the benchmark once and adds its figures to cells.
func (b binaries) choices(t *testing.T, l *lab.Lab, counts []int, cells []*choiceCell) []*choiceCell {
	t.Helper()
	args := []string{b.muster, "bench", "choice", "--json"}
	if *choiceOps != "" {
		args = append(args, "--op", *choiceOps)
	}
	if *choiceSizes != "" {
		args = append(args, "--sizes", *choiceSizes)
	}
	var slots []string
	for i, h := range l.Hosts() {
		slots = append(slots, h+":"+strconv.Itoa(counts[i]))
	}
	cmd := b.runOn(t, l, 40*time.Minute, slots, nil, args...)
	cmd.Env = append(cmd.Environ(), "MUSTER_NETWORK=iwarp")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		var r struct {
			Metric, Protocol string
			Size             int
			Value            float64
		}
		at := strings.IndexByte(line, '{')
		if at < 0 || json.Unmarshal([]byte(line[at:]), &r) != nil {
			continue
		}
		op, what, _ := strings.Cut(r.Metric, "/")
		i := slices.IndexFunc(cells, func(c *choiceCell) bool { return c.op == op && c.size == r.Size })
		if i < 0 {
			i, cells = len(cells), append(cells, &choiceCell{op: op, size: r.Size})
		}
		switch c := cells[i]; what {
		case "choice-by-best":
			c.ratios = append(c.ratios, r.Value)
		case "choice":
			c.chosen = append(c.chosen, r.Protocol)
		case "best":
			c.best = append(c.best, r.Protocol)
		}
	}
	if len(cells) == 0 {
		t.Fatalf("no figures in\n%s", out)
	}
	return cells
}
