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

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/netprobe"
)

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run [flags] PROG [ARGS...]",
		Short:   "Run a program as several ranks, on this machine or on several hosts",
		Long:    runHelp,
		Example: runExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("run: no program given; try: muster run -n 4 ./prog")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := runJob(cmd, &f, args); err != nil {
				if _, ended := err.(exitStatus); !ended {
					err = fmt.Errorf("run: %w", err)
				}
				return err
			}
			return nil
		},
	}
	cmd.SetHelpTemplate(runTemplate)
	fl := cmd.Flags()
	fl.SetInterspersed(false)
	fl.SetNormalizeFunc(otherNames)
	f.define(fl)
	return cmd
}

func runJob(cmd *cobra.Command, f *runFlags, args []string) error {
	cfg := launch.Config{Env: os.Environ(), Stdin: os.Stdin, Output: launch.Output{Stdout: os.Stdout, Stderr: os.Stderr}}
	if err := f.configure(cmd.Flags(), args, &cfg); err != nil {
		return err
	}
	profile, err := wantProfile(f.observe.profile, &cfg)
	if err != nil {
		return err
	}
	defer profile.clear()
	if profile.page != "" && f.observe.trace != "" {
		profile.trace = f.observe.trace
	}
	showTrace, err := wantTrace(f.observe.trace, &cfg)
	if err != nil {
		return err
	}
	if err := f.setVariables(&cfg); err != nil {
		return err
	}
	stopMetrics, err := serveMetrics(f.observe.metrics, &cfg)
	if err != nil {
		return err
	}
	defer stopMetrics()
	letHalt, err := f.hosts.keepLabAwake(&cfg)
	if err != nil {
		return err
	}
	defer letHalt()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwardedSignals()...)
	defer signal.Stop(signals)
	cfg.Signals = signals

	result, err := launch.Run(cmd.Context(), cfg)
	if err != nil {
		return err
	}
	profile.show(result.Status)
	showTrace(result.Status)
	return statusOf(result.Status)
}

// setVariables sets the variables of the ranks that flags stand for.
func (f *runFlags) setVariables(cfg *launch.Config) error {
	if f.hosts.lab != "" {
		labCores(cfg)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := f.front.set(self, cfg); err != nil {
		return err
	}
	if f.observe.pprof != "" {
		dir, err := filepath.Abs(f.observe.pprof)
		if err != nil {
			return fmt.Errorf("--pprof: %w", err)
		}
		cfg.ExtraEnv = append(cfg.ExtraEnv, "MUSTER_PPROF="+dir)
	}
	if f.ports != "" {
		if _, err := netprobe.ParsePorts(f.ports); err != nil {
			return fmt.Errorf("--port-range: %w", err)
		}
		cfg.ExtraEnv = append(cfg.ExtraEnv, "MUSTER_PORTS="+f.ports)
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
		return "", fmt.Errorf("%s is not in PATH; did you mean ./%s?", name, name)
	case here:
		return "", fmt.Errorf("%s is not executable; try: chmod +x %s", name, name)
	case strings.HasPrefix(name, "-"):
		return "", fmt.Errorf("%s looks like a flag; flags of run come before the program", name)
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound):
		return "", fmt.Errorf("there is no program %s", name)
	}
	return "", err
}
