package main

// muster sim mix and muster sim replay: several calls after each other, named on the command
// line or recorded by muster run --trace.

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/sim"
)

func newSimMixCommand() *cobra.Command {
	f := simFlags{sizes: []string{"8"}, limit: "256M"}
	cmd := &cobra.Command{
		Use:   "mix CALL...",
		Short: "Simulate several collectives after each other",
		Long: `mix simulates calls that all ranks make in this order:

  allreduce:8                    a collective with data, or blocks, of 8 bytes
  10*allreduce:8                 ten of them
  bcast:64K=chain:segment=8192   by an algorithm; otherwise the one with the lowest cost
  barrier
  compute:50us                   every rank computes for 50 µs`,
		Example: `  muster sim mix 10*allreduce:8 compute:50us alltoall:4K --ranks 1K --nodes 16
  muster sim mix compute:1ms allgather:1K=ring barrier --ranks 64 --nodes 4 --arrival spread:1ms`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := f.job(coll.Barrier)
			if err != nil {
				return fmt.Errorf("sim mix: %w", err)
			}
			calls, err := j.mix(args)
			if err == nil {
				err = j.runCalls(cmd.OutOrStdout(), "mix", fmt.Sprintf("%d calls among %v", len(calls), j.on), calls, nil, f.json)
			}
			if err != nil {
				return fmt.Errorf("sim mix: %w", err)
			}
			return nil
		},
	}
	f.jobFlags(cmd.Flags(), "1K")
	cmd.Flags().StringVar(&f.level, "level", "schedule", "schedule, or packets: with the point-to-point machines of programs")
	return cmd
}

func newSimReplayCommand() *cobra.Command {
	f := simFlags{sizes: []string{"8"}, limit: "256M", level: "schedule"}
	cmd := &cobra.Command{
		Use:   "replay TRACE",
		Short: "Simulate a recorded program",
		Long: `replay simulates the calls that a program made, as muster run --trace has recorded them:
messages, collectives and the time between them. The simulated times begin where Init
ends, as the longer of the two recorded ones does. The shorter one begins with the first
call; muster trace prints the same two.

With more ranks than the trace the result is extrapolated: the job consists of copies of
the recorded one. Messages, and collectives on some of the ranks, stay within a copy;
collectives of all ranks span all copies, with the recorded lengths.`,
		Example: `  muster run -n 4 --trace cg.json muster app cg --class S
  muster sim replay cg.json
  muster sim replay cg.json --ranks 1K --nodes 16`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.replay(cmd.OutOrStdout(), args[0]); err != nil {
				return fmt.Errorf("sim replay: %w", err)
			}
			return nil
		},
	}
	f.jobFlags(cmd.Flags(), "")
	return cmd
}

func (f *simFlags) replay(w io.Writer, file string) error {
	t, err := readTrace(file)
	if err != nil {
		return err
	}
	if f.ranks == "" {
		f.ranks = strconv.Itoa(len(t.Ranks))
	}
	j, err := f.job(coll.Barrier)
	if err != nil {
		return err
	}
	x, err := sim.Replay(t, j.machine, j.ranks, j.nodes)
	if err != nil {
		return err
	}
	notes := []string{
		fmt.Sprintf("recorded: %d ranks, %v", x.Recorded, t.Span()),
		"simulated: from the end of Init to the end of the last call",
	}
	title := fmt.Sprintf("%s among %v: %d collectives of all ranks and %d messages", file, j.on, x.Collectives, x.Messages)
	if j.ranks > x.Recorded {
		title += ", extrapolated"
		notes = append(notes, fmt.Sprintf("extrapolated from %d ranks: %d copies of the recorded job, with collectives of all ranks across them", x.Recorded, j.ranks/x.Recorded))
	}
	for _, what := range x.Left {
		notes = append(notes, "not simulated: "+what)
	}
	return j.runCalls(w, "replay", title, x.Calls, notes, f.json)
}

// mix parses the calls of a mix.
func (j *simJob) mix(words []string) (calls []sim.Call, err error) {
	gap := 0.0
	for _, word := range words {
		call, count := word, 1
		if n, rest, ok := strings.Cut(word, "*"); ok {
			if count, err = strconv.Atoi(n); err != nil || count < 1 {
				return nil, fmt.Errorf("%q: the number of calls must be above 0", word)
			}
			call = rest
		}
		if text, ok := strings.CutPrefix(call, "compute:"); ok {
			t, err := time.ParseDuration(text)
			if err != nil || t < 0 {
				return nil, fmt.Errorf("%q: use a time such as compute:50us", word)
			}
			gap += float64(count) * float64(t.Nanoseconds())
			continue
		}
		one, err := j.mixCall(call)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", word, err)
		}
		first := len(calls)
		calls = append(calls, slices.Repeat([]sim.Call{one}, count)...)
		calls[first].Before, gap = gap, 0
	}
	switch {
	case len(calls) == 0:
		return nil, fmt.Errorf("no collective")
	case len(calls) >= 1<<16:
		return nil, fmt.Errorf("%d calls: use at most %d", len(calls), 1<<16-1)
	case gap > 0:
		return nil, fmt.Errorf("computation after the last call has no effect")
	}
	return calls, nil
}

