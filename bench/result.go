package bench

// Results and their output.

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"time"
)

// Result is one figure. Plots, comparisons and the programs in bench/peers exchange its
// JSON form, one object per line.
type Result struct {
	Bench  string  `json:"bench"`
	Ranks  int     `json:"ranks"`
	Device string  `json:"device"`
	Size   int     `json:"size"`
	Metric string  `json:"metric"`
	Unit   string  `json:"unit"`
	Value  float64 `json:"value"`
	Min    float64 `json:"min"`
	P50    float64 `json:"p50"`
	P99    float64 `json:"p99,omitempty"` // 0: too few samples
	// Low and High are the quartiles, where the spread matters.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// Connections and Way belong to verbs benchmarks: the number of connections, and the
	// operation that carried the bytes.
	Connections int    `json:"connections,omitempty"`
	Way         string `json:"way,omitempty"`
	// Ratio is communication to computation, where that is varied, or Value to that of the
	// benchmark's own metric.
	Ratio float64 `json:"ratio,omitempty"`
	// Protocol is the selected protocol, device or algorithm.
	Protocol string `json:"protocol,omitempty"`
	// Against is the protocol that this one was compared with; Value is then the change
	// in percent, or the ratio.
	Against string `json:"against,omitempty"`
	// Beside marks a secondary figure, which is not drawn.
	Beside bool `json:"beside,omitempty"`
}

// Printer writes results as text or JSON.
type Printer struct {
	W     io.Writer
	JSON  bool
	B     Benchmark
	begun bool
}

// Print writes one result.
func (p *Printer) Print(r Result) {
	if p.JSON {
		line, _ := json.Marshal(r)
		fmt.Fprintf(p.W, "%s\n", line)
		return
	}
	if !p.begun {
		p.begun = true
		fmt.Fprintf(p.W, "# Muster %s\n", p.B.Title)
		if r.Protocol != "" && p.B.Worlds == nil {
			what := "Protocol"
			if p.B.Collective != "" {
				what = "Algorithm"
			}
			fmt.Fprintf(p.W, "# %s: %s\n", what, r.Protocol)
		}
		if p.B.Sizes != nil {
			fmt.Fprintf(p.W, "%-10s%20s\n", "# Size", p.B.Column)
		} else {
			fmt.Fprintf(p.W, "# %s\n", p.B.Column)
		}
	}
	note := ""
	if r.Metric != p.B.Metric {
		note = "  " + r.Metric
		if r.Unit != p.B.Unit {
			note += " (" + r.Unit + ")"
		}
	}
	if r.High > 0 {
		note = fmt.Sprintf("  %.2f to %.2f", r.Low, r.High) + note
		if r.Ratio > 0 {
			note += fmt.Sprintf("  × %.2f", r.Ratio)
		}
	}
	if p.B.Worlds != nil && r.Protocol != "" {
		note += "  [" + r.Protocol + "]"
	}
	if p.B.Sizes != nil {
		fmt.Fprintf(p.W, "%-10d%20.2f%s\n", r.Size, r.Value, note)
		return
	}
	fmt.Fprintf(p.W, "%20.2f%s\n", r.Value, note)
}

// samples collects the times of batches.
type samples struct {
	perOp []float64 // µs per operation, by batch
	total time.Duration
	ops   int
}

func (s *samples) add(d time.Duration, ops int) {
	s.perOp = append(s.perOp, float64(d.Nanoseconds())/1e3/float64(ops))
	s.total += d
	s.ops += ops
}

// mean returns µs per operation over all batches.
func (s *samples) mean() float64 { return float64(s.total.Nanoseconds()) / 1e3 / float64(s.ops) }

func (s *samples) quantile(q float64) float64 {
	v := append([]float64(nil), s.perOp...)
	sort.Float64s(v)
	return v[min(int(q*float64(len(v))), len(v)-1)]
}

// times makes a result of µs per operation, scaled.
func (s *samples) times(r Result, scale float64) Result {
	r.Value, r.Min, r.P50, r.P99 = s.mean()*scale, s.quantile(0)*scale, s.quantile(.5)*scale, s.quantile(.99)*scale
	return r
}

// rates makes a result of perOp units an operation, per second; min is the
// slowest batch.
func (s *samples) rates(r Result, perOp float64) Result {
	f := func(us float64) float64 { return perOp / us * 1e6 }
	r.Value, r.Min, r.P50, r.P99 = f(s.mean()), f(s.quantile(1)), f(s.quantile(.5)), f(s.quantile(.01))
	return r
}

// batches cuts n operations into at most 50 batches.
func batches(n int) (count, each int) {
	count = min(50, n)
	return count, (n + count - 1) / count
}
