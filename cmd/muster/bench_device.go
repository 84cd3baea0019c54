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
	"github.com/muster-mpi/muster/mpi"
)

// deviceRows lists the names; all other settings stay as configured.
var deviceRows = []struct {
	name     string
	settings []string
}{
	{"shm", nil},
	{"rd", overIWARP("rd", "srq")},
	{"rc", overIWARP("rc", "srq")},
	{"hybrid", overIWARP("hybrid", "srq")},
	{"ud", overIWARP("ud", "srq")},
	{"rd-posted", overIWARP("rd", "posted")},
	{"rd-rings", overIWARP("rd", "rings")},
	{"hybrid-rings", overIWARP("hybrid", "rings")},
	{"rc-rings", overIWARP("rc", "rings")},
	{"rc-few", overIWARP("rc", "few")},
	{"rd-strict", append(overIWARP("rd", "srq"), "MUSTER_STRICT=true")},
	{"rc-strict", append(overIWARP("rc", "srq"), "MUSTER_STRICT=true")},
	{"rd-encrypted", append(overIWARP("rd", "srq"), "MUSTER_ENCRYPT=on")},
	{"rc-encrypted", append(overIWARP("rc", "srq"), "MUSTER_ENCRYPT=on")},
	{"ofi", []string{"MUSTER_NETWORK=ofi", "MUSTER_NO_SHARED_MEMORY=true"}},
}

func overIWARP(channel, eager string) []string {
	return []string{"MUSTER_NETWORK=iwarp", "MUSTER_NO_SHARED_MEMORY=true", "MUSTER_CHANNEL=" + channel, "MUSTER_EAGER=" + eager}
}

func deviceNames() string {
	var names []string
	for _, row := range deviceRows {
		names = append(names, row.name)
	}
	return strings.Join(names, ", ")
}

// deviceSettings returns the settings of a name.
func deviceSettings(name string) ([]string, error) {
	for _, row := range deviceRows {
		if row.name != name {
			continue
		}
		if _, err := mpi.ConfigFromEnv(row.settings); err != nil {
			return nil, fmt.Errorf("--device %s: %w", name, err)
		}
		return row.settings, nil
	}
	return nil, fmt.Errorf("--device %s: unknown device; use one of %s", name, deviceNames())
}

// sweepRanks runs a benchmark for several numbers of ranks and prints a table.
func sweepRanks(cmd *cobra.Command, b bench.Benchmark, f benchFlags) error {
	devices := f.variants
	if devices == nil {
		devices = b.Variants
	}
	p := bench.Printer{W: os.Stdout, JSON: f.json, B: b}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	if !f.json {
		fmt.Fprintln(os.Stdout, "# Muster", b.Title, "(of the rank with the most memory)")
		fmt.Fprintf(t, "ranks\tdevice\t%s\t\n", strings.Join(b.Sweep.Columns, "\t"))
	}
	args := passedOn(cmd.Flags(), b.Name)
	for _, n := range b.Sweep.Ranks {
		for _, d := range devices {
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
