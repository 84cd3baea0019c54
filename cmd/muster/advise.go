package main

// muster advise: from the trace of a program to what it should change.

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/advise"
)

func newAdviseCommand() *cobra.Command {
	var asJSON bool
	var page string
	cmd := &cobra.Command{
		Use:   "advise TRACE | -- [FLAGS OF RUN] PROGRAM [ARGS...]",
		Short: "Say what a program should change to run faster",
		Long: `advise reads a trace that muster run --trace has written, or runs a program with one, and
lists what the program should change, the largest gain first: the call site, what was
seen, the change, and at most how much of the run time it saves. It finds ranks with more
work than others before a collective, a rank that sends to each of the others in turn,
short messages in a row, long transfers without computation beside them, receives that are
posted late, and ranks on the wrong hosts. Call sites of programs in C and Fortran have
lines if the program has debug information (-g).

Gains are bounds from the trace alone. For a prediction, advise replays the trace with the
change: computation stays as recorded, what waits for what follows, and messages between
hosts share their ports, whose bandwidth the trace shows. Change one thing, and measure again.`,
		Example: `  muster advise -- -n 4 ./prog
  muster run -n 4 --trace job.json ./prog && muster advise job.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			file := ""
			switch {
			case cmd.ArgsLenAtDash() == 0 && len(args) > 0:
				dir, err := os.MkdirTemp("", "muster-advise-")
				if err != nil {
					return fmt.Errorf("advise: %w", err)
				}
				defer os.RemoveAll(dir)
				file = filepath.Join(dir, "trace.json")
				if err := runTraced(cmd, file, args); err != nil {
					return err
				}
			case len(args) == 1:
				file = args[0]
			default:
				return fmt.Errorf("advise: give a trace, or -- and the arguments of muster run")
			}
			t, err := readCalls(file)
			if err != nil {
				return fmt.Errorf("advise: %s: %w", file, err)
			}
			all := advise.Find(t)
			if page != "" {
				if err := writeAdvicePage(page, args, t, all); err != nil {
					return fmt.Errorf("advise: --html: %w", err)
				}
			}
			if !asJSON {
				_, err = fmt.Fprint(cmd.OutOrStdout(), advise.Text(t, all))
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(append([]advise.Finding{}, all...)) // [], not null
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().StringVar(&page, "html", "", "also write the advice into this file, as a page with the communication matrix and a timeline")
	return cmd
}

// runTraced is muster run --trace=file with more arguments. What the program prints goes to
// standard error, because standard output is for the advice.
func runTraced(cmd *cobra.Command, file string, args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	run := exec.CommandContext(cmd.Context(), self, append([]string{"run", "--quiet", "--trace", file}, args...)...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, cmd.ErrOrStderr(), cmd.ErrOrStderr()
	if err := run.Run(); err != nil {
		return fmt.Errorf("advise: the program failed: %w", err)
	}
	return nil
}
