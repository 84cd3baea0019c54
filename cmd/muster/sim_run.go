package main

// muster sim runs the simulations one after the other, those that take least time first, and prints the row of each when it is finished. Interrupted, it reports what it has.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/sim"
)

// simulation is a candidate at a size, the number of operations to simulate, and an estimate of
// the work in the same unit.
type simulation struct {
	candidate
	size             int
	operations, work float64
}

func (s simulation) String() string { return fmt.Sprintf("%v of %d bytes", s.candidate, s.size) }

// output is where a command writes to: its result, and its progress.
type output struct{ result, progress io.Writer }

func (f *simFlags) run(ctx context.Context, out output, kind coll.Kind) error {
	switch f.level {
	case "schedule":
	case "packets":
		if inJob() {
			return f.comparePackets(kind)
		}
	case "validate":
		return f.validate(kind)
	default:
		return fmt.Errorf("--level %s: use schedule, packets or validate", f.level)
	}
	job, err := f.job(kind)
	if err != nil {
		return err
	}
	list, err := simCandidates(kind, f.algorithms)
	if err != nil {
		return err
	}
	report := simReport{simJob: job, asJSON: f.json}
	todo, err := report.plan(list)
	if err != nil {
		return err
	}
	if len(todo) == 0 {
		return fmt.Errorf("no algorithm can be simulated: %s", strings.Join(report.skipped, "; "))
	}
	interrupted, err := report.simulateAll(ctx, out, todo)
	if err != nil {
		return err
	}
	if err := report.finish(out.result, f); err != nil {
		return err
	}
	if interrupted {
		fmt.Fprintf(out.progress, "sim: interrupted: %d of %d simulations\n", len(report.figures), len(todo))
		return exitStatus(statusInterrupted)
	}
	return nil
}

// plan returns the simulations in the order in which they run.
func (r *simReport) plan(list []candidate) (todo []simulation, err error) {
	for _, size := range r.sizes {
		first, estimates := len(todo), r.estimates(size)
		for _, c := range list {
			operations, why, err := r.operations(c, size)
			if err != nil {
				return nil, err
			}
			if why != "" {
				if text := fmt.Sprintf("%v: %s", c, why); !slices.Contains(r.skipped, text) {
					r.skipped = append(r.skipped, text)
				}
				continue
			}
			todo = append(todo, simulation{c, size, operations, operations + estimates[c.algorithm.Name]})
		}
		slices.SortStableFunc(todo[first:], func(a, b simulation) int { return cmp.Compare(a.work, b.work) })
	}
	return todo, nil
}

// estimates returns the work of going through the steps of each algorithm, even if they have no
// message: a time that the cost model estimates to be long has many of them.
func (r *simReport) estimates(size int) map[string]float64 {
	work := map[string]float64{}
	call := r.call(candidate{}, size)
	choice, err := r.machine.Choose(&call.Shape)
	if err != nil {
		return work // the simulations report why
	}
	for _, one := range choice.Ranking {
		work[one.Algorithm.Name] = one.Cost * 1e6 * float64(r.ranks)
	}
	return work
}

// simulateAll runs the simulations until all are finished, or until ctx ends.
func (r *simReport) simulateAll(ctx context.Context, out output, todo []simulation) (interrupted bool, err error) {
	total := 0.0
	for _, s := range todo {
		total += s.work
	}
	p := startProgress(out.progress, "sim", total)
	defer p.stop()
	type finished struct {
		figure simFigure
		err    error
	}
	figures := make(chan finished)
	go func() {
		defer close(figures)
		for _, s := range todo {
			figure, err := r.figure(s)
			select {
			case figures <- finished{figure, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	p.step(0, todo[0].String())
	r.begin(out.result, todo)
	for i := range todo {
		select {
		case <-ctx.Done():
			if len(r.figures) == 0 {
				return true, errors.New("interrupted before the first simulation was finished")
			}
			return true, nil
		case f := <-figures:
			if f.err != nil {
				return false, f.err
			}
			r.figures = append(r.figures, f.figure)
			now := ""
			if i+1 < len(todo) {
				now = todo[i+1].String()
			}
			p.step(todo[i].work, now)
			p.output(func() { r.row(out.result, f.figure) })
		}
	}
	return false, nil
}

// figure runs one simulation.
func (r *simReport) figure(s simulation) (simFigure, error) {
	figure := simFigure{candidate: s.candidate, size: s.size}
	var err error
	if figure.result, err = r.runCall(s.candidate, s.size, s.operations); err == nil && r.failure != nil {
		figure.recovery, err = r.recover(s.candidate, s.size)
	}
	return figure, err
}

// finish prints, draws and writes what needs all figures.
func (r *simReport) finish(w io.Writer, f *simFlags) error {
	r.rank()
	var err error
	if r.asJSON {
		err = r.printJSON(w)
	} else {
		r.printRest(w)
	}
	if f.svg != "" {
		err = errors.Join(err, r.draw(f.svg))
	}
	if f.tuning != "" {
		err = errors.Join(err, r.writeTuning(w, f.tuning))
	}
	return err
}

// operations estimates the operations of a simulation, or returns why it is not possible.
func (j *simJob) operations(c candidate, size int) (ops float64, why string, err error) {
	call := j.call(c, size)
	if ok, why := coll.Applicable(c.algorithm, &call.Shape); !ok {
		return 0, why, nil
	}
	if ops, err = sim.Operations(&call); err != nil {
		return 0, "", err
	}
	if ops > j.limit {
		return 0, fmt.Sprintf("about %.1g operations, more than --limit", ops), nil
	}
	return ops, "", nil
}

// maxPathOperations bounds the memory of a critical path.
const maxPathOperations = 1 << 27

func (j *simJob) runCall(c candidate, size int, operations float64) (*sim.Result, error) {
	s, err := sim.New(sim.Config{Machine: j.machine, Calls: []sim.Call{j.call(c, size)}, Arrive: j.arrive, Faults: j.faults, Packets: j.packets,
		Path: j.path && operations < maxPathOperations})
	if err != nil {
		return nil, err
	}
	return s.Run()
}

// simulate runs a candidate at a size. It returns why if that is not possible.
func (j *simJob) simulate(c candidate, size int) (x *sim.Result, why string, err error) {
	operations, why, err := j.operations(c, size)
	if err != nil || why != "" {
		return nil, why, err
	}
	x, err = j.runCall(c, size, operations)
	return x, "", err
}
