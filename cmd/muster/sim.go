package main

// muster sim: a collective of many ranks in virtual time, on the model of a machine
// (package sim). It starts no ranks.

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/internal/bytesize"
	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/sim"
)

type simFlags struct {
	ranks, nodes string
	rails        int
	machine      string
	algorithms   []string
	sizes        []string
	root         int
	arrival      string
	level        string
	slowNode     string
	lostRail     string
	failedRank   string
	limit        string
	json         bool
	svg          string
	tuning       string
	path         bool
}

func newSimCommand() *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "sim COLLECTIVE",
		Short: "Simulate a collective of up to millions of ranks",
		Long: `sim executes the schedules of all ranks of a collective in virtual time, on the model
of a machine: LogGP within nodes and between them, rails, memory, and cores that ranks
share. No ranks are started. Rows appear as simulations finish, those with few operations
first. Interrupted, sim prints the rest of the report for what is finished.

Without --machine it assumes a machine that nobody measured; muster sim calibrate writes
the file of a real one. A simulated time has an error, which --level validate finds and
writes into the file. Algorithms whose times differ by less are not ranked.`,
		Example: `  muster sim barrier --ranks 1M --nodes 16K
  muster sim allreduce --ranks 64K --nodes 1K --algorithm all --sizes 8,64K
  muster sim bcast --ranks 4K --nodes 64 --algorithm knomial --arrival spread:1ms
  muster sim allreduce --ranks 64K --nodes 1K --algorithm recursive-doubling --failed-rank 3
  muster sim allreduce --ranks 256 --nodes 16 --slow-node 3:4 --lost-rail 3:1
  muster sim bcast --ranks 100000 --nodes 1000 --level packets --algorithm binomial
  muster run -n 8 muster sim allreduce --level packets --sizes 8,64K
  muster sim mix 10*allreduce:8 compute:50us alltoall:4K --ranks 1K --nodes 16
  muster sim replay trace.json --ranks 1K --nodes 16
  muster run --lab -n 16 muster sim calibrate --out lab.json
  muster run --lab -n 16 muster sim allreduce --level validate --machine lab.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, err := coll.ParseKind(args[0])
			if err != nil {
				return fmt.Errorf("sim: %w", err)
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			err = f.run(ctx, output{cmd.OutOrStdout(), cmd.ErrOrStderr()}, kind)
			if _, ended := err.(exitStatus); err != nil && !ended {
				err = fmt.Errorf("sim %s: %w", kind, err)
			}
			return err
		},
	}
	fl := cmd.Flags()
	f.jobFlags(fl, "1K")
	fl.StringSliceVarP(&f.algorithms, "algorithm", "a", []string{"all"}, "algorithms, as in MUSTER_COLLECTIVE: knomial:radix=4; all: every one with its default parameters")
	fl.StringSliceVarP(&f.sizes, "sizes", "m", []string{"8"}, "bytes of a block, or of the whole vector, with K or M")
	fl.IntVar(&f.root, "root", 0, "root of rooted collectives")
	fl.StringVar(&f.level, "level", "schedule", "schedule: the schedules on the model; packets: with the point-to-point machines of programs, and as the program of a job beside the packets of real calls; validate: beside the times of real calls, as the program of a job")
	fl.StringVar(&f.failedRank, "failed-rank", "", "RANK or RANK:TIME: the rank fails, the others notice within the time (default 100ms), shrink the communicator and repeat the call")
	fl.StringVar(&f.limit, "limit", "256M", "skip algorithms with more operations of all ranks")
	fl.StringVar(&f.svg, "svg", "", "draw the times by size into this SVG file")
	fl.StringVar(&f.tuning, "tuning", "", "write the best algorithms as a tuning table, for MUSTER_TUNING")
	cmd.AddCommand(newSimCalibrateCommand(), newSimMixCommand(), newSimReplayCommand())
	return cmd
}

// jobFlags adds the flags that describe a job and what is printed.
func (f *simFlags) jobFlags(fl *pflag.FlagSet, ranks string) {
	fl.StringVarP(&f.ranks, "ranks", "n", ranks, "number of ranks; K is 1024, M is 1024 K")
	fl.StringVar(&f.nodes, "nodes", "", "number of nodes (default: those of the machine)")
	fl.IntVar(&f.rails, "rails", 0, "rails of each node (default: those of the machine)")
	fl.StringVar(&f.machine, "machine", "", "machine file, or qsnet2 or connectx for machines of T2 (default: an assumed machine)")
	fl.StringVar(&f.arrival, "arrival", "together", "when ranks enter: together, spread:1ms (at random within it), late:3:1ms (three ranks)")
	fl.StringVar(&f.slowNode, "slow-node", "", "NODE:FACTOR, counted from 0: the node computes and sends slower by a factor")
	fl.StringVar(&f.lostRail, "lost-rail", "", "NODE:RAIL, counted from 0: the node has lost a rail")
	fl.BoolVar(&f.json, "json", false, "print JSON, one object per line")
	fl.BoolVar(&f.path, "path", false, "print the critical path")
}

// simJob is what the flags select.
type simJob struct {
	kind    coll.Kind
	machine *sim.Machine
	ranks   int
	nodes   *coll.Topology
	on      jobShape
	sizes   []int
	root    int
	arrive  func(int) float64
	faults  sim.Faults
	failure *sim.Failure // nil: none
	limit   float64
	path    bool
	packets *sim.Packets // nil: level schedule
}

func (f *simFlags) job(kind coll.Kind) (*simJob, error) {
	if kind == coll.Neighbors {
		return nil, errors.New("neighbors have no schedule of their own to simulate")
	}
	m, err := readMachine(f.machine)
	if err != nil {
		return nil, err
	}
	j := &simJob{kind: kind, machine: m, root: f.root, path: f.path}
	if j.ranks, err = parseSize(f.ranks); err != nil || j.ranks < 1 || j.ranks > 1<<24 {
		return nil, fmt.Errorf("--ranks %s: use 1 to 16M ranks", f.ranks)
	}
	if f.nodes != "" {
		if m.Nodes, err = parseSize(f.nodes); err != nil {
			return nil, fmt.Errorf("--nodes %s: %w", f.nodes, err)
		}
	}
	if m.Nodes < 1 || m.Nodes > j.ranks {
		return nil, fmt.Errorf("--nodes %d: use 1 to %d, the number of ranks", m.Nodes, j.ranks)
	}
	if f.rails > 0 {
		m.Rails = f.rails
	}
	if f.root < 0 || f.root >= j.ranks {
		return nil, fmt.Errorf("--root %d: use one of the ranks 0 to %d", f.root, j.ranks-1)
	}
	if j.sizes, err = parseSizes(f.sizes); err != nil {
		return nil, err
	}
	if kind == coll.Barrier {
		j.sizes = []int{0}
	}
	arrival, err := sim.ParseArrival(f.arrival)
	if err != nil {
		return nil, fmt.Errorf("--arrival %w", err)
	}
	j.arrive = arrival.Of(j.ranks)
	limit, err := bytesize.Parse(f.limit)
	if err != nil || limit < 1 {
		return nil, fmt.Errorf("--limit %s: use a number of operations, such as 256M", f.limit)
	}
	j.limit = float64(limit)
	j.nodes = sim.Layout(j.ranks, m.Nodes, m.Rails)
	j.on = jobShape{layout{j.ranks, m.Nodes}, m.Rails}
	if f.level == "packets" {
		j.packets = &sim.Packets{}
		j.limit /= packetShare
	}
	if j.failure, err = f.failure(j.ranks); err != nil {
		return nil, err
	}
	return j, f.setFaults(&j.faults)
}

// failure returns the failure of --failed-rank, or nil.
func (f *simFlags) failure(ranks int) (*sim.Failure, error) {
	if f.failedRank == "" {
		return nil, nil
	}
	rank, within, timed := strings.Cut(f.failedRank, ":")
	notice := 100 * time.Millisecond // after which ranks look at the board
	n, err := strconv.Atoi(rank)
	if timed && err == nil {
		notice, err = time.ParseDuration(within)
	}
	if err != nil || n < 0 || n >= ranks || notice < 0 {
		return nil, fmt.Errorf("--failed-rank %s: use RANK or RANK:TIME, such as 3:100ms, with a rank below %d", f.failedRank, ranks)
	}
	return &sim.Failure{Rank: n, Notice: float64(notice.Nanoseconds())}, nil
}

func (f *simFlags) setFaults(to *sim.Faults) error {
	if f.slowNode != "" {
		node, factor, ok := strings.Cut(f.slowNode, ":")
		n, err := strconv.Atoi(node)
		x, err2 := strconv.ParseFloat(factor, 64)
		if !ok || err != nil || err2 != nil || n < 0 || !(x > 0) || math.IsInf(x, 1) {
			return fmt.Errorf("--slow-node %s: use NODE:FACTOR, such as 3:4", f.slowNode)
		}
		to.SlowNode, to.SlowFactor = n+1, x
	}
	if f.lostRail != "" {
		node, rail, ok := strings.Cut(f.lostRail, ":")
		n, err := strconv.Atoi(node)
		r, err2 := strconv.Atoi(rail)
		if !ok || err != nil || err2 != nil || n < 0 || r < 0 {
			return fmt.Errorf("--lost-rail %s: use NODE:RAIL, such as 3:1", f.lostRail)
		}
		to.LostNode, to.LostRail = n+1, r+1
	}
	return nil
}

func readMachine(file string) (*sim.Machine, error) {
	if m := sim.FindMachine(cmp.Or(file, "assumed")); m != nil {
		return m, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m, err := sim.ParseMachine(text)
	if err != nil {
		return nil, fmt.Errorf("--machine %s: %w; muster sim calibrate writes such a file", file, err)
	}
	return m, nil
}

// simCandidates returns the algorithms that --algorithm names.
func simCandidates(kind coll.Kind, names []string) (list []candidate, err error) {
	for _, name := range names {
		if name == "all" {
			for _, a := range coll.AlgorithmsOf(kind) {
				list = append(list, candidate{a, a.Default()})
			}
			continue
		}
		name, params, _ := strings.Cut(name, ":")
		a, err := coll.Find(kind, name)
		if err != nil {
			return nil, err
		}
		values := map[string]int{}
		for _, p := range strings.FieldsFunc(params, func(r rune) bool { return r == ':' }) {
			key, value, ok := strings.Cut(p, "=")
			n, err := bytesize.Parse(value)
			if !ok || err != nil {
				return nil, fmt.Errorf("--algorithm %s: use name:parameter=value, such as knomial:radix=4", name)
			}
			values[key] = int(n)
		}
		c := candidate{algorithm: a}
		if c.params, err = a.ParseParams(values); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// call returns the call that simulates a candidate.
func (j *simJob) call(c candidate, size int) sim.Call {
	s := coll.EqualBlocks(j.kind, 0, j.ranks, j.root, size)
	s.Nodes = j.nodes
	return sim.Call{Algorithm: c.algorithm, Params: c.params, Shape: s}
}

// recover simulates the failure of a rank in a call of a candidate. If the candidate is not
// applicable to the ranks that are left, another one repeats the call.
func (j *simJob) recover(c candidate, size int) (*sim.Recovery, error) {
	return sim.Recover(j.machine, j.call(c, size), *j.failure, func(ranks int, nodes *coll.Topology) (sim.Call, error) {
		left := *j
		left.ranks, left.nodes, left.root = ranks, nodes, min(j.root, ranks-1)
		call := left.call(c, size)
		if ok, _ := coll.Applicable(c.algorithm, &call.Shape); ok {
			return call, nil
		}
		choice, err := j.machine.Choose(&call.Shape)
		call.Algorithm, call.Params = choice.Algorithm, choice.Params
		return call, err
	})
}
