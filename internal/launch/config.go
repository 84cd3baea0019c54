package launch

import (
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// Config describes a job. The zero value of each field except Ranks and Prog is a
// useful default.
type Config struct {
	// Ranks is the number of processes to start. With Hosts the default is the
	// sum of their slots.
	Ranks int
	// Spares is the number of processes to start in addition. They wait in mpi.Recover and
	// take the places of failed ranks. Default: none, and a failure ends the job unless
	// its ranks ask for something else.
	Spares int
	// Respawn is the number of processes that may be started in place of failed ranks, which
	// mpi.Recover asks for. Default: none.
	Respawn int
	// Prog is the path of the program, as returned by exec.LookPath.
	Prog string
	// Args are its arguments, without the program itself.
	Args []string
	// Programs are the programs of a job with several (MPMD), in the order of their
	// ranks, in place of Ranks, Prog and Args. Default: that one program.
	Programs []Program
	// Env is the environment of the ranks, to which Run adds the variables that
	// identify a rank. Default: empty. Commands pass os.Environ().
	Env []string
	// Dir is the working directory on all hosts. Default: the current directory.
	Dir string
	// ExtraEnv is added to the environment, also on other hosts. Only some
	// variables of Env are set on other hosts: see exported.
	ExtraEnv []string

	// Hosts are the machines to run on, in the order of ranks. Default: this
	// machine, without agents.
	Hosts []Host
	// Remote describes how to reach them.
	Remote Remote

	// MapBy is the order in which ranks are assigned to hosts and cores. Default: host
	// by host, and neighboring cores.
	MapBy MapBy
	// Bind controls core binding. Default BindAuto: bind each rank to its share of
	// the cores if there is at least one core for each rank and no cgroup quota; a
	// quota does not apply to particular cores.
	Bind Bind
	// ReportBindings makes Run report the cores of each rank.
	ReportBindings bool

	// Stdin is the input of rank 0; the other ranks have none. Default: none.
	Stdin io.Reader
	// Output describes the output of the ranks and of Run. Default: discarded.
	Output Output
	// Limits bound the time of the job. Default: those of its fields.
	Limits Limits

	// ExitLeaves lets ranks exit with status 0 without Finalize, as MPICH does. The job
	// fails only if all others wait for them. Default: such a rank has failed.
	ExitLeaves bool

	// Metrics, if not nil, is called when the job begins, with a function that returns
	// the current counters of all ranks, or none when the job has ended. The ranks need
	// the variable MUSTER_METRICS. Default: none.
	Metrics func(read func() []RankMetrics)

	// Signals are forwarded to the ranks. Default: none. Commands pass a channel
	// registered with signal.Notify.
	Signals <-chan os.Signal

	layout          layout        // the ranks of each host
	spawned         bool          // ranks of a running job have asked for it
	names           *serviceNames // of all jobs that are spawned from one
	replacements    *replacements // with respawn: of the job and its replacements
	replacementName string        // the name of a replacement in it
}

// Remote describes how a job reaches its hosts. None of it applies to a job on this machine.
type Remote struct {
	// RSH is the command that starts a process on a host, as returned by
	// ParseRSH. Default: ssh, and no remote shell for this machine.
	RSH []string
	// AgentPath is the path of muster on the hosts. Default: that of this process.
	AgentPath string
	// Copy sends the programs to the hosts with the job. Default: they are there, at
	// the same paths.
	Copy bool
	// TreeWidth is the number of agents that the launcher, and each agent, starts
	// itself. Default: 16.
	TreeWidth int
	// Retry makes Run retry hosts that ssh cannot reach, until Limits.Start: in a
	// cluster that is still starting, names and servers become available late.
	Retry bool
	// Fetch is a file that rank 0 writes on its host and that is fetched from there, if
	// Hosts is not empty. Default: none.
	Fetch Fetch

	pingEvery time.Duration // interval of the pings to a host; on this machine too it bounds decisions (unreachable.go)
}

// Output describes where the output of the ranks goes, and what Run itself prints.
type Output struct {
	// Stdout and Stderr receive the output of all ranks, line by line. Stderr also
	// receives the messages of Run itself. Default: discarded.
	Stdout, Stderr io.Writer
	// Label controls whether output lines are labelled with their rank. Default
	// LabelAuto: if there is more than one rank.
	Label Label
	// Dir is a directory in which the output of each rank is written to two files,
	// in place of Stdout and Stderr. If one cannot be written, Run reports it and the
	// status is not 0. Default: none.
	Dir string
	// Quiet suppresses the messages of Run itself, except that output is lost; the exit
	// status remains.
	Quiet bool
	// Verbose makes Run log the steps of the job to Stderr.
	Verbose bool
}

// Limits bound the time of a job and of its parts.
type Limits struct {
	// Start limits each stage of the start. Default: one minute on several
	// hosts, no limit on this machine. Negative: no limit.
	Start time.Duration
	// Job limits the time of the job. Run then reports which rank waits for which
	// and ends the ranks; Result.Status is TimeoutStatus. Default: no limit.
	Job time.Duration
	// Stuck is how long ranks must wait without any progress before Run
	// reports which rank waits for which and what the others do. Default: one
	// minute. Negative: never.
	Stuck time.Duration
	// EndStuck makes Run end the job with the first such report, unless a rank computes;
	// Result.Status is TimeoutStatus. Default: the report is repeated while nothing
	// progresses, and the job goes on.
	EndStuck bool
	// Grace is how long the other ranks may run after a rank has failed, so that
	// their calls can return errors and they can exit by themselves. Run then sends
	// SIGTERM, and SIGKILL after half of that time again. Default: until no rank has
	// noticed the failure or exited for 500 ms plus 5 ms for each rank per core. A
	// small job then ends within a second, and all ranks of a large job still notice
	// the failure.
	Grace time.Duration
}

// Bind is a core binding policy.
type Bind uint8

const (
	BindAuto   Bind = iota
	BindCore        // each rank on its share of the cores, at least one
	BindNone        // not bound
	BindSocket      // each rank on all cores of the sockets of its share
	BindNUMA        // the same for NUMA nodes
)

// Program is one of the programs of a job with several.
type Program struct {
	// Ranks, Prog and Args are as in Config.
	Ranks int
	Prog  string
	Args  []string
	// Dir and Env are the working directory and additional variables of its ranks.
	// Default: Config.Dir, and none.
	Dir string
	Env []string
}

// Label is a policy for labelling output lines with their rank.
type Label uint8

const (
	LabelAuto Label = iota
	LabelAlways
	LabelNever
)

// TimeoutStatus is the status of a job that has exceeded Limits.Job, as of timeout(1), or
// was ended because of Limits.EndStuck.
const TimeoutStatus = 124

// ParseBind parses the value of the flag --bind-to.
func ParseBind(s string) (Bind, error) {
	switch s {
	case "auto", "":
		return BindAuto, nil
	case "core":
		return BindCore, nil
	case "socket":
		return BindSocket, nil
	case "numa":
		return BindNUMA, nil
	case "none":
		return BindNone, nil
	}
	return 0, fmt.Errorf("unknown binding %q: use auto, core, socket, numa or none", s)
}

// ParseLabel parses the value of the flag --label.
func ParseLabel(s string) (Label, error) {
	switch s {
	case "auto", "":
		return LabelAuto, nil
	case "always":
		return LabelAlways, nil
	case "never":
		return LabelNever, nil
	}
	return 0, fmt.Errorf("unknown label policy %q: use auto, always or never", s)
}

// Result describes how a job ended.
type Result struct {
	// Status is the exit status for the command: 0 if all ranks succeeded, otherwise
	// that of the first rank that failed, or 128 + the signal that killed it.
	Status int
	// Cause describes in one sentence what ended the job early. Empty: nothing did.
	Cause string
	// Gets is the number of PMI get requests that reached the launcher. On several
	// hosts these are the requests that no agent could answer.
	Gets uint64
}

const (
	defaultStuckAfter = time.Minute
	defaultTreeWidth  = 16
	defaultStart      = time.Minute
	// maxRanks and maxHosts limit a job, maxHere the ranks of each host, which has no process
	// IDs and descriptors for more. A mistake in a number is reported before it takes all
	// memory.
	maxRanks = 1 << 24
	maxHosts = 1 << 16
	maxHere  = 1 << 16
)

func (c *Config) complete() error {
	if !c.spawned { // muster run in the environment of a rank of a spawned job
		c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool { return nameOf(kv) == pmi.EnvParent })
		c.names = new(serviceNames)
	}
	if err := c.sumRanks(); err != nil {
		return err
	}
	if err := c.completeSpares(); err != nil {
		return err
	}
	if err := c.completeRespawn(); err != nil {
		return err
	}
	if len(c.Hosts) > 0 {
		if err := c.completeHosts(); err != nil {
			return err
		}
	} else {
		c.Ranks += c.Spares
	}
	if most := min(maxRanks, maxHere*max(1, len(c.Hosts))); c.Ranks < 1 || c.Ranks > most {
		return fmt.Errorf("launch: %d ranks on %d hosts: use 1 to %d", c.Ranks, max(1, len(c.Hosts)), most)
	}
	if len(c.Hosts) == 0 {
		c.layout = oneHost(c.Ranks)
	}
	if err := c.completePrograms(); err != nil {
		return err
	}
	if c.Remote.pingEvery == 0 {
		var err error
		if c.Remote.pingEvery, err = pingInterval(c.Env, c.ExtraEnv); err != nil {
			return err
		}
	}
	c.Output.complete()
	return c.Limits.complete(len(c.Hosts) > 0)
}

