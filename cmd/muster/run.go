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
	ranks        int
	bind         string
	label        string
	quiet        bool
	stuckAfter   time.Duration
	grace        time.Duration
	hosts        string
	hostfile     string
	rsh          string
	lab          string
	agentPath    string
	treeWidth    int
	startTimeout time.Duration
	env          []string
	profile      string
}

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] PROG [ARGS...]",
		Short: "Run a program as several ranks, on this machine or on several hosts",
		Long: `run starts PROG as several processes, the ranks of one job, and waits for them.

Flags of run come before PROG; everything after PROG is passed to the program. A
PROG without a slash is searched in PATH. PROG can be a Go program that uses
Muster, a C program built with MPICH, or any command.

Rank 0 receives the standard input. Output is printed line by line, labelled with
the rank if there is more than one.

If a rank fails, the calls of the other ranks return an error that names it, and
the ranks can exit by themselves. When for half a second (longer if many ranks
share a core) no rank has noticed the failure or exited, run kills the remaining
ranks; --grace sets a fixed time instead. The exit status is that of the first rank
that failed, or 128 + the number of the signal that killed it.

run forwards SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 to the ranks; a second
SIGINT kills them. SIGQUIT (Ctrl-\) prints which rank waits for which; a second
SIGQUIT is forwarded, and Go programs print their stacks.

run sets GOMAXPROCS of each rank to its share of the cores, unless it is set already.

--profile prints a one-screen summary when the job ends: messages by length and
protocol, communication memory by purpose, connections, and traffic between ranks.
--profile=FILE.json writes it to a file instead. --profile arrivals shows, for each
call site, when the ranks reached its collectives and how far apart they were;
--profile=arrivals:FILE.svg also draws the most imbalanced calls.

On several hosts (--hosts, --hostfile), run assigns ranks in blocks, host by host.
Without -n it uses all slots; hosts without a slot count share the ranks evenly. run
starts a muster agent on each host through ssh, which must not ask for a password,
or through another command (--rsh). No port is opened for this. muster, the program
and the working directory must have the same paths on all hosts. Remote ranks get
the local MUSTER_..., GO..., PATH and LD_LIBRARY_PATH variables and those given by
--env. Without --hosts and --hostfile, run reads the host file named by
HYDRA_HOST_FILE or OMPI_MCA_orte_default_hostfile.
With more than --tree-width hosts, hosts start agents on further hosts, so ssh must
also work between the hosts.`,
		Example: `  muster run -n 8 ./prog
  muster run -n 4 --bind none ./prog --its-own-flag
  muster run -n 4 --stuck-after 10s ./prog     report a stuck job after 10 seconds
  muster run -n 3 hostname                     any command
  muster run -n 2 sh -c 'echo $PMI_RANK'
  muster run -n 4 --profile ./prog             print a summary at the end
  muster run --hosts a:4,b:4 ./prog            eight ranks on two hosts
  muster run --hostfile hosts -n 6 ./prog      lines such as "a:4" or "a slots=4"
  muster run --hosts h1,h2 -n 4 --rsh 'ip netns exec {host}' ./prog
  muster run --lab -n 16 ./prog                on the hosts of muster lab
  muster run --hosts a,b --env OMP_NUM_THREADS=1 --env HOME ./prog`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("run: no program given; try: muster run -n 4 ./prog")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := profileWord(cmd, &f, args)
			if err != nil {
				return err
			}
			return runJob(cmd, f, args)
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false)
	fl.IntVarP(&f.ranks, "ranks", "n", 1, "number of ranks (with several hosts the default is all slots)")
	fl.StringVar(&f.bind, "bind", "auto", "bind each rank to its share of the cores: core, none, or auto (core if there is a core for each rank)")
	fl.StringVar(&f.label, "label", "auto", "label output lines with their rank: always, never, or auto (if there is more than one rank)")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but the output of the ranks")
	fl.DurationVar(&f.stuckAfter, "stuck-after", time.Minute, "if ranks wait and nothing progresses for this long, print which rank waits for which and what the others do; 0: never")
	fl.DurationVar(&f.grace, "grace", 0, "time for the remaining ranks to exit after one has failed (default: adaptive, see above)")
	fl.StringVar(&f.hosts, "hosts", "", "hosts to run on, with the number of slots of each: a:4,b:4")
	fl.StringVar(&f.hostfile, "hostfile", "", "file with one host per line: host:4 or host slots=4")
	fl.StringVar(&f.rsh, "rsh", "", "command that starts a process on a host (default: ssh); {host} is replaced, otherwise the host is appended")
	fl.StringVar(&f.lab, "lab", "", "run on the hosts of a lab (see muster lab); --lab=NAME selects one of several")
	fl.Lookup("lab").NoOptDefVal = defaultLab
	fl.StringVar(&f.agentPath, "agent-path", "", "path of muster on the hosts (default: the path of this executable)")
	fl.IntVar(&f.treeWidth, "tree-width", 16, "number of hosts that one process starts agents on; those agents start further ones")
	fl.DurationVar(&f.startTimeout, "start-timeout", time.Minute, "time limit for each start-up stage on several hosts; 0: no limit")
	fl.StringArrayVar(&f.env, "env", nil, "set an environment variable of the ranks: NAME=VALUE, or NAME to copy the local value; may be repeated")
	fl.StringVar(&f.profile, "profile", "", "print a summary when the job ends; =FILE.json writes it to a file; arrivals, =arrivals:FILE.svg, =arrivals:FILE.json: arrival times at collectives")
	fl.Lookup("profile").NoOptDefVal = profileText
	return cmd
}

