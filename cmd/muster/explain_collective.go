package main

// muster explain allreduce: the algorithm chosen for a collective, the reason, and the
// cost of the alternatives. Two ranks are started to obtain the cost of messages on this
// machine; the choice is then computed for the number of ranks given by -n.

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

type explainFlags struct {
	size    string
	ranks   int
	measure bool
	budget  time.Duration
	json    bool
}

func newExplainCollectiveCommand(kind coll.Kind) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   kind.String(),
		Short: "Show which algorithm is chosen for " + kind.String() + ", and why",
		Long: fmt.Sprintf(`%[1]s shows the algorithm chosen for %[1]s, its estimated time, the costs that
the estimate uses, and the estimates of the alternatives. Without --size it lists the
algorithm of each range of sizes.

With --measure the ranks are started, and the algorithms are measured one call after the
other, in turn: the time from the last rank's arrival to the last one's exit, without the
shared memory of the host. Algorithms that are estimated at more than ten times the
lowest are left out.

A size is counted as in muster bench %[1]s. MUSTER_COLLECTIVE and MUSTER_TUNING
apply as in a job. muster tune measures all sizes and writes a table.`, kind),
		Example: fmt.Sprintf(`  muster explain %[1]s -n 16
  muster explain %[1]s --size 64KB -n 16
  muster explain %[1]s --size 64KB -n 4 --measure
  muster run --lab -n 16 muster explain %[1]s --size 64KB --measure
  MUSTER_TUNING=muster-tuning.json muster explain %[1]s -n 4`, kind),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			size := -1
			if f.size != "" {
				var err error
				if size, err = parseSize(f.size); err != nil {
					return fmt.Errorf("explain %s: --size %s: %w", kind, f.size, err)
				}
			}
			if f.ranks < 2 {
				return fmt.Errorf("explain %s: -n %d: there is nothing to choose below 2 ranks; use -n 2 or more", kind, f.ranks)
			}
			if !f.measure && cmd.Flags().Changed("budget") {
				return fmt.Errorf("explain %s: --budget limits what --measure measures; add --measure, or leave --budget out", kind)
			}
			started := 2
			if f.measure {
				if err := canMeasure(kind, size); err != nil {
					return err
				}
				started = f.ranks
			}
			if !inJob() {
				return startSelf(cmd, started)
			}
			if f.measure {
				runMeasured(kind, size, f.budget)
				return nil
			}
			ranks := 0 // those of the job
			if cmd.Flags().Changed("ranks") {
				ranks = f.ranks
			}
			mpi.Main(func(c *mpi.Comm) error {
				if c.Rank() != 0 {
					return nil
				}
				if f.json {
					return explainAsJSON(os.Stdout, c, kind, size, ranks)
				}
				return explainCollective(os.Stdout, c, kind, size, ranks)
			})
			return nil
		},
	}
	fl := cmd.Flags()
	if kind != coll.Barrier {
		fl.StringVarP(&f.size, "size", "m", "", "bytes, such as 8, 64K or 4M (default: all sizes)")
	}
	fl.IntVarP(&f.ranks, "ranks", "n", 2, "number of ranks to compute the choice for (they are started only with --measure)")
	fl.BoolVar(&f.measure, "measure", false, "measure the algorithms too")
	fl.DurationVar(&f.budget, "budget", 2*time.Second, "time limit of --measure")
	addJSONFlag(cmd, &f.json)
	cmd.MarkFlagsMutuallyExclusive("json", "measure")
	return cmd
}

// planAsker returns a function that asks for the plan of a call of a size, and the number of
// ranks that it is for.
func planAsker(c *mpi.Comm, kind coll.Kind, ranks int) (ask func(size int) (*inspect.CollectivePlan, error), n int) {
	if n = ranks; n == 0 {
		n = c.Size()
	}
	return func(size int) (*inspect.CollectivePlan, error) {
		if kind == coll.ReduceScatter { // the size is that of the vector
			size = (size + n - 1) / n
		}
		return inspect.ExplainCollective(c, kind.String(), size, ranks)
	}, n
}

