package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/launch"
)

type runFlags struct {
	ranks      int
	bind       string
	label      string
	quiet      bool
	stuckAfter time.Duration
}

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] PROG [ARGS...]",
		Short: "Start a program as several ranks on this machine",
		Long: `run starts PROG as several processes, the ranks of one job, and waits for them.

Flags stand before PROG; what follows it belongs to the program. PROG is
looked for as a shell does: a name without a slash in PATH. It may be a Go
program that uses Muster, a C program built with MPICH, or any command.

Input goes to rank 0. Output comes line by line, marked with the rank if there
is more than one.

If a rank dies, the calls of the others return an error that names it; after half
a second those that are still there are ended. The exit status is that of the
first rank that failed, or 128 + the signal that killed it.

SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to the ranks; a second
SIGINT kills them. SIGQUIT (Ctrl-\) prints who waits for whom; twice in a row it
is passed on, and Go programs print their stacks.

A rank gets its share of the cores as GOMAXPROCS, unless that is set already.`,
		Example: `  muster run -n 8 ./prog
  muster run -n 4 --bind none ./prog --its-own-flag
  muster run -n 4 --stuck-after 10s ./prog     tell early who waits for whom
  muster run -n 3 hostname                     any command
  muster run -n 2 sh -c 'echo $PMI_RANK'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("run: no program given; try: muster run -n 4 ./prog")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runJob(cmd, f, args) },
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false)
	fl.IntVarP(&f.ranks, "ranks", "n", 1, "number of ranks")
	fl.StringVar(&f.bind, "bind", "auto", "keep each rank on its share of the cores: core, none, or auto (core if there is a core for each rank)")
	fl.StringVar(&f.label, "label", "auto", "mark lines with their rank: always, never, or auto (if there is more than one rank)")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but the output of the ranks")
	fl.DurationVar(&f.stuckAfter, "stuck-after", time.Minute, "when nothing has moved for this long, print who waits for whom; 0: never")
	return cmd
}

func runJob(cmd *cobra.Command, f runFlags, args []string) error {
	cfg := launch.Config{
		Ranks: f.ranks, Args: args[1:], Env: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Quiet: f.quiet, StuckAfter: f.stuckAfter,
	}
	var err error
	if f.ranks < 1 {
		return fmt.Errorf("run: -n %d: a job has at least one rank", f.ranks)
	}
	if f.stuckAfter < 0 {
		return fmt.Errorf("run: --stuck-after %v: give a time such as 10s, or 0 for never", f.stuckAfter)
	}
	if f.stuckAfter == 0 {
		cfg.StuckAfter = -1
	}
	if cfg.Bind, err = launch.ParseBind(f.bind); err != nil {
		return fmt.Errorf("run: --bind: %w", err)
	}
	if cfg.Label, err = launch.ParseLabel(f.label); err != nil {
		return fmt.Errorf("run: --label: %w", err)
	}
	if cfg.Prog, err = findProgram(args[0]); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT)
	defer signal.Stop(signals)
	cfg.Signals = signals

	result, err := launch.Run(cmd.Context(), cfg)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if result.Status != 0 {
		return exitStatus(result.Status)
	}
	return nil
}

// findProgram is exec.LookPath with advice.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	info, statErr := os.Stat(name)
	here := statErr == nil && !info.IsDir()
	switch {
	case here && filepath.Ext(name) == ".go":
		return "", fmt.Errorf("%s is Go source; build it first: go build -o prog %s && muster run -n 4 ./prog", name, name)
	case statErr == nil && info.IsDir():
		return "", fmt.Errorf("%s is a directory; build the program first: go build -o prog ./%s", name, strings.TrimPrefix(name, "./"))
	case here && !strings.Contains(name, "/"):
		return "", fmt.Errorf("there is no %s in PATH; did you mean ./%s?", name, name)
	case here:
		return "", fmt.Errorf("%s is not executable; try: chmod +x %s", name, name)
	case strings.HasPrefix(name, "-"):
		return "", fmt.Errorf("%s looks like a flag; flags of run stand before the program", name)
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("there is no program %s", name)
	}
	return "", err
}
