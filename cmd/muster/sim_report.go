package main

// What muster sim prints, draws and writes.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/sim"
)

// simReport collects the results of the algorithms at all sizes.
type simReport struct {
	*simJob
	figures []simFigure
	skipped []string
	asJSON  bool
	width   int // of the longest name of an algorithm
}

type simFigure struct {
	candidate
	size     int
	position int
	result   *sim.Result
	recovery *sim.Recovery // nil: no rank fails
}

// rank sorts the figures of each size and assigns positions.
func (r *simReport) rank() {
	var sorted []simFigure
	for _, size := range r.sizes {
		by := map[string]simFigure{}
		var list []sim.Ranked
		for _, f := range r.figures {
			if f.size == size {
				by[f.String()] = f
				list = append(list, sim.Ranked{Name: f.String(), Micros: f.result.Last})
			}
		}
		for _, one := range sim.Rank(list, r.machine.Error) {
			f := by[one.Name]
			f.position = one.Position
			sorted = append(sorted, f)
		}
	}
	r.figures = sorted
}

// begin prints what precedes the rows.
func (r *simReport) begin(w io.Writer, todo []simulation) {
	if r.asJSON {
		return
	}
	r.width = len("algorithm")
	for _, s := range todo {
		r.width = max(r.width, len(s.candidate.String()))
	}
	fmt.Fprintf(w, "%s among %v; simulated, times in µs from the last arrival\n", r.kind, r.on)
	if r.machine.About != "" {
		fmt.Fprintf(w, "machine: %s\n", r.machine.About)
	}
	fmt.Fprintf(w, "%s\n\n", r.errorLine())
	fmt.Fprintf(w, "%10s  %-*s %10s %10s %10s %13s %9s %13s %14s %9s %7s\n", "bytes", r.width, "algorithm", "first", "mean", "last", "messages near", "far", "of these long", "far bytes", "schedules", "B/rank")
}

// row prints a figure when it is known. Its position is known only after the last one.
func (r *simReport) row(w io.Writer, f simFigure) {
	if r.asJSON {
		return
	}
	x := f.result
	fmt.Fprintf(w, "%10d  %-*v %10.2f %10.2f %10.2f %13d %9d %13d %14d %9d %7.0f\n", f.size, r.width, f.candidate, x.First, x.Mean, x.Last,
		x.Stats.Near, x.Stats.Far, x.Stats.NearLong+x.Stats.FarLong, x.Stats.FarBytes, x.Templates, x.BytesPerRank())
}

// printRest prints what follows the rows.
func (r *simReport) printRest(w io.Writer) {
	r.printPositions(w)
	best := r.figures[len(r.figures)-1]
	for _, f := range r.figures {
		if f.size == best.size && f.result.Last < best.result.Last {
			best = f
		}
	}
	r.printHot(w, best)
	r.printPackets(w)
	r.printRecovery(w)
	for _, s := range r.skipped {
		fmt.Fprintf(w, "not simulated: %s\n", s)
	}
}

// printPositions prints the order of the algorithms at each size, if the error is known.
func (r *simReport) printPositions(w io.Writer) {
	for i, f := range r.figures {
		switch {
		case f.position == 0:
			return
		case i == 0 || f.size != r.figures[i-1].size:
			fmt.Fprintf(w, "\npositions at %d bytes: ", f.size)
		default:
			fmt.Fprint(w, ", ")
		}
		fmt.Fprintf(w, "%d %v", f.position, f.candidate)
	}
	fmt.Fprintln(w)
}

// errorLine states the error of the simulation.
func (r *simReport) errorLine() string { return errorLine(r.machine) }

func errorLine(m *sim.Machine) string {
	if m.Error == 0 {
		return "error of the simulation: unknown, so algorithms are not ranked (muster sim --level validate finds it)"
	}
	return fmt.Sprintf("error of the simulation: %.0f %% (median); algorithms that differ by less have the same position", 100*m.Error)
}

// printHot prints where the fastest algorithm of the last size spends its time.
func (r *simReport) printHot(w io.Writer, f simFigure) {
	fmt.Fprintf(w, "\n%v, %d bytes:\n", f.candidate, f.size)
	printHot(w, f.result, r.path)
}

