package main

// muster sched: the schedule of a collective as text and as a picture, with its proof.
// It starts no ranks: the graphs depend on numbers alone, so a laptop can show the
// schedule of a thousand ranks.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/bytesize"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/internal/sched"
)

type schedFlags struct {
	algorithm string
	ranks     int
	root      int
	bytes     string
	ports     int
	params    []string
	ordered   bool
	inPlace   bool
	svg       string
	text      bool
	rank      int
	list      bool
	nodes     string
	json      bool
}

func newSchedCommand() *cobra.Command {
	var f schedFlags
	cmd := &cobra.Command{
		Use:   "sched [COLLECTIVE]",
		Short: "Show the schedule of a collective: its messages, step by step",
		Long: `sched generates the schedules of all ranks for a collective, proves that together
they implement the collective, and shows them as text or as a picture. No ranks are
started.

Without --algorithm it lists the algorithms of the collective.`,
		Example: `  muster sched allgather                                        its algorithms
  muster sched allgather --algorithm bruck -n 9 --ports 2 --svg bruck.svg
  muster sched allreduce --algorithm ring -n 4 --text
  muster sched bcast --algorithm binomial -n 8 --root 3 --text --rank 5
  muster sched bcast --algorithm chain -n 4 --bytes 4K --param segment=1024
  muster sched allgather --algorithm node-bruck --nodes 4x4 --svg node-bruck.svg
  muster sched alltoall --algorithm node-carriers --nodes 3,1,4
  muster sched --list                                           all algorithms`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch {
			case f.list:
				return f.listAlgorithms(out, coll.Algorithms())
			case len(args) == 0:
				if err := cmd.Help(); err != nil {
					return err
				}
				fmt.Fprintln(out, "\nCollectives and their algorithms:")
				return listNames(out)
			}
			kind, err := coll.ParseKind(args[0])
			if err != nil {
				return fmt.Errorf("sched: %w", err)
			}
			if f.algorithm == "" {
				all := slices.DeleteFunc(coll.Algorithms(), func(a coll.Algorithm) bool { return a.Kind != kind })
				return f.listAlgorithms(out, all)
			}
			if err := showSchedule(out, kind, &f, cmd.Flags().Changed("rank")); err != nil {
				return fmt.Errorf("sched %s: %w", kind, err)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.algorithm, "algorithm", "a", "", "algorithm (default: list them)")
	fl.IntVarP(&f.ranks, "ranks", "n", 8, "number of ranks")
	fl.IntVar(&f.root, "root", 0, "root of rooted collectives")
	fl.StringVarP(&f.bytes, "bytes", "b", "", "bytes of a block, or of the whole vector where there are no blocks (default: 8 per block, 8 per rank of a vector)")
	fl.IntVarP(&f.ports, "ports", "k", 0, "the algorithm's parameter ports: messages that a rank sends at a time")
	fl.StringSliceVar(&f.params, "param", nil, "another parameter, as name=value, such as segment=64K")
	fl.BoolVar(&f.ordered, "ordered", false, "the reduction does not commute")
	fl.BoolVar(&f.inPlace, "in-place", false, "the input is in the output buffer (MPI_IN_PLACE)")
	fl.StringVar(&f.svg, "svg", "", "draw all ranks into this SVG file")
	fl.BoolVar(&f.text, "text", false, "print the operations of all ranks")
	fl.IntVar(&f.rank, "rank", 0, "print the operations of this rank only")
	fl.StringVar(&f.nodes, "nodes", "", "ranks per node: 4x4 is four nodes of four ranks; 3,1,4 is three nodes with 3, 1 and 4 ranks (default: one node)")
	fl.BoolVar(&f.list, "list", false, "list all algorithms of all collectives")
	addJSONFlag(cmd, &f.json)
	return cmd
}

// showSchedule generates, proves and prints the graphs that the flags select.
func showSchedule(w io.Writer, kind coll.Kind, f *schedFlags, oneRank bool) error {
	a, err := coll.Find(kind, f.algorithm)
	if err != nil {
		return err
	}
	params, err := f.paramsOf(a)
	if err != nil {
		return err
	}
	nodes, err := parseNodes(f.nodes)
	if err != nil {
		return err
	}
	if nodes != nil {
		f.ranks = nodes.Size()
	}
	shapes, err := f.shapes(kind)
	if err != nil {
		return err
	}
	for r := range shapes {
		shapes[r].Nodes = nodes
	}
	if oneRank && (f.rank < 0 || f.rank >= f.ranks) {
		return fmt.Errorf("--rank %d: use one of the ranks 0 to %d", f.rank, f.ranks-1)
	}
	graphs, err := a.Graphs(shapes, params)
	if err != nil {
		return err
	}
	totals, err := sched.Total(graphs)
	if err != nil {
		return err
	}
	if err := coll.Prove(shapes, graphs); err != nil {
		return fmt.Errorf("the proof fails: %w", err)
	}
	title := scheduleTitle(a, params, shapes)
	shown := func(r int) bool { return f.text && !oneRank || oneRank && r == f.rank }
	if f.json {
		err = printSchedules(w, title, totals, graphs, nodes, shown)
	} else {
		err = describeSchedules(w, title, totals, graphs, nodes, shown)
	}
	if err != nil {
		return err
	}
	if f.svg == "" {
		return nil
	}
	return drawSchedule(f.svg, sched.Picture{Title: title, Subtitle: totalsLine(totals)}, shapes, graphs)
}

// describeSchedules prints proved schedules.
func describeSchedules(w io.Writer, title string, totals sched.Totals, graphs []*sched.Graph, nodes *coll.Topology, shown func(rank int) bool) error {
	fmt.Fprintf(w, "%s\n%s\n", title, totalsLine(totals))
	if nodes != nil {
		if err := printTraffic(w, graphs, nodes); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "proved: sends and receives match, the schedule cannot deadlock, every byte of every result is correct\n")
	for r, g := range graphs {
		if shown(r) {
			fmt.Fprintf(w, "\n%v", g)
		}
	}
	return nil
}

// paramsOf returns the parameters of an algorithm: the given ones, and defaults for the
// others.
func (f *schedFlags) paramsOf(a *coll.Algorithm) ([]int, error) {
	given := slices.Clone(f.params)
	if f.ports != 0 {
		given = append(given, "ports="+strconv.Itoa(f.ports))
	}
	params := a.Default()
	for _, g := range given {
		name, value, ok := strings.Cut(g, "=")
		n, err := bytesize.Parse(value)
		if !ok || err != nil {
			return nil, fmt.Errorf("--param %s: use a name and a number, such as ports=2 or segment=64K", g)
		}
		i := slices.IndexFunc(a.Params, func(p coll.Param) bool { return p.Name == name })
		if i < 0 {
			var names []string
			for _, p := range a.Params {
				names = append(names, p.Name)
			}
			if names == nil {
				names = []string{"none"}
			}
			return nil, fmt.Errorf("%s has no parameter %q; it has %s", a.Name, name, strings.Join(names, ", "))
		}
		params[i] = int(n)
	}
	return params, nil
}

// shapes returns the call of every rank. Neighbor collectives use a ring.
func (f *schedFlags) shapes(kind coll.Kind) ([]coll.Shape, error) {
	if f.ranks < 1 || f.ranks > 4096 {
		return nil, fmt.Errorf("-n %d: use 1 to 4096 ranks", f.ranks)
	}
	if f.root < 0 || f.root >= f.ranks {
		return nil, fmt.Errorf("--root %d: use one of the ranks 0 to %d", f.root, f.ranks-1)
	}
	bytes := 8
	if kind.Vector() {
		bytes *= f.ranks
	}
	if f.bytes != "" {
		var err error
		if bytes, err = parseSize(f.bytes); err != nil {
			return nil, fmt.Errorf("--bytes %s: %w", f.bytes, err)
		}
	}
	shapes := make([]coll.Shape, f.ranks)
	for r := range shapes {
		shapes[r] = coll.EqualBlocks(kind, r, f.ranks, f.root, bytes)
		shapes[r].Commutes = !f.ordered
		shapes[r].InPlace = f.inPlace && kind != coll.Bcast && (!kind.Rooted() || r == f.root)
	}
	return shapes, nil
}

func scheduleTitle(a *coll.Algorithm, params []int, shapes []coll.Shape) string {
	s := &shapes[0]
	title := fmt.Sprintf("%s by %s", a.Kind, a.Name)
	var with []string
	for i, p := range a.Params {
		with = append(with, fmt.Sprintf("%s %d", p.Name, params[i]))
	}
	if with != nil {
		title += " (" + strings.Join(with, ", ") + ")"
	}
	title += fmt.Sprintf(", %d ranks", s.Size)
	if s.Nodes != nil {
		title += fmt.Sprintf(" on nodes %v", s.Nodes)
	}
	switch {
	case a.Kind == coll.Barrier:
	case a.Kind.Vector():
		title += fmt.Sprintf(", %d bytes", s.Bytes)
	default:
		title += fmt.Sprintf(", blocks of %d bytes", max(s.Send.Each, s.Recv.Each))
	}
	if a.Kind.Rooted() {
		title += fmt.Sprintf(", root %d", s.Root)
	}
	return title
}

func totalsLine(t sched.Totals) string {
	line := fmt.Sprintf("%s, %s, %d bytes; the busiest rank sends %d and receives %d", count(t.Steps, "step"), count(t.Messages, "message"), t.Bytes, t.MostSent, t.MostReceived)
	if t.Copies > 0 {
		line += ", " + strings.Replace(count(t.Copies, "copy"), "copys", "copies", 1)
	}
	if t.Reductions > 0 {
		line += ", " + count(t.Reductions, "reduction")
	}
	if t.HandOvers > 0 {
		line += fmt.Sprintf(", %s in %d shared bytes", count(t.HandOvers, "hand-over"), t.Shared)
	}
	if t.Scratch > 0 {
		line += fmt.Sprintf(", scratch up to %d", t.Scratch)
	}
	return line
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// drawSchedule writes the picture. A block is labelled with its destination rank.
func drawSchedule(file string, p sched.Picture, shapes []coll.Shape, graphs []*sched.Graph) error {
	task := coll.Task(shapes)
	p.Start = func(rank int) []sched.Piece { return task.Ranks[rank].Start }
	if s := &shapes[0]; s.Kind.Input() == coll.AllBlocks && !s.Kind.Near() {
		for r := range s.Size {
			off, n := s.Send.Block(r)
			p.Parts = append(p.Parts, off+n)
		}
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(sched.WriteSVG(out, graphs, p), out.Close())
}

// listAlgorithms describes each algorithm.
func (f *schedFlags) listAlgorithms(w io.Writer, all []coll.Algorithm) error {
	if f.json {
		return printAlgorithms(w, all)
	}
	for _, a := range all {
		fmt.Fprintf(w, "%s --algorithm %s\n    %s\n", a.Kind, a.Name, a.About)
		for _, p := range a.Params {
			values := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Values), " ", ", "), "[]")
			fmt.Fprintf(w, "    --param %s=%d: %s; suggested values: %s\n", p.Name, p.Values[0], p.About, values)
		}
		if needs := needsOf(a.Needs); needs != "" {
			fmt.Fprintf(w, "    needs %s\n", needs)
		}
		fmt.Fprintf(w, "    from %s\n", a.Ref)
	}
	return nil
}

func needsOf(n coll.Needs) string {
	var list []string
	add := func(needed bool, what string) {
		if needed {
			list = append(list, what)
		}
	}
	add(n.Commutes, "a commutative reduction")
	add(n.PowerOfTwo, "a power-of-two number of ranks")
	add(n.Even, "an even number of ranks")
	add(n.MinRanks > 1, fmt.Sprintf("%d ranks", n.MinRanks))
	add(n.Regular, "equal blocks")
	add(n.NotInPlace, "separate input and output buffers")
	add(n.WholeBlocks, "an element for every rank")
	add(n.Nodes, "several nodes (--nodes)")
	return strings.Join(list, ", ")
}

// listNames lists the names of the algorithms, one line per collective.
func listNames(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	var names []string
	all := coll.Algorithms()
	slices.SortStableFunc(all, func(a, b coll.Algorithm) int { return int(a.Kind) - int(b.Kind) })
	for i, a := range all {
		names = append(names, a.Name)
		if i+1 == len(all) || all[i+1].Kind != a.Kind {
			fmt.Fprintf(tw, "  %s\t%s\n", a.Kind, strings.Join(names, ", "))
			names = nil
		}
	}
	return tw.Flush()
}
