package main

// muster doctor: what would keep a job from starting, hang it or slow it down, on
// this host and between several. The checks are in internal/doctor.

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/doctor"
	"github.com/muster-mpi/muster/internal/launch"
)

type doctorFlags struct {
	hosts, hostfile string
	rsh, agentPath  string
	timeout         time.Duration
	json, verbose   bool

	// What the doctor asks of muster on other hosts and of other processes.
	answer bool
	role   string
}

func newDoctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this host, or several, for what stops or slows down jobs",
		Long: `doctor looks at this host and prints a line for each check: ok, a warning
(jobs run, but slower than they could) or a problem (jobs do not run), and for
the latter two what to do.

With --hosts or --hostfile, which are those of muster run, it looks at those hosts
as well, and whether they reach each other: it starts muster there in the way in
which muster run would, lets each host connect to every address of every other,
send packets of full size, and compares versions and clocks. Slots after a host's
name are read and ignored. As for muster run, HYDRA_HOST_FILE may name the hosts.

The exit status is 1 if there are problems, 2 if the doctor could not work at all.`,
		Example: `  muster doctor                             this host
  muster doctor -v                          with what was seen, and why it matters
  muster doctor --hosts a,b,c               these as well, through ssh
  muster doctor --hosts a,b --rsh 'ip netns exec {host}'
  muster doctor --json | jq .problems`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return runDoctor(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.hosts, "hosts", "", "hosts to check besides this one, such as a,b or a:4,b:4")
	fl.StringVar(&f.hostfile, "hostfile", "", "file with a host in each line, as muster run takes it")
	fl.StringVar(&f.rsh, "rsh", "", "command that reaches a host, such as 'ip netns exec {host}' (default: ssh)")
	fl.StringVar(&f.agentPath, "agent-path", "", "path of muster on the other hosts (default: the same as here)")
	fl.DurationVar(&f.timeout, "timeout", 20*time.Second, "how long each step may take on each host")
	fl.BoolVar(&f.json, "json", false, "print all that was found as JSON")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print also why each check matters and what was seen")
	fl.BoolVar(&f.answer, "answer", false, "answer the questions of a doctor on another host")
	fl.StringVar(&f.role, "role", "", "be one of the processes that the doctor needs for a trial")
	for _, hidden := range []string{"answer", "role"} {
		fl.Lookup(hidden).Hidden = true
	}
	return cmd
}

func runDoctor(cmd *cobra.Command, f doctorFlags) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	cfg := doctor.Config{Muster: moduleVersion(), Self: []string{self, "doctor", "--role"}}
	switch {
	case f.role != "":
		return statusOf(doctor.Role(f.role, os.Stdin, os.Stdout))
	case f.answer:
		return doctor.Answer(cmd.Context(), cfg, os.Stdin, os.Stdout)
	}
	_, cfg.Provider, _ = strings.Cut(os.Getenv("MUSTER_NETWORK"), "ofi:")
	cfg.Interface = os.Getenv("MUSTER_INTERFACE")
	plan := doctor.Plan{Config: cfg, Timeout: f.timeout}
	if plan.Hosts, err = f.hostNames(); err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	if plan.Command, err = f.remoteCommand(self); err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	survey, err := plan.Ask(cmd.Context())
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	report := doctor.NewReport(survey)
	if f.json {
		err = report.WriteJSON(cmd.OutOrStdout())
	} else {
		err = report.WriteText(cmd.OutOrStdout(), f.verbose)
	}
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	return statusOf(min(1, report.Problems))
}

func statusOf(code int) error {
	if code != 0 {
		return exitStatus(code)
	}
	return nil
}

// hostNames finds the hosts where muster run would.
func (f *doctorFlags) hostNames() ([]string, error) {
	var cfg launch.Config
	if err := findHosts(runFlags{hosts: f.hosts, hostfile: f.hostfile}, &cfg); err != nil {
		return nil, err
	}
	names := make([]string, len(cfg.Hosts))
	for i, h := range cfg.Hosts {
		names[i] = h.Name
	}
	return names, nil
}

// remoteCommand reports how to start a doctor on a host: as muster run starts its
// agents.
func (f *doctorFlags) remoteCommand(self string) (func(host string) []string, error) {
	var template []string
	var err error
	if f.rsh != "" {
		if template, err = launch.ParseRSH(f.rsh); err != nil {
			return nil, fmt.Errorf("--rsh: %w", err)
		}
	}
	path := self
	if f.agentPath != "" {
		path = f.agentPath
	}
	return func(host string) []string {
		return launch.RemoteCommand(template, host, path, "doctor", "--answer")
	}, nil
}