// printHot prints the busiest rails and hosts, the memory and the critical path of a
// simulation.
func printHot(w io.Writer, x *sim.Result, path bool) {
	for _, l := range x.HotRails {
		fmt.Fprintf(w, "  rail %d of node %d, %s: busy %.2f µs\n", l.Rail, l.Node, l.Direction, l.Busy)
	}
	for _, h := range x.HotHosts {
		fmt.Fprintf(w, "  host %d: %.2f µs of its cores\n", h.Host, h.Busy)
	}
	var parts []string
	for _, m := range x.Memory {
		if m.Bytes > 0 {
			parts = append(parts, fmt.Sprintf("%s %.1f", m.What, float64(m.Bytes)/float64(x.Ranks)))
		}
	}
	fmt.Fprintf(w, "  memory of the simulation, bytes per rank: %s\n", strings.Join(parts, ", "))
	if !path {
		return
	}
	fmt.Fprintln(w, "  critical path:")
	for _, h := range x.Path {
		fmt.Fprintf(w, "    %10.2f µs  rank %d (node %d) %s", h.End, h.Rank, h.Node, h.What)
		if h.Peer >= 0 {
			fmt.Fprintf(w, ", peer %d", h.Peer)
		}
		fmt.Fprintf(w, ", %d bytes\n", h.Bytes)
	}
}

// simLine is a line of --json.
type simLine struct {
	Collective string        `json:"collective"`
	Algorithm  string        `json:"algorithm"`
	Bytes      int           `json:"bytes"`
	Ranks      int           `json:"ranks"`
	Nodes      int           `json:"nodes"`
	Rails      int           `json:"rails"`
	First      float64       `json:"first_us"`
	Mean       float64       `json:"mean_us"`
	Last       float64       `json:"last_us"`
	InCalls    float64       `json:"in_calls_us"`
	Position   int           `json:"position,omitempty"`
	Error      float64       `json:"error,omitempty"`
	Messages   sim.Stats     `json:"messages"`
	Schedules  int           `json:"schedules"`
	PerRank    float64       `json:"bytes_per_rank"`
	Memory     []sim.Memory  `json:"memory"`
	HotRails   []sim.HotRail `json:"hot_rails,omitempty"`
	HotHosts   []sim.HotHost `json:"hot_hosts,omitempty"`
	Path       []sim.Hop     `json:"critical_path,omitempty"`

	Packets  []sim.PacketCount `json:"packets,omitempty"`
	Peaks    *sim.Peaks        `json:"peaks,omitempty"`
	Recovery *sim.Recovery     `json:"recovery,omitempty"`
}

// printRecovery prints what follows the failure of a rank.
func (r *simReport) printRecovery(w io.Writer) {
	if r.failure == nil {
		return
	}
	fmt.Fprintf(w, "\nrank %d fails in the call; µs after that:\n", r.failure.Rank)
	for _, f := range r.figures {
		x := f.recovery
		fmt.Fprintf(w, "  %d bytes, %v: all ranks know at %.2f; new communicator of %d ranks at %.2f, by %d notes; call repeated at %.2f\n", f.size, f.candidate,
			x.Noticed, x.Call.Ranks, x.Shrunk, x.Notes, x.Repeated)
	}
}

func (r *simReport) printJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, f := range r.figures {
		x := f.result
		if err := e.Encode(simLine{r.kind.String(), f.String(), f.size, x.Ranks, x.Nodes, x.Rails, x.First, x.Mean, x.Last, x.InCalls,
			f.position, r.machine.Error, x.Stats, x.Templates, x.BytesPerRank(), x.Memory, x.HotRails, x.HotHosts, x.Path, x.Packets, x.Peaks, f.recovery}); err != nil {
			return err
		}
	}
	return nil
}

// draw draws the time of each algorithm by size.
func (r *simReport) draw(file string) error {
	chart := bench.Chart{Title: fmt.Sprintf("%s among %v, simulated", r.kind, r.on), X: "size", Y: "time (us)", Bytes: true, Times: true}
	for _, f := range r.figures {
		chart.Add(f.String(), float64(max(f.size, 1)), f.result.Last)
	}
	return writeChart(file, chart)
}

// writeTuning writes rules for the sizes at which the error tells an algorithm from the
// others.
func (r *simReport) writeTuning(w io.Writer, file string) error {
	if r.machine.Error == 0 {
		return errors.New("--tuning: the error of the simulation is unknown, so there is no ranking; muster sim --level validate finds it")
	}
	var figures []tuneFigure
	for _, size := range r.sizes {
		var first []simFigure
		for _, f := range r.figures {
			if f.size == size && f.position == 1 {
				first = append(first, f)
			}
		}
		if len(first) != 1 {
			fmt.Fprintf(w, "%s of %d bytes: no rule, %d algorithms are within the error\n", r.kind, size, len(first))
			continue
		}
		figures = append(figures, tuneFigure{first[0].candidate, size, first[0].result.Last})
	}
	if len(figures) == 0 {
		return nil
	}
	table, err := oldTable(file)
	if err != nil {
		return err
	}
	rules := tuneRules(figures, r.on)
	if err := writeTuning(file, table, rules, r.on); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: %d rules for %v, simulated\n", file, len(rules), r.on)
	return nil
}
