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
	"runtime/debug"
	"strings"
	"time"

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

// traceFlags select what is shown of a trace.
type traceFlags struct {
	picture    string
	from, to   time.Duration // to 0: the end
	path, json bool
}

func newTraceCommand() *cobra.Command {
	var f traceFlags
	cmd := &cobra.Command{
		Use:   "trace FILE",
		Short: "Summarise a trace: who waited for whom, and the critical path",
		Long: `trace reads a file that muster run --trace has written and prints the time in each
call, the ranks that waited for a late sender or receiver or at a collective, and the
critical path: the calls and computations that determined how long the job took, from the
first call to the end of the last.

--svg draws the timeline with the steps of the critical path as numbers, and --path lists
these steps. --from and --to select a part of the time for both, since the end of Init.

The file is in the Trace Event Format: the Perfetto UI (https://ui.perfetto.dev) and
chrome://tracing open it, with a process for each rank and messages as arrows.`,
		Example: `  muster run -n 4 --trace job.json ./prog
  muster trace job.json
  muster trace job.json --svg job.svg
  muster trace job.json --svg part.svg --path --from 5ms --to 7ms
  muster trace job.json --json | jq .late_senders`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := readTrace(args[0])
			if err != nil {
				return fmt.Errorf("trace: %s: %w", args[0], err)
			}
			if err := f.show(cmd.OutOrStdout(), t); err != nil {
				return fmt.Errorf("trace: %w", err)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.picture, "svg", "", "draw the timeline into this file")
	fl.DurationVar(&f.from, "from", 0, "begin of the part that --svg and --path show (default: the first call)")
	fl.DurationVar(&f.to, "to", 0, "end of this part (default: the end of the last call)")
	fl.BoolVar(&f.path, "path", false, "list the steps of the critical path")
	addJSONFlag(cmd, &f.json)
	return cmd
}

func (f *traceFlags) show(w io.Writer, t *trace.Trace) error {
	a := t.Analyze()
	window := a.Span
	if f.from > 0 {
		window.Begin = int64(f.from)
	}
	if f.to > 0 {
		window.End = int64(f.to)
	}
	if window.Begin >= window.End && window != a.Span {
		return fmt.Errorf("--from %v --to %v: nothing is between; the trace is from %v to %v", time.Duration(window.Begin), time.Duration(window.End), time.Duration(a.Begin), time.Duration(a.End))
	}
	report := a.Report(t)
	if f.json {
		if err := printJSON(w, report); err != nil {
			return err
		}
	} else {
		fmt.Fprint(w, report.Text())
		if f.path {
			fmt.Fprint(w, report.PathText(window))
		}
	}
	if f.picture == "" {
		return nil
	}
	var b bytes.Buffer
	if err := a.WriteSVG(&b, t, window); err != nil {
		return err
	}
	if err := os.WriteFile(f.picture, b.Bytes(), 0o666); err != nil {
		return fmt.Errorf("--svg: %w; give the name of a writable file", err)
	}
	return nil
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

// readCalls reads as many calls of a trace as are needed for advice, which is a part of a very
// long one.
func readCalls(file string) (*trace.Trace, error) {
	const (
		most   = 12 << 20
		memory = 1600 << 20 // with all that is made of them
	)
	debug.SetMemoryLimit(memory)
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	return trace.ReadPart(in, most)
}
