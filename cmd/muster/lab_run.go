package main

// Running programs on a lab: a command on one host, or a job on all of them (muster run
// --lab), which is muster run --hosts with the hosts and the remote command of the lab.

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/internal/launch"
)

func newLabExecCommand(name *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec HOST COMMAND [ARGS...]",
		Short: "Run a command on a host",
		Long: `exec replaces itself by COMMAND on a host. COMMAND sees the interfaces and addresses of
that host and can reach the other hosts by name. Flags of exec come before HOST.`,
		Example: `  muster lab exec h1 ip addr
  muster lab exec h1 bash
  muster lab exec h2 tcpdump -i eth0`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "all" {
				return errors.New("lab: exec runs a command on one host; for all hosts use muster run --lab COMMAND")
			}
			l, hosts, err := findLabHosts(*name, args[0])
			if err != nil {
				return err
			}
			become := l.Command(cmd.Context(), hosts[0], args[1], args[2:]...)
			if become.Err != nil {
				return fmt.Errorf("lab: %w", become.Err)
			}
			return fmt.Errorf("lab: %s: %w", become.Path, syscall.Exec(become.Path, become.Args, os.Environ()))
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// setLab sets a job up to run on all hosts of a lab. The hosts have no slot counts, so
// the ranks are divided evenly.
func (f *hostFlags) setLab(cfg *launch.Config) error {
	if f.list != "" || f.file != "" || f.rsh != "" {
		return errors.New("--lab excludes --hosts, --hostfile and --rsh: the lab provides all of them")
	}
	if err := lab.Usable(); err != nil {
		return err
	}
	l, err := lab.Find(f.lab)
	if err != nil {
		return err
	}
	for _, h := range l.Hosts() {
		cfg.Hosts = append(cfg.Hosts, launch.Host{Name: h})
	}
	cfg.Remote.RSH, err = launch.ParseRSH(l.Rsh())
	return err
}

// newLabAwakeCommand is for lab.KeepAwake.
func newLabAwakeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "awake", Short: "Keep the cores of a virtual machine awake until the input ends", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return lab.SpinIdle(cmd.InOrStdin()) },
	}
}

// keepLabAwake makes the cables of a lab keep their rate while a job runs that leaves cores idle.
func (f *hostFlags) keepLabAwake(cfg *launch.Config) (stop func(), err error) {
	if f.lab == "" || countRanks(cfg) > runtime.NumCPU() {
		return func() {}, nil
	}
	l, err := lab.Find(f.lab)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return l.KeepAwake(self)
}

func countRanks(cfg *launch.Config) int {
	ranks := cfg.Ranks
	for _, p := range cfg.Programs {
		ranks += p.Ranks
	}
	return ranks
}

// ranksOnCores is the setting that tells ranks how many share the cores of a machine.
const ranksOnCores = "MUSTER_RANKS_ON_CORES"

// labCores tells the ranks that all hosts of a lab share the cores of this machine, unless
// the user has set something else. Ranks that believe that they have a core each wait
// without yielding it.
func labCores(cfg *launch.Config) {
	if os.Getenv(ranksOnCores) == "" {
		cfg.ExtraEnv = append([]string{fmt.Sprintf("%s=%d", ranksOnCores, max(countRanks(cfg), len(cfg.Hosts)))}, cfg.ExtraEnv...)
	}
}