func runJob(cmd *cobra.Command, f runFlags, args []string) error {
	cfg := launch.Config{
		Ranks: f.ranks, Args: args[1:], Env: os.Environ(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Quiet: f.quiet, StuckAfter: f.stuckAfter, Grace: f.grace,
	}
	err := hostFlags(cmd, f, &cfg)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if f.ranks < 1 {
		return fmt.Errorf("run: -n %d: a job has at least one rank", f.ranks)
	}
	if f.grace < 0 {
		return fmt.Errorf("run: --grace %v: give a time such as 5s, or 0 for the default", f.grace)
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
	if len(cfg.Hosts) > 0 {
		cfg.Prog = args[0] // each host resolves it
	} else if cfg.Prog, err = findProgram(args[0]); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	profile, err := wantProfile(f.profile, &cfg)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	defer profile.clear()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT)
	defer signal.Stop(signals)
	cfg.Signals = signals

	result, err := launch.Run(cmd.Context(), cfg)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	profile.show(result.Status)
	if result.Status != 0 {
		return exitStatus(result.Status)
	}
	return nil
}

// hostFlags evaluates the flags that select hosts and variables.
func hostFlags(cmd *cobra.Command, f runFlags, cfg *launch.Config) (err error) {
	for _, kv := range f.env {
		name, _, given := strings.Cut(kv, "=")
		if name == "" {
			return fmt.Errorf("--env %q: give NAME=VALUE, or NAME", kv)
		}
		if value, set := os.LookupEnv(name); !given && set {
			kv = name + "=" + value
		} else if !given {
			return fmt.Errorf("--env %s: the variable is not set here; use --env %s=VALUE", name, name)
		}
		cfg.ExtraEnv = append(cfg.ExtraEnv, kv)
	}
	if cmd.Flags().Changed("start-timeout") {
		cfg.StartTimeout = f.startTimeout
		if f.startTimeout < 0 {
			return fmt.Errorf("--start-timeout %v: give a time such as 30s, or 0 for no limit", f.startTimeout)
		}
		if f.startTimeout == 0 {
			cfg.StartTimeout = -1
		}
	}
	if cmd.Flags().Changed("lab") {
		err = labHosts(f, cfg)
	} else {
		err = findHosts(f, cfg)
	}
	if err != nil {
		return err
	}
	if len(cfg.Hosts) == 0 {
		for _, name := range []string{"rsh", "agent-path", "tree-width"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s needs --hosts or --hostfile", name)
			}
		}
		return nil
	}
	if !cmd.Flags().Changed("ranks") {
		cfg.Ranks = 0
	}
	if f.treeWidth < 1 {
		return fmt.Errorf("--tree-width %d: use 1 or more", f.treeWidth)
	}
	cfg.AgentPath, cfg.TreeWidth = f.agentPath, f.treeWidth
	if f.rsh != "" {
		if cfg.RSH, err = launch.ParseRSH(f.rsh); err != nil {
			return fmt.Errorf("--rsh %q: %w", f.rsh, err)
		}
	}
	return nil
}

// hostfileVariables name a host file in clusters set up for other launchers, for
// example by the Kubernetes MPI operator. Hosts may come up late in such clusters.
var hostfileVariables = []string{"HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile"}

func findHosts(f runFlags, cfg *launch.Config) (err error) {
	switch {
	case f.hosts != "" && f.hostfile != "":
		return errors.New("--hosts and --hostfile exclude each other: use one")
	case f.hosts != "":
		if cfg.Hosts, err = launch.ParseHosts(f.hosts); err != nil {
			return fmt.Errorf("--hosts: %w", err)
		}
		return nil
	case f.hostfile != "":
		return readHostfile(f.hostfile, "--hostfile", cfg)
	}
	for _, name := range hostfileVariables {
		if path := os.Getenv(name); path != "" {
			cfg.Retry = true
			return readHostfile(path, name, cfg)
		}
	}
	return nil
}

func readHostfile(path, from string, cfg *launch.Config) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if cfg.Hosts, err = launch.ParseHostfile(string(text)); err != nil {
		return fmt.Errorf("%s: %s: %w", from, path, err)
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
