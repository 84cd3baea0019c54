package main

// muster advise --html: the advice as one page, which needs no server and no other file.

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"os"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/advise"
	"github.com/muster-mpi/muster/internal/trace"
	"github.com/muster-mpi/muster/prof"
)

//go:embed pages/advise.html
var adviceTemplate string

// advicePage is what the template shows.
type advicePage struct {
	Command, Head   string
	Findings        []adviceRow
	Timeline, Waits template.HTML
	Matrix          template.HTML
}

type adviceRow struct {
	Number                           int
	Problem, Gain, Now, Then         string
	Sites, Evidence, Change, Replays string
}

func writeAdvicePage(file string, args []string, t *trace.Trace, all []advise.Finding) error {
	a := t.Analyze()
	pairs, ranks := pairsOf(t)
	page := advicePage{Command: strings.Join(args, " "), Head: fmt.Sprintf("%s; recorded: %v", count(len(t.Ranks), "rank"), a.Span),
		Timeline: drawFindings(t, a.Span, all), Waits: drawWaits(t, a), Matrix: drawMatrix(ranks, pairs)}
	for i, f := range all {
		row := adviceRow{Number: i + 1, Problem: f.Problem, Gain: fmt.Sprintf("%.0f %%", 100*f.Gain), Sites: strings.Join(f.Sites, "; "), Evidence: f.Evidence, Change: f.Change}
		if p := f.Prediction; p != nil {
			row.Now, row.Then, row.Replays = seconds(p.Now), seconds(p.Then), fmt.Sprintf("%.1f %%", 100*p.ReplayError)
		}
		page.Findings = append(page.Findings, row)
	}
	tmpl, err := template.New("advice").Parse(adviceTemplate)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := tmpl.Execute(&b, page); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(b.String()), 0o666)
}

// pairsOf returns the bytes that ranks have sent each other in messages of their own.
func pairsOf(t *trace.Trace) (pairs []prof.Pair, ranks int) {
	sums := map[[2]int]*prof.Pair{}
	for _, k := range t.Ranks {
		ranks = max(ranks, k.Rank+1)
		for i := range k.Events {
			e := &k.Events[i]
			if !e.Sends || e.Peer < 0 {
				continue
			}
			at := [2]int{k.Rank, int(e.Peer)}
			if sums[at] == nil {
				sums[at] = &prof.Pair{From: k.Rank, To: int(e.Peer)}
			}
			sums[at].Bytes += uint64(e.Bytes)
			ranks = max(ranks, int(e.Peer)+1)
		}
	}
	for _, p := range sums {
		pairs = append(pairs, *p)
	}
	slices.SortFunc(pairs, func(a, b prof.Pair) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return pairs, ranks
}

// drawFindings draws a row for each finding: when the ranks are at its call site.
func drawFindings(t *trace.Trace, span trace.Span, all []advise.Finding) template.HTML {
	const height = 18.0
	bottom := float64(len(all)) * height
	d := newDrawing(int(bottom)+40, "when ranks are at the call site of each finding")
	width := float64(pageWidth-pageLeft-30) / waitParts
	d.rect(pageLeft, 0, width*waitParts, bottom, `class="empty"`, "")
	for row := range all {
		d.text(pageLeft-6, float64(row)*height+13, "end", fmt.Sprint(row+1))
		for i, share := range all[row].Times(t, waitParts) {
			if share > 0.005 {
				d.rect(pageLeft+float64(i)*width, float64(row)*height, width, height-1, fmt.Sprintf(`fill="#cc79a7" fill-opacity="%.2f"`, 0.15+0.85*min(1, share)),
					fmt.Sprintf("finding %d: %.0f %% of the time of the ranks", row+1, 100*share))
			}
		}
	}
	d.axis(span, bottom)
	return d.html()
}
