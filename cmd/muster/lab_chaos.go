package main

// muster lab chaos: random faults on a lab while a job runs. internal/chaos has the
// schedule and carries it out.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/bytesize"
	"github.com/muster-mpi/muster/internal/chaos"
	"github.com/muster-mpi/muster/internal/lab"
)

type chaosFlags struct {
	seed        uint64
	faults, shm string
	options     chaos.Options
	create      lab.Config
	dryRun      bool
	hang        time.Duration
}

// statusHang is the exit status if a job hangs or leaves processes behind, as of timeout(1).
const statusHang = 124

func newLabChaosCommand(name *string) *cobra.Command {
	var f chaosFlags
	cmd := &cobra.Command{
		Use:   "chaos [flags] [-- RUN-ARGUMENTS]",
		Short: "Inject random faults into a lab while a job runs on it",
		Long: `chaos injects faults into a lab, on a schedule that follows from --seed, --duration,
--faults, --every, --longest, --kills and the size of the lab only. --dry-run prints the
schedule. Arguments after "--" are those of muster run: chaos runs this job on the hosts of
the lab, and ends when the job does. Without them it injects faults until --duration is
over, whatever runs on the lab.

With --hosts it creates a lab for the run. Otherwise it uses the lab of --name.

Faults that kill: rank (any rank but the last one), agent (of a host), host (all its
processes), launcher. Faults that end after at most --longest: cut (a cable), drop,
duplicate, corrupt and delay (a share of the packets that arrive on a cable), rate (of a
cable), stop (SIGSTOP of a rank), shm (fill /dev/shm). --faults takes a list of them, mild
for those that do not kill, or all.

The job gets a /dev/shm of --shm on each host, so that filling it affects no other program.
Which single packets are affected is chosen by the kernel and does not follow from the seed.

The exit status is that of the job. If the job has not ended --hang after the last fault,
chaos prints which rank waits for which and the stacks of the ranks, kills the job, and
exits with status 124. It does so too if processes are left on the hosts when the job has
ended.`,
		Example: `  muster lab chaos --seed 7 --hosts 4 --rails 2 -- -n 8 ./prog
  muster lab chaos --seed 7 --faults mild --duration 1m -- -n 8 ./prog
  muster lab chaos --seed 7 --hosts 3 --faults rank,drop -- -n 6 --env MUSTER_ON_FAILURE=return ./prog
  muster lab chaos --seed 7 --hosts 4 --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("seed") {
				f.seed = uint64(rand.Uint32())
			}
			if cmd.Flags().Changed("hosts") && cmd.Flags().Changed("name") {
				return errors.New("lab: --hosts creates a lab for the run, and --name selects an existing one; use one of them")
			}
			return labChaos(cmd, *name, f, args)
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false)
	fl.Uint64Var(&f.seed, "seed", 0, "number that determines the schedule (default: a new one, which is printed)")
	fl.DurationVar(&f.options.Duration, "duration", 10*time.Second, "time in which faults are injected")
	fl.StringVar(&f.faults, "faults", "all", "list of faults, mild, or all")
	fl.DurationVar(&f.options.Every, "every", 500*time.Millisecond, "mean time between faults")
	fl.DurationVar(&f.options.Longest, "longest", 2*time.Second, "longest duration of a fault that ends")
	fl.IntVar(&f.options.Kills, "kills", 2, "largest number of faults that kill")
	fl.IntVar(&f.create.Hosts, "hosts", 0, "create a lab with this number of hosts for the run (default: use the lab of --name)")
	fl.IntVar(&f.create.Rails, "rails", 1, "number of rails of the lab that is created")
	fl.StringVar(&f.shm, "shm", "64M", "size of /dev/shm on each host for the job")
	fl.DurationVar(&f.hang, "hang", time.Minute, "time for the job to end after the last fault")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the schedule only")
	return cmd
}

func labChaos(cmd *cobra.Command, name string, f chaosFlags, args []string) error {
	var err error
	if f.options.Faults, err = chaos.ParseFaults(f.faults); err != nil {
		return err
	}
	shm, err := bytesize.Parse(f.shm)
	if err != nil || shm < 1<<20 {
		return fmt.Errorf("lab: --shm %q: use a size of at least 1M", f.shm)
	}
	f.options.Hosts, f.options.Rails = f.create.Hosts, f.create.Rails
	if f.dryRun && f.create.Hosts > 0 {
		return printSchedule(cmd.OutOrStdout(), f)
	}
	if err := lab.Usable(); err != nil {
		return err
	}
	var l *lab.Lab
	if f.create.Hosts > 0 {
		if l, err = lab.Create(f.create); err == nil {
			defer func() {
				if err := l.Remove(); err != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), err)
				}
			}()
		}
	} else {
		l, err = lab.Find(name)
	}
	if err != nil {
		return err
	}
	f.options.Hosts, f.options.Rails = len(l.Hosts()), l.Rails()
	if f.dryRun {
		return printSchedule(cmd.OutOrStdout(), f)
	}
	log := lineLog(cmd.ErrOrStderr())
	log(fmt.Sprintf("seed %d, %s, %s, faults for %v", f.seed, count(len(l.Hosts()), "host"), count(l.Rails(), "rail"), f.options.Duration))
	target := chaos.Target{Lab: l, ShmLimit: shm, Log: log}
	ctx, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	events := chaos.Schedule(f.seed, f.options)
	if len(args) == 0 {
		return chaos.Run(ctx, target, events)
	}
	return chaosJob(ctx, cmd, f, target, events, args)
}

func printSchedule(out io.Writer, f chaosFlags) error {
	for _, e := range chaos.Schedule(f.seed, f.options) {
		fmt.Fprintln(out, e)
	}
	return nil
}

// lineLog returns a function that prints lines of chaos, also from several goroutines.
func lineLog(out io.Writer) func(string) {
	var mu sync.Mutex
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, "chaos:", line)
	}
}

// chaosJob runs a job and a schedule at once.
func chaosJob(ctx context.Context, cmd *cobra.Command, f chaosFlags, target chaos.Target, events []chaos.Event, args []string) error {
	job, err := startChaosJob(cmd, f, target, args)
	if err != nil {
		return err
	}
	target.Launcher = job.Process.Pid
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var faults error
	over := make(chan struct{})
	go func() {
		defer close(over)
		faults = chaos.Run(ctx, target, events)
	}()
	ended := make(chan error, 1)
	go func() { ended <- job.Wait() }()
	limit := time.NewTimer(f.options.Duration + f.hang)
	defer limit.Stop()
	stop := context.AfterFunc(ctx, func() { _ = job.Process.Signal(syscall.SIGTERM) }) // fails only if it has ended
	hang := false
	select {
	case err = <-ended:
	case <-limit.C:
		hang = true
		target.Log(fmt.Sprintf("seed %d: the job has not ended %v after the last fault", f.seed, f.hang))
		err = dumpAndKill(target, job, ended)
	}
	stop()
	cancel()
	<-over
	if left := chaos.Leftovers(target.Lab, 10*time.Second); len(left) > 0 {
		hang = true
		target.Log(fmt.Sprintf("seed %d: the job has ended, and left %s", f.seed, describeAll(left)))
		for _, h := range target.Lab.Hosts() {
			faults = errors.Join(faults, target.Lab.Kill(h))
		}
	}
	switch {
	case faults != nil:
		return faults
	case hang:
		return exitStatus(statusHang)
	case err != nil:
		target.Log(fmt.Sprintf("seed %d: the job ended with %v", f.seed, err))
		return exitStatus(max(1, job.ProcessState.ExitCode()))
	}
	return nil
}

// startChaosJob starts muster run on the hosts of a lab. Each host has a /dev/shm of its own.
func startChaosJob(cmd *cobra.Command, f chaosFlags, target chaos.Target, args []string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("lab: find this executable: %w", err)
	}
	// Each "ip netns exec" has a mount namespace of its own.
	script := fmt.Sprintf(`mount -t tmpfs -o size=%d muster /dev/shm && exec "$0" "$@"`, target.ShmLimit)
	run := []string{"run", "--hosts", strings.Join(target.Lab.Hosts(), ","), "--rsh", target.Lab.Rsh() + " sh -c '" + script + "'"}
	job := exec.Command(self, append(run, args...)...)
	job.Stdin, job.Stdout, job.Stderr = os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := job.Start(); err != nil {
		return nil, fmt.Errorf("lab: start the job: %w", err)
	}
	return job, nil
}

// dumpAndKill makes a job that hangs print what its ranks wait for and their stacks, and
// ends it.
func dumpAndKill(target chaos.Target, job *exec.Cmd, ended <-chan error) error {
	for _, step := range []func(){
		func() { _ = job.Process.Signal(syscall.SIGQUIT) }, // the launcher prints the waits
		func() { chaos.Stacks(target.Lab) },
		func() { _ = job.Process.Kill() }, // fails only if it has ended
	} {
		step()
		select {
		case err := <-ended:
			return err
		case <-time.After(3 * time.Second):
		}
	}
	return <-ended
}

// describeAll lists processes with their command lines.
func describeAll(pids []int) string {
	var text []string
	for _, pid := range pids {
		args, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") // empty if it has ended
		text = append(text, fmt.Sprintf("%d (%s)", pid, strings.TrimSpace(strings.ReplaceAll(string(args), "\x00", " "))))
	}
	return strings.Join(text, ", ")
}