// mixCall parses a call: KIND[:BYTES][=ALGORITHM].
func (j *simJob) mixCall(text string) (sim.Call, error) {
	text, algorithm, named := strings.Cut(text, "=")
	name, size, sized := strings.Cut(text, ":")
	kind, err := coll.ParseKind(name)
	if err != nil {
		return sim.Call{}, err
	}
	bytes := 0
	switch {
	case kind == coll.Neighbors:
		return sim.Call{}, fmt.Errorf("neighbors have no schedule of their own to simulate")
	case kind == coll.Barrier && sized, kind != coll.Barrier && !sized:
		return sim.Call{}, fmt.Errorf("use KIND:BYTES, such as allreduce:8, or barrier")
	case sized:
		if bytes, err = parseSize(size); err != nil {
			return sim.Call{}, err
		}
	}
	of := *j
	of.kind = kind
	if !named {
		call := of.call(candidate{}, bytes)
		choice, err := j.machine.Choose(&call.Shape)
		call.Algorithm, call.Params = choice.Algorithm, choice.Params
		return call, err
	}
	list, err := simCandidates(kind, []string{algorithm})
	if err != nil {
		return sim.Call{}, err
	}
	call := of.call(list[0], bytes)
	if ok, why := coll.Applicable(call.Algorithm, &call.Shape); !ok {
		return sim.Call{}, fmt.Errorf("%s is not applicable: %s", call.Algorithm.Name, why)
	}
	return call, nil
}

// workloadLine is what --json prints of several calls.
type workloadLine struct {
	Workload string        `json:"workload"`
	Title    string        `json:"title"`
	Notes    []string      `json:"notes,omitempty"`
	Ranks    int           `json:"ranks"`
	Nodes    int           `json:"nodes"`
	Calls    int           `json:"calls"`
	First    float64       `json:"first_us"`
	Mean     float64       `json:"mean_us"`
	Last     float64       `json:"last_us"`
	Error    float64       `json:"error,omitempty"`
	Messages sim.Stats     `json:"messages"`
	PerRank  float64       `json:"bytes_per_rank"`
	Memory   []sim.Memory  `json:"memory"`
	HotRails []sim.HotRail `json:"hot_rails,omitempty"`
	Path     []sim.Hop     `json:"critical_path,omitempty"`

	Packets []sim.PacketCount `json:"packets,omitempty"`
	Peaks   *sim.Peaks        `json:"peaks,omitempty"`
}

// runCalls simulates calls after each other and prints the result.
func (j *simJob) runCalls(w io.Writer, what, title string, calls []sim.Call, notes []string, asJSON bool) error {
	s, err := sim.New(sim.Config{Machine: j.machine, Calls: calls, Arrive: j.arrive, Faults: j.faults, Packets: j.packets, Path: j.path, Limit: 8 << 30})
	if err != nil {
		return err
	}
	x, err := s.Run()
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(w).Encode(workloadLine{what, title, notes, x.Ranks, x.Nodes, len(calls), x.First, x.Mean, x.Last, j.machine.Error, x.Stats, x.BytesPerRank(),
			x.Memory, x.HotRails, x.Path, x.Packets, x.Peaks})
	}
	fmt.Fprintf(w, "%s; simulated, times in µs from the last arrival\n", title)
	if j.machine.About != "" {
		fmt.Fprintf(w, "machine: %s\n", j.machine.About)
	}
	if j.machine.Error > 0 {
		fmt.Fprintf(w, "error of the simulation: %.0f %% (median)\n", 100*j.machine.Error)
	} else {
		fmt.Fprintln(w, "error of the simulation: unknown")
	}
	for _, n := range notes {
		fmt.Fprintln(w, n)
	}
	fmt.Fprintf(w, "\nfirst %.2f, mean %.2f, last %.2f; %d messages within nodes, %d between them, %d bytes\n", x.First, x.Mean, x.Last, x.Stats.Near, x.Stats.Far, x.Stats.NearBytes+x.Stats.FarBytes)
	printHot(w, x, j.path)
	if p := x.Peaks; p != nil {
		fmt.Fprintf(w, "packets: %s; at most %d unexpected messages and %d bytes of credit at a rank\n", formatPackets(packetsOf(x)), p.Unexpected, p.Credit)
	}
	return nil
}
