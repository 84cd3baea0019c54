package main

// --device: names for the settings that select a device, also between ranks of one host,
// and the sweep of a benchmark over numbers of ranks.

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/internal/devices"
	"github.com/muster-mpi/muster/mpi"
)

// deviceNames lists what --device accepts.
func deviceNames() string { return strings.Join(devices.JobNames(), ", ") }

// deviceSettings returns the settings of a name; all others stay as configured.
func deviceSettings(name string) ([]string, error) {
	settings, ok := devices.JobSettings(name)
	if !ok {
		return nil, fmt.Errorf("--device %s: unknown device; use one of %s", name, deviceNames())
	}
	if _, err := mpi.ConfigFromEnv(settings); err != nil {
		return nil, fmt.Errorf("--device %s: %w", name, err)
	}
	return settings, nil
}

// sweepRanks runs a benchmark for several numbers of ranks and prints a table.
func sweepRanks(cmd *cobra.Command, b bench.Benchmark, f benchFlags) error {
	variants := f.variants
	if variants == nil {
		variants = b.Variants
	}
	p := bench.Printer{W: os.Stdout, JSON: f.json, B: b}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	if !f.json {
		fmt.Fprintln(os.Stdout, "# Muster", b.Title, "(of the rank with the most memory)")
		fmt.Fprintf(t, "ranks\tdevice\t%s\t\n", strings.Join(b.Sweep.Columns, "\t"))
	}
	args := passedOn(cmd.Flags(), b.Name)
	for _, n := range b.Sweep.Ranks {
		for _, d := range variants {
			results, err := benchmarkJob(cmd, n, append(slices.Clone(args), "--json", "--device="+d), os.Environ())
			if err != nil {
				return fmt.Errorf("%d ranks over %s: %w", n, d, err)
			}
			if f.json {
				for _, r := range results {
					p.Print(r)
				}
				continue
			}
			fmt.Fprintf(t, "%d\t%s\t", n, d)
			for _, column := range b.Sweep.Columns {
				metric, _, _ := strings.Cut(column, " (")
				i := slices.IndexFunc(results, func(r bench.Result) bool { return r.Metric == metric })
				if i < 0 {
					fmt.Fprint(t, "-\t")
					continue
				}
				fmt.Fprintf(t, "%.0f\t", results[i].Value)
			}
			fmt.Fprintln(t)
		}
	}
	return t.Flush()
}
