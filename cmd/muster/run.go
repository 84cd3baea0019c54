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
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/netprobe"
)

type runFlags struct {
	ranks        int
	mapBy        string
	bindings     bool
	timeout      time.Duration
	output       string
	wdir         string
	copy         bool
	pprof        string
	ports        string
	metrics      string
	verbose      bool
	bind         string
	label        string
	quiet        bool
	stuckAfter   time.Duration
	onStuck      string
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
	trace        string
	mpich        bool
	spares       int
}

// The values of --on-stuck.
const (
	stuckReport = "report"
	stuckEnd    = "end"
)

func newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] PROG [ARGS...]",
		Short: "Run a program as several ranks, on this machine or on several hosts",
		Long: `run starts PROG as several processes, the ranks of one job, and waits for them.

Flags of run come before PROG; everything after PROG is passed to the program. A
PROG without a slash is searched in PATH. PROG can be a Go program that uses
Muster, a C program built with MPICH, or any command. A C or Fortran program uses the
MPI library that it finds; with --mpich that is Muster's libmpich.so.12, which programs
built for MPICH accept (make cabi).

Without -n, run starts a rank for each core that this process may use: those of its
affinity mask, limited by the CPU quota of its cgroup.

Several programs, separated by ":", are one job (MPMD). Each needs -n, and ranks are
numbered program by program. Flags before the first program are for the whole job; a
later program may have its own -n, --wdir and --env.

Rank 0 receives the standard input. Output is printed line by line, labelled with
the rank if there is more than one. Progress displays that end their line with a
carriage return are printed as they come. --output DIR writes the output of rank 3 to
DIR/rank-3.out and DIR/rank-3.err instead.

If a rank fails, the calls of the other ranks return an error that names it, and
the ranks can exit by themselves. When for half a second (longer if many ranks
share a core) no rank has noticed the failure or exited, run kills the remaining
ranks; --grace sets a fixed time instead. The exit status is that of the first rank
that failed, or 128 + the number of the signal that killed it.

--spares K starts K processes more, which wait, asleep, in mpi.Recover and take the places of
ranks that fail; MUSTER_ON_FAILURE is then return. The program sees a world without them.
On several hosts they get slots that the ranks leave: first on hosts without ranks, and as
evenly as possible.

run forwards SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 to the ranks; a second
SIGINT kills them. SIGQUIT (Ctrl-\) prints which rank waits for which; a second
SIGQUIT is forwarded, and Go programs print their stacks.

--timeout ends a job that takes too long: run prints which rank waits for which, and
exits with status 124.

run sets GOMAXPROCS of each rank to its share of the cores, unless it is set already.
With --bind-to core, a rank runs only on its share of the cores; with socket or numa, on
all cores of the sockets or NUMA nodes of its share. --report-bindings prints the result.
Consecutive ranks get neighboring cores; --map-by socket or numa assigns them to the
sockets or NUMA nodes in turn, and --map-by node to the hosts in turn, which is the same
as slot on one host.

--profile prints a one-screen summary when the job ends: messages by length and
protocol, communication memory by purpose, connections, and traffic between ranks.
--profile=FILE.json writes it to a file instead. --profile arrivals shows, for each
call site, when the ranks reached its collectives and how far apart they were;
--profile=arrivals:FILE.svg also draws the most imbalanced calls.

--trace FILE.json writes the calls of all ranks, with their times and messages, for the
Perfetto UI and muster trace; .json.gz compresses it. MUSTER_TRACE_LIMIT bounds it.

--metrics ADDR serves the counters of all ranks at http://ADDR/metrics while the job
runs: messages, bytes, wait time, retransmissions, memory and processor time. Whoever
reaches the address can read them.

On several hosts (--hosts, --hostfile), run assigns ranks in blocks, host by host.
Without -n it uses all slots; hosts without a slot count share the ranks evenly. run
starts a muster agent on each host through ssh, which must not ask for a password,
or through another command (--rsh). No port is opened for this. muster, the program
and the working directory must have the same paths on all hosts; with --copy the hosts
get the program, but not its libraries and data, from here. Remote ranks get
the local MUSTER_..., GO..., PATH and LD_LIBRARY_PATH variables and those given by
--env. Without --hosts and --hostfile, run reads the host file named by
HYDRA_HOST_FILE or OMPI_MCA_orte_default_hostfile, or uses the hosts that a batch system
has allocated: SLURM_JOB_NODELIST, or the file named by PBS_NODEFILE.
With more than --tree-width hosts, hosts start agents on further hosts, so ssh must
also work between the hosts.`,
		Example: `  muster run -n 8 ./prog
  muster run ./prog                            a rank for each core
  muster run -n 4 --bind-to none ./prog --its-own-flag
  muster run -n 1 ./server : -n 3 ./client     two programs in one job
  muster run -n 4 --timeout 10m --output logs ./prog
  muster run -n 4 --stuck-after 10s ./prog     report a stuck job after 10 seconds
  muster run -n 4 --stuck-after 10s --on-stuck end ./prog   and end it
  muster run --hosts a:4,b:4,c:4 -n 8 --spares 4 ./prog   replace ranks that fail
  muster run -n 3 hostname                     any command
  muster run --mpich -n 4 ./cprog              a program built with MPICH, on Muster
  muster run -n 2 sh -c 'echo $PMI_RANK'
  muster run -n 4 --profile ./prog             print a summary at the end
  muster run -n 4 --trace job.json ./prog && muster trace job.json
  muster run -n 4 --pprof profiles ./prog && go tool pprof -top profiles/rank-0.pprof
  muster run -n 4 --metrics localhost:9100 ./prog
  muster run --hosts a:4,b:4 ./prog            eight ranks on two hosts
  muster run --hostfile hosts -n 6 ./prog      lines such as "a:4" or "a slots=4"
  muster run --hosts a:4,b:4 -n 6 --map-by node ./prog
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
	fl.SetNormalizeFunc(otherNames)
	fl.IntVarP(&f.ranks, "ranks", "n", 0, "number of ranks, also -np (default: the number of cores, or with several hosts of slots)")
	fl.IntVar(&f.spares, "spares", 0, "number of processes to start in addition, which wait in mpi.Recover and replace ranks that fail")
	fl.StringVar(&f.mapBy, "map-by", "slot", "assign consecutive ranks to one host after the other (slot) or to the hosts in turn (node), and within a host to cores, sockets or NUMA nodes in turn (core, socket, numa): for example node,socket")
	fl.StringVar(&f.bind, "bind-to", "auto", "bind each rank to its share of the cores (core), or to the sockets or NUMA nodes of its share (socket, numa); none; or auto (core if there is a core for each rank)")
	fl.BoolVar(&f.bindings, "report-bindings", false, "print the cores that each rank is bound to")
	fl.StringVar(&f.label, "label", "auto", "label output lines with their rank: always, never, or auto (if there is more than one rank)")
	fl.StringVar(&f.output, "output", "", "write the output of each rank to files of this directory, which is created")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but the output of the ranks")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "log the steps of the job to the standard error")
	fl.DurationVar(&f.timeout, "timeout", 0, "time limit for the job (default: none)")
	fl.DurationVar(&f.stuckAfter, "stuck-after", time.Minute, "if ranks wait and nothing progresses for this long, print which rank waits for which and what the others do; 0: never")
	fl.StringVar(&f.onStuck, "on-stuck", stuckReport, "what follows --stuck-after: repeat the report while nothing progresses (report), or print it once and end the job with status 124, unless a rank computes (end)")
	fl.DurationVar(&f.grace, "grace", 0, "time for the remaining ranks to exit after one has failed (default: adaptive, see above)")
	fl.StringVar(&f.hosts, "hosts", "", "hosts to run on, with the number of slots of each: a:4,b:4; also --host")
	fl.StringVar(&f.hostfile, "hostfile", "", "file with one host per line: host:4 or host slots=4")
	fl.StringVar(&f.rsh, "rsh", "", "command that starts a process on a host (default: ssh); {host} is replaced, otherwise the host is appended")
	fl.StringVar(&f.lab, "lab", "", "run on the hosts of a lab (see muster lab); --lab=NAME selects one of several")
	fl.Lookup("lab").NoOptDefVal = defaultLab
	fl.BoolVar(&f.copy, "copy", false, "send the program to the hosts with the job, so that they need not have it")
	fl.StringVar(&f.agentPath, "agent-path", "", "path of muster on the hosts (default: the path of this executable)")
	fl.IntVar(&f.treeWidth, "tree-width", 16, "number of hosts that one process starts agents on; those agents start further ones")
	fl.DurationVar(&f.startTimeout, "start-timeout", time.Minute, "time limit for each start-up stage on several hosts; 0: no limit")
	fl.StringVar(&f.wdir, "wdir", "", "working directory of the ranks (default: the current directory)")
	fl.StringArrayVar(&f.env, "env", nil, "set an environment variable of the ranks: NAME=VALUE, or NAME to copy the local value; may be repeated")
	fl.BoolVar(&f.mpich, "mpich", false, "make programs built for MPICH load Muster's libmpich.so.12, by LD_LIBRARY_PATH; on several hosts, its path must be the same on all")
	fl.StringVar(&f.profile, "profile", "", "print a summary when the job ends; =FILE.json writes it to a file; arrivals, =arrivals:FILE.svg, =arrivals:FILE.json: arrival times at collectives")
	fl.Lookup("profile").NoOptDefVal = profileText
	fl.StringVar(&f.trace, "trace", "", "write the calls and messages of all ranks to this file, for muster trace and the Perfetto UI; its name ends in .json or .json.gz")
	fl.StringVar(&f.pprof, "pprof", "", "make each rank write a CPU profile for go tool pprof to this directory: rank-0.pprof, ...")
	fl.StringVar(&f.metrics, "metrics", "", "serve the counters of the running job at this address, in the text format of Prometheus: localhost:9100")
	fl.StringVar(&f.ports, "port-range", "", "UDP and TCP ports of ranks for messages between hosts: 7000-7099 (MUSTER_PORTS)")
	return cmd
}

func runJob(cmd *cobra.Command, f runFlags, args []string) error {
	cfg := launch.Config{
		Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Quiet: f.quiet, Verbose: f.verbose, StuckAfter: f.stuckAfter, Grace: f.grace, Timeout: f.timeout,
		ReportBindings: f.bindings, Copy: f.copy, Spares: f.spares,
	}
	if f.spares < 0 {
		return fmt.Errorf("run: --spares %d: use 0 or more", f.spares)
	}
	if cmd.Flags().Changed("ranks") && f.ranks < 1 {
		return fmt.Errorf("run: -n %d: a job has at least one rank", f.ranks)
	}
	if f.quiet && f.verbose {
		return errors.New("run: -q and -v exclude each other")
	}
	slots, err := hostFlags(cmd, f, &cfg)
	if err == nil {
		err = programFlags(f, args, slots, &cfg)
	}
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if f.timeout < 0 {
		return fmt.Errorf("run: --timeout %v: give a time such as 10m", f.timeout)
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
	if f.onStuck != stuckReport && f.onStuck != stuckEnd {
		return fmt.Errorf("run: --on-stuck %s: use %s or %s", f.onStuck, stuckReport, stuckEnd)
	}
	if cfg.EndStuck = f.onStuck == stuckEnd; cfg.EndStuck && f.stuckAfter == 0 {
		return errors.New("run: --on-stuck end needs a time: --stuck-after is 0, which is never")
	}
	if cfg.Bind, err = launch.ParseBind(f.bind); err != nil {
		return fmt.Errorf("run: --bind-to: %w", err)
	}
	if cfg.MapBy, err = launch.ParseMapBy(f.mapBy); err != nil {
		return fmt.Errorf("run: --map-by: %w", err)
	}
	if f.output != "" {
		if cfg.Output, err = filepath.Abs(f.output); err != nil {
			return fmt.Errorf("run: --output: %w", err)
		}
	}
	if cfg.Label, err = launch.ParseLabel(f.label); err != nil {
		return fmt.Errorf("run: --label: %w", err)
	}
	profile, err := wantProfile(f.profile, &cfg)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	defer profile.clear()
	showTrace, err := wantTrace(f.trace, &cfg)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if err := settingFlags(f, &cfg); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	stopMetrics, err := serveMetrics(f.metrics, &cfg)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	defer stopMetrics()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	defer signal.Stop(signals)
	cfg.Signals = signals

	result, err := launch.Run(cmd.Context(), cfg)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	profile.show(result.Status)
	showTrace(result.Status)
	if result.Status != 0 {
		return exitStatus(result.Status)
	}
	return nil
}

// settingFlags evaluates the flags that are settings of the ranks.
func settingFlags(f runFlags, cfg *launch.Config) error {
	if f.lab != "" {
		labCores(cfg)
	}
	if f.mpich {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("--mpich: %w", err)
		}
		if err := useMPICH(self, cfg); err != nil {
			return err
		}
	}
	if f.pprof != "" {
		dir, err := filepath.Abs(f.pprof)
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

// otherNames accepts the names that other launchers have for flags of run.
func otherNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	switch name {
	case "host":
		name = "hosts"
	case "bind": // also the name in earlier versions
		name = "bind-to"
	case "np":
		name = "ranks"
	}
	return pflag.NormalizedName(name)
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
