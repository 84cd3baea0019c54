package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Config says what to run. The zero value of each field but Ranks and Prog is
// right for most jobs.
type Config struct {
	// Ranks is the number of processes to start. With Hosts the default is the
	// sum of their slots.
	Ranks int
	// Prog is the path of the program, as exec.LookPath gives it.
	Prog string
	// Args are its arguments, without the program itself.
	Args []string
	// Env is the environment that the ranks get, besides what tells them their
	// place. Default: empty. Commands give os.Environ().
	Env []string
	// Dir is where they run, on all hosts. Default: the current directory.
	Dir string
	// ExtraEnv is added to the environment, on other hosts too. Of Env only
	// some variables travel: see travels.
	ExtraEnv []string

	// Hosts are the machines to run on, in the order of ranks. Default: this
	// one, without agents.
	Hosts []Host
	// RSH is the command that reaches a host, as ParseRSH gives it. Default:
	// ssh. Without it, a host that is this machine is reached directly.
	RSH []string
	// AgentPath is the path of muster on the hosts. Default: that of this one.
	AgentPath string
	// TreeWidth is how many agents the launcher, and each agent, starts itself.
	// Default: 16.
	TreeWidth int
	// StartTimeout is how long a stage of the start may take. Default: a minute
	// on several hosts, no limit on this one, where nothing can get lost.
	// Negative: no limit.
	StartTimeout time.Duration
	// Retry tries again, for as long as StartTimeout, to reach hosts that ssh
	// does not reach: in a cluster that is just being started names and servers
	// come late.
	Retry bool

	// Stdin is read by rank 0; the other ranks have none. Default: none for
	// rank 0 either.
	Stdin io.Reader
	// Stdout and Stderr take the output of all ranks, line by line. Stderr also
	// takes what Run itself has to say. Default: nowhere.
	Stdout, Stderr io.Writer

	// Bind says whether a rank is kept on certain cores. Default BindAuto: to
	// its share of the cores if there is at least one for each rank and no
	// cgroup quota, because a quota is not about particular cores.
	Bind Bind
	// Label says whether lines are marked with their rank. Default LabelAuto:
	// if there is more than one rank.
	Label Label
	// Quiet suppresses all that Run itself has to say; the exit status remains.
	Quiet bool

	// StuckAfter is how long nothing must have moved, while some ranks wait, before
	// Run reports who waits for whom and what the others do. Default: a minute, which no healthy program waits as a whole.
	// Negative: never.
	StuckAfter time.Duration
	// Grace is how long ranks may go on after one of them has died, so that
	// they can return errors and leave by themselves. They are then asked to
	// end, and killed after half of it again. Default: until for 500 ms, and 5 ms
	// for each rank per core, no rank has learnt of the death or ended, so that a
	// small job ends within a second of the last of these, and all ranks of a
	// large one learn of it.
	Grace time.Duration

	// Signals are passed on to the ranks. Default: none. Commands give a
	// channel that signal.Notify fills.
	Signals <-chan os.Signal

	blocks    []block       // the ranks of each host
	pingEvery time.Duration // how often a host is asked for a sign of life
}

// Bind is how ranks are kept on cores.
type Bind uint8

const (
	BindAuto Bind = iota
	BindCore      // each rank on its share of the cores, at least one
	BindNone      // where the kernel likes
)

// Label is when lines are marked with their rank.
type Label uint8

const (
	LabelAuto Label = iota
	LabelAlways
	LabelNever
)

// ParseBind reads the word of a flag.
func ParseBind(s string) (Bind, error) {
	switch s {
	case "auto", "":
		return BindAuto, nil
	case "core":
		return BindCore, nil
	case "none":
		return BindNone, nil
	}
	return 0, fmt.Errorf("%q is no way of binding: use auto, core or none", s)
}

// ParseLabel reads the word of a flag.
func ParseLabel(s string) (Label, error) {
	switch s {
	case "auto", "":
		return LabelAuto, nil
	case "always":
		return LabelAlways, nil
	case "never":
		return LabelNever, nil
	}
	return 0, fmt.Errorf("%q is no way of labelling: use auto, always or never", s)
}

// Result is how a job ended.
type Result struct {
	// Status is the exit status for the command: 0 if all ranks ended well,
	// else that of the first that did not, 128 + the signal if one killed it.
	Status int
	// Cause says in a sentence what ended the job early. Empty: nothing did.
	Cause string
	// Gets is how many requests for values came to the launcher. On several
	// hosts these are the ones that no agent could answer.
	Gets uint64
}

const (
	defaultStuckAfter = time.Minute
	defaultTreeWidth  = 16
	defaultStart      = time.Minute
	// A host that gives no sign of life silentPings times in a row is lost.
	defaultPing = 10 * time.Second
	silentPings = 6
	// maxRanks is what one machine can be asked for; beyond it descriptors and
	// process numbers run out long before the job does anything.
	maxRanks = 1 << 16
)

func (c *Config) complete() error {
	if len(c.Hosts) > 0 {
		if err := c.completeHosts(); err != nil {
			return err
		}
	}
	if c.Ranks < 1 || c.Ranks > maxRanks {
		return fmt.Errorf("launch: %d ranks: use 1 to %d", c.Ranks, maxRanks)
	}
	if c.Prog == "" {
		return errors.New("launch: no program to run")
	}
	if c.Stdout == nil {
		c.Stdout = io.Discard
	}
	if c.Stderr == nil {
		c.Stderr = io.Discard
	}
	if c.StuckAfter == 0 {
		c.StuckAfter = defaultStuckAfter
	}
	if c.Grace < 0 {
		return fmt.Errorf("launch: a grace of %v: give a time such as 5s", c.Grace)
	}
	return nil
}

func (c *Config) completeHosts() (err error) {
	for _, h := range c.Hosts {
		if err := checkHostName(h.Name); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	if c.Hosts, c.blocks, err = placeRanks(c.Hosts, c.Ranks); err != nil {
		return err
	}
	last := c.blocks[len(c.blocks)-1]
	c.Ranks = last.First + last.Count
	if c.Dir == "" {
		if c.Dir, err = os.Getwd(); err != nil {
			return fmt.Errorf("launch: %w", err)
		}
	}
	if c.AgentPath == "" {
		if c.AgentPath, err = os.Executable(); err != nil {
			return fmt.Errorf("launch: finding the path of muster for the agents: %w; give it with --agent-path", err)
		}
	}
	if c.TreeWidth == 0 {
		c.TreeWidth = defaultTreeWidth
	}
	if c.TreeWidth < 1 {
		return fmt.Errorf("launch: a tree of agents of width %d: use 1 or more", c.TreeWidth)
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = defaultStart
	}
	if c.pingEvery == 0 {
		c.pingEvery = defaultPing
	}
	return nil
}

func (c *Config) labelled() bool {
	return c.Label == LabelAlways || c.Label == LabelAuto && c.Ranks > 1
}
