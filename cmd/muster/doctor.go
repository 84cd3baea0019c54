package main

// muster doctor: find what would prevent a job from starting, make it hang or slow it
// down, on this host and between hosts. The checks are in internal/doctor.

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/doctor"
	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/mpi"
)

type doctorFlags struct {
	hosts, hostfile string
	rsh, agentPath  string
	timeout         time.Duration
	json, verbose   bool

	// Hidden flags: the doctor starts itself with them on other hosts and as helper
	// processes.
	answer bool
	role   string
}

func newDoctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check one or several hosts for problems that stop or slow down jobs",
		Long: `doctor checks this host and prints one line per check: ok, a warning (jobs run,
but slower than possible) or a problem (jobs do not run), with advice for the latter two.

With --hosts or --hostfile, as in muster run, doctor also checks those hosts and the
connections between them. It starts muster there as muster run does. Each host connects
to every address of every other host and sends packets of full size; doctor compares
versions and clocks. Slot counts after a host name are ignored. As in muster run,
HYDRA_HOST_FILE may name the hosts.

The exit status is 1 if there are problems, and 2 if doctor itself failed.`,
		Example: `  muster doctor                             this host
  muster doctor -v                          with measurements and why each check matters
  muster doctor --hosts a,b,c               also these hosts, through ssh
  muster doctor --hosts a,b --rsh 'ip netns exec {host}'
  muster doctor --json | jq .problems`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return runDoctor(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.hosts, "hosts", "", "hosts to check besides this one, such as a,b or a:4,b:4")
	fl.StringVar(&f.hostfile, "hostfile", "", "file with one host per line, as in muster run")
	fl.StringVar(&f.rsh, "rsh", "", "command that starts a process on a host, such as 'ip netns exec {host}' (default: ssh)")
	fl.StringVar(&f.agentPath, "agent-path", "", "path of muster on the other hosts (default: the same as here)")
	fl.DurationVar(&f.timeout, "timeout", 20*time.Second, "time limit for each step on each host")
	fl.BoolVar(&f.json, "json", false, "print the report as JSON")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "also print what was measured and why each check matters")
	fl.BoolVar(&f.answer, "answer", false, "answer the requests of a doctor on another host")
	fl.StringVar(&f.role, "role", "", "run as a helper process of a trial")
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
	cfg := doctor.Config{Muster: mpi.Version(), Self: []string{self, "doctor", "--role"}}
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
		style := doctor.Style{Verbose: f.verbose}
		if usesColor(cmd.OutOrStdout()) {
			style.Paint = paintLevel
		}
		err = report.WriteText(cmd.OutOrStdout(), style)
	}
	if err != nil {
		return fmt.Errorf("doctor: %w", err)
	}
	return statusOf(min(1, report.Problems))
}

// paintLevel colors the word of a level.
func paintLevel(level doctor.Level, word string) string {
	return [...]string{doctor.OK: colorGreen, doctor.Warning: colorYellow, doctor.Problem: colorRed}[level] + word + colorOff
}

func statusOf(code int) error {
	if code != 0 {
		return exitStatus(code)
	}
	return nil
}

// hostNames returns the hosts that muster run would use.
func (f *doctorFlags) hostNames() ([]string, error) {
	var cfg launch.Config
	if _, err := (&hostFlags{list: f.hosts, file: f.hostfile}).find(&cfg); err != nil {
		return nil, err
	}
	names := make([]string, len(cfg.Hosts))
	for i, h := range cfg.Hosts {
		names[i] = h.Name
	}
	return names, nil
}

// remoteCommand returns the command that starts a doctor on a host, built as muster run
// builds that of its agents.
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
