package main

// muster run --trace and muster trace. Rank 0 writes the trace when the job ends
// (mpi.Config.Trace); if the job has several hosts, the launcher fetches it.

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/trace"
)

// wantTrace sets the job up to write a trace. The result reports it after the job.
func wantTrace(file string, cfg *launch.Config) (show func(status int), err error) {
	if file == "" {
		return func(int) {}, nil
	}
	if !strings.HasSuffix(file, ".json") && !strings.HasSuffix(file, ".json.gz") {
		return nil, fmt.Errorf("--trace=%s: give the name of a file that ends in .json or .json.gz", file)
	}
	name, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("--trace=%s: %w", file, err)
	}
	if err := os.WriteFile(name, nil, 0o666); err != nil { // before the job
		return nil, fmt.Errorf("--trace=%s: %w; give the name of a writable file", file, err)
	}
	// Ranks on other hosts get the same name, since all must trace; only rank 0 writes, and
	// its agent gives it another.
	cfg.ExtraEnv = append(cfg.ExtraEnv, "MUSTER_TRACE="+name)
	cfg.Env = append(cfg.Env, "MUSTER_TRACE="+name)
	cfg.Remote.Fetch = launch.Fetch{Env: "MUSTER_TRACE", File: name}
	return func(status int) {
		info, err := os.Stat(name)
		switch {
		case status != 0:
			fmt.Fprintln(cfg.Output.Stderr, "muster: no trace: the job has failed")
		case err != nil || info.Size() == 0:
			fmt.Fprintln(cfg.Output.Stderr, "muster: no trace: rank 0 has written none. Programs that use Muster write it in Finalize, or at the end of mpi.Main")
		case cfg.Output.Quiet:
		default:
			fmt.Fprintf(cfg.Output.Stderr, "muster: the trace is in %s; \"muster trace %[1]s\" summarises it, and https://ui.perfetto.dev shows it\n", file)
		}
	}, nil
}

func newTraceCommand() *cobra.Command {
	var picture string
	cmd := &cobra.Command{
		Use:   "trace FILE",
		Short: "Summarise a trace: who waited for whom, and the critical path",
		Long: `trace reads a file that muster run --trace has written and prints the time in each
call, the ranks that waited for a late sender or receiver or at a collective, and the
critical path: the calls and computations that determined how long the job took, from the
first call to the end of the last.
--svg draws the timeline.

The file is in the Trace Event Format: the Perfetto UI (https://ui.perfetto.dev) and
chrome://tracing open it, with a process for each rank and messages as arrows.`,
		Example: `  muster run -n 4 --trace job.json ./prog
  muster trace job.json
  muster trace job.json --svg job.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := readTrace(args[0])
			if err != nil {
				return fmt.Errorf("trace: %s: %w", args[0], err)
			}
			a := t.Analyze()
			fmt.Fprint(cmd.OutOrStdout(), a.Text(t))
			if picture == "" {
				return nil
			}
			var b bytes.Buffer
			if err := a.WriteSVG(&b, t); err != nil {
				return fmt.Errorf("trace: %w", err)
			}
			if err := os.WriteFile(picture, b.Bytes(), 0o666); err != nil {
				return fmt.Errorf("trace: --svg: %w; give the name of a writable file", err)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&picture, "svg", "", "draw the timeline into this file")
	return cmd
}

// readTrace reads a trace, compressed or not.
func readTrace(file string) (*trace.Trace, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(file, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(text))
		if err == nil {
			text, err = io.ReadAll(z)
		}
		if err != nil {
			return nil, err
		}
	}
	return trace.Read(text)
}