func explainCollective(w io.Writer, c *mpi.Comm, kind coll.Kind, size, ranks int) error {
	ask, n := planAsker(c, kind, ranks)
	fmt.Fprintf(w, "%s among %d ranks, over %s\n", kind, n, inspect.DeviceName(c, c.Size()-1))
	x, err := ask(max(size, 0))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "a message costs %s + %s a KiB; a KiB costs %s to copy, %s to combine\n\n",
		seconds(x.Startup), seconds(x.PerByte*1024), seconds(x.Copy*1024), seconds(x.Reduce*1024))
	if size < 0 && kind != coll.Barrier {
		return explainSizes(w, kind, ask)
	}
	for _, f := range x.Forms {
		if f.Name != coll.NodePhases.Name && (kind == coll.Barrier || size > 0) && f.Limit >= max(size, 0) {
			fmt.Fprintf(w, "blocking calls of this size use the shared memory of the host (%s), without messages;\nnonblocking and persistent calls use:\n\n", f.Name)
		}
	}
	fmt.Fprintf(w, "%s, estimated at %s: %s\n", choiceName(kind, x.CollectiveChoice), seconds(x.Seconds), x.Reason)
	if len(x.Others) > 0 {
		fmt.Fprintln(w, "\nalternatives:")
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range x.Others {
		fmt.Fprintf(tw, "  %s\t%s\t%.2f times as long\n", choiceName(kind, o), seconds(o.Seconds), o.Seconds/x.Seconds)
	}
	if err := tw.Flush(); err != nil || kind != coll.Barrier {
		return err
	}
	return explainForms(w, x.Forms)
}

// sizeRange is a range of sizes with one algorithm.
type sizeRange struct {
	from, to int // to is math.MaxInt in the last
	plan     *inspect.CollectivePlan
}

// sizeRanges returns the algorithm of each range of sizes. It samples powers of two.
func sizeRanges(kind coll.Kind, ask func(int) (*inspect.CollectivePlan, error)) (list []sizeRange, err error) {
	const from, to = 1, 64 << 20
	for size := from; size <= to; {
		x, err := ask(size)
		if err != nil {
			return nil, err
		}
		name, last := choiceName(kind, x.CollectiveChoice), size
		for last < to {
			y, err := ask(2 * last)
			if err != nil {
				return nil, err
			}
			if choiceName(kind, y.CollectiveChoice) != name {
				break
			}
			last *= 2
		}
		r := sizeRange{size, 2*last - 1, x}
		if last == to {
			r.to = math.MaxInt
		}
		list = append(list, r)
		size = 2 * last
	}
	return list, nil
}

// explainSizes prints the algorithm of each range of sizes.
func explainSizes(w io.Writer, kind coll.Kind, ask func(int) (*inspect.CollectivePlan, error)) error {
	list, err := sizeRanges(kind, ask)
	if err != nil {
		return err
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "from bytes\tto\talgorithm\tcost there\tnext best\tcost")
	for _, r := range list {
		to := fmt.Sprint(r.to)
		if r.to == math.MaxInt {
			to = "any"
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s", r.from, to, choiceName(kind, r.plan.CollectiveChoice), seconds(r.plan.Seconds))
		if len(r.plan.Others) > 0 {
			fmt.Fprintf(tw, "\t%s\t%s", choiceName(kind, r.plan.Others[0]), seconds(r.plan.Others[0].Seconds))
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	x, err := ask(0)
	if err != nil {
		return err
	}
	return explainForms(w, x.Forms)
}

// explainForms prints the forms in shared memory, and up to which size they are used.
func explainForms(w io.Writer, forms []inspect.HostForm) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nblocking calls use the shared memory of the host instead:")
	for _, f := range forms {
		limit := fmt.Sprintf("up to %d bytes", f.Limit)
		switch f.Limit {
		case -1:
			limit = "never: " + f.Why
		case 0, math.MaxInt:
			limit = "always"
		}
		fmt.Fprintf(tw, "%s\t%s\n", f.Name, limit)
	}
	return tw.Flush()
}

// choiceName returns an algorithm in the syntax of MUSTER_COLLECTIVE.
func choiceName(kind coll.Kind, c inspect.CollectiveChoice) string {
	a, err := coll.Find(kind, c.Algorithm)
	if err != nil {
		return c.Algorithm
	}
	params := a.Default()
	for i, p := range a.Params {
		params[i] = c.Params[p.Name]
	}
	return candidate{a, slices.Clone(params)}.String()
}

// seconds formats a time with three digits and a suitable unit.
func seconds(s float64) string {
	switch d := time.Duration(s * float64(time.Second)); {
	case d < time.Microsecond:
		return fmt.Sprintf("%.3g ns", s*1e9)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", s*1e3)
	}
	return fmt.Sprintf("%.3g s", s)
}
