package main

// muster sim --level validate: the algorithms of a collective measured by a job, beside
// their simulation on the machine of that job.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/sim"
)

// validateBudget limits the last calls of a measurement at one size; there are
// validateRounds of them.
const (
	validateBudget = 100 * time.Millisecond
	validateRounds = 4
)

// compared is a candidate at a size: measured and simulated, in µs.
type compared struct {
	candidate
	size                int
	measured, simulated float64
}

func (f *simFlags) validate(kind coll.Kind) error {
	if !inJob() {
		return errors.New("--level validate is the program of a job: start it by muster run, for example: muster run --lab -n 16 muster sim")
	}
	if f.machine == "" {
		return errors.New("--level validate needs --machine, a file of muster sim calibrate")
	}
	m, err := readMachine(f.machine)
	if err != nil {
		return err
	}
	sizes, err := parseSizes(f.sizes)
	if err != nil {
		return err
	}
	mpi.Main(func(c *mpi.Comm) error { return f.validateRank(c, kind, m, sizes) })
	return nil
}

// validateRank measures as one rank; rank 0 simulates and prints.
func (f *simFlags) validateRank(c *mpi.Comm, kind coll.Kind, m *sim.Machine, sizes []int) error {
	on, err := shapeOfJob(c)
	if err != nil {
		return err
	}
	node, err := nodesOfRanks(c)
	if err != nil {
		return err
	}
	barrier, err := inspect.ExplainCollective(c, coll.Barrier.String(), 0, 0)
	if err != nil {
		return err
	}
	j := &simJob{kind: kind, machine: m, ranks: c.Size(), nodes: coll.NewTopology(node, on.rails), on: on}
	m.Rails = on.rails
	var list []compared
	for range validateRounds {
		err := contests(c, kind, sizes, on.layout, true, validateBudget, func(size int, entries []bench.Entry) {
			for _, e := range entries[1:] {
				if found, err := simCandidates(kind, []string{e.Algorithm}); err == nil && len(e.Times) > 0 {
					list = addMeasured(list, compared{found[0], size, slices.Min(e.Times), 0})
				}
			}
		})
		if err != nil {
			return err
		}
	}
	if c.Rank() != 0 {
		return nil
	}
	for i := range list {
		if err := j.compare(&list[i], barrier.CollectiveChoice); err != nil {
			return err
		}
	}
	relative, err := printCompared(os.Stdout, j, list)
	if err != nil {
		return err
	}
	m.Error = relative
	return os.WriteFile(f.machine, m.Marshal(), 0o644)
}

// addMeasured adds a measurement; of several of a candidate the shortest counts, because
// what disturbs a machine adds to its times.
func addMeasured(list []compared, one compared) []compared {
	for i := range list {
		if c := &list[i]; c.size == one.size && c.same(one.candidate) {
			c.measured = min(c.measured, one.measured)
			return list
		}
	}
	return append(list, one)
}

// compare simulates what bench.Contest measures: a few calls and a barrier.
func (j *simJob) compare(c *compared, barrier inspect.CollectiveChoice) error {
	calls := 1
	if c.size <= 8<<10 {
		calls = 4
	}
	call := j.call(c.candidate, c.size)
	if form := c.algorithm.SegmentForm(); form != nil && j.nodes != nil {
		call.Algorithm, call.Segment = form, true // the node phases of blocking calls are in a segment
	}
	list := slices.Repeat([]sim.Call{call}, calls)
	by, err := coll.Find(coll.Barrier, barrier.Algorithm)
	if err != nil {
		return err
	}
	params, err := by.ParseParams(barrier.Params)
	if err != nil {
		return err
	}
	list = append(list, sim.Call{Algorithm: by, Params: params, Shape: coll.Shape{Kind: coll.Barrier, Size: j.ranks, Elem: 1, Nodes: j.nodes}})
	s, err := sim.New(sim.Config{Machine: j.machine, Calls: list})
	if err != nil {
		return err
	}
	x, err := s.Run()
	if err != nil {
		return err
	}
	c.simulated = x.Mean / float64(calls)
	return nil
}

// printCompared prints all figures, the rank correlation at each size and the median
// error, which it returns.
func printCompared(w io.Writer, j *simJob, list []compared) (relative float64, err error) {
	slices.SortStableFunc(list, func(a, b compared) int { return a.size - b.size })
	fmt.Fprintf(w, "%s among %v: measured, and simulated on: %s\n\n", j.kind, j.on, j.machine.About)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "bytes\talgorithm\tmeasured µs\tsimulated µs\tratio")
	for _, c := range list {
		fmt.Fprintf(tw, "%d\t%v\t%.1f\t%.1f\t%.2f\n", c.size, c.candidate, c.measured, c.simulated, c.simulated/c.measured)
	}
	if err := tw.Flush(); err != nil {
		return 0, err
	}
	var measured, simulated, taus []float64
	fmt.Fprintln(w)
	for from := 0; from < len(list); {
		to := from
		var a, b []float64
		for ; to < len(list) && list[to].size == list[from].size; to++ {
			a, b = append(a, list[to].measured), append(b, list[to].simulated)
		}
		tau := sim.Kendall(a, b, noiseMargin-1)
		fmt.Fprintf(w, "%d bytes: Kendall τ %.2f, median error %.0f %%, %d algorithms\n", list[from].size, tau, 100*sim.MedianError(a, b), len(a))
		measured, simulated, taus = append(measured, a...), append(simulated, b...), append(taus, tau)
		from = to
	}
	sum := 0.0
	for _, t := range taus {
		sum += t
	}
	relative = sim.MedianError(measured, simulated)
	fmt.Fprintf(w, "all sizes: mean τ %.2f, τ of all figures %.2f, median error %.0f %%\n", sum/float64(len(taus)), sim.Kendall(measured, simulated, noiseMargin-1), 100*relative)
	return relative, nil
}