func (c *Config) completeHosts() (err error) {
	for _, h := range c.Hosts {
		if err := checkHostName(h.Name); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	if c.Hosts, c.layout, err = assignSpares(c.Hosts, c.Ranks, c.Spares, c.MapBy); err != nil {
		return err
	}
	c.Ranks = len(c.layout.host)
	if c.Dir == "" {
		if c.Dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	return c.Remote.complete()
}

func (r *Remote) complete() (err error) {
	if r.AgentPath == "" {
		if r.AgentPath, err = os.Executable(); err != nil {
			return fmt.Errorf("launch: find the path of muster for the agents: %w; set it with --agent-path", err)
		}
	}
	if r.TreeWidth == 0 {
		r.TreeWidth = defaultTreeWidth
	}
	if r.TreeWidth < 1 {
		return fmt.Errorf("launch: agent tree of width %d: use 1 or more", r.TreeWidth)
	}
	return nil
}

func (o *Output) complete() {
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
}

// labels reports whether the lines of a number of ranks are labelled.
func (o *Output) labels(ranks int) bool {
	return o.Label == LabelAlways || o.Label == LabelAuto && ranks > 1
}

// whole returns the writer of a job's only rank without labels, for which it need not be split
// into lines; nil if there is none.
func (o *Output) whole(ranks int, isStderr bool) io.Writer {
	switch {
	case ranks > 1 || o.labels(ranks) || o.Dir != "":
		return nil
	case isStderr:
		return o.Stderr
	}
	return o.Stdout
}

// complete fills in the defaults of a job on this machine or, if remote, on hosts.
func (l *Limits) complete(remote bool) error {
	if l.Job < 0 {
		return fmt.Errorf("launch: time limit of %v: use a time such as 10m", l.Job)
	}
	if l.Grace < 0 {
		return fmt.Errorf("launch: grace of %v: use a time such as 5s", l.Grace)
	}
	if l.Stuck == 0 {
		l.Stuck = defaultStuckAfter
	}
	if l.Start == 0 && remote {
		l.Start = defaultStart
	}
	return nil
}
