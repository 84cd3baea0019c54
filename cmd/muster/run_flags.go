package main

// The flags of muster run, grouped by what they control. Each group defines its flags by a
// table and sets its part of the job.

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/internal/advise"
	"github.com/muster-mpi/muster/internal/launch"
	"github.com/muster-mpi/muster/internal/traffic"
)

// flagRow is a flag: the variable that it sets, whose value is the default, its name,
// shorthand and help.
type flagRow struct {
	to                any
	name, short, help string
}

func defineFlags(fl *pflag.FlagSet, rows []flagRow) {
	for _, r := range rows {
		switch to := r.to.(type) {
		case *int:
			fl.IntVarP(to, r.name, r.short, *to, r.help)
		case *bool:
			fl.BoolVarP(to, r.name, r.short, *to, r.help)
		case *string:
			fl.StringVarP(to, r.name, r.short, *to, r.help)
		case *time.Duration:
			fl.DurationVarP(to, r.name, r.short, *to, r.help)
		case *[]string:
			fl.StringArrayVarP(to, r.name, r.short, *to, r.help)
		default:
			panic(fmt.Sprintf("flag --%s of type %T", r.name, to))
		}
	}
}

type runFlags struct {
	ranks, spares int
	respawn       int
	wdir, ports   string
	settings      string // a file
	env           []string
	front         frontFlags

	mapping mappingFlags
	output  outputFlags
	limits  limitFlags
	hosts   hostFlags
	observe observeFlags
}

// define adds all flags.
func (f *runFlags) define(fl *pflag.FlagSet) {
	defineFlags(fl, []flagRow{
		{&f.ranks, "ranks", "n", "number of ranks, also -np (default: the number of cores, or with several hosts of slots)"},
		{&f.spares, "spares", "", "number of processes to start in addition, which wait in mpi.Recover and replace ranks that fail"},
		{&f.respawn, "respawn", "", "start up to so many processes in place of ranks that fail; mpi.Recover puts them in their places"},
		{&f.wdir, "wdir", "", "working directory of the ranks (default: the current directory)"},
		{&f.env, "env", "", "set an environment variable of the ranks: NAME=VALUE, or NAME to copy the local value; may be repeated"},
		{&f.settings, "settings", "", "file with settings of the ranks and their mapping, as muster tune --from writes it; variables and flags that are set have precedence"},
		{&f.ports, "port-range", "", "UDP and TCP ports of ranks for messages between hosts: 7000-7099 (MUSTER_PORTS)"},
	})
	defineFlags(fl, f.front.rows())
	f.mapping.define(fl)
	f.output.define(fl)
	f.limits.define(fl)
	f.hosts.define(fl)
	f.observe.define(fl)
}

// configure sets the job up as the flags say, except for what is observed of it.
func (f *runFlags) configure(fl *pflag.FlagSet, args []string, cfg *launch.Config) (err error) {
	if f.spares < 0 {
		return fmt.Errorf("--spares %d: use 0 or more", f.spares)
	}
	if f.respawn < 0 {
		return fmt.Errorf("--respawn %d: use 0 or more", f.respawn)
	}
	if fl.Changed("ranks") && f.ranks < 1 {
		return fmt.Errorf("-n %d: a job has at least one rank", f.ranks)
	}
	cfg.Spares, cfg.Respawn = f.spares, f.respawn
	if cfg.ExtraEnv, err = variables(f.env); err != nil {
		return err
	}
	if err := f.applySettings(fl.Changed("map-by"), cfg); err != nil {
		return err
	}
	if err := f.output.set(cfg); err != nil {
		return err
	}
	slots, err := f.hosts.set(fl, cfg)
	if err != nil {
		return err
	}
	if err := f.setPrograms(args, slots, cfg); err != nil {
		return err
	}
	f.hosts.addSlots(cfg)
	if err := f.limits.set(fl, cfg); err != nil {
		return err
	}
	return f.mapping.set(cfg)
}

// mappingFlags assign ranks to hosts and cores.
type mappingFlags struct {
	mapBy, bind string
	report      bool
}

func (f *mappingFlags) define(fl *pflag.FlagSet) {
	f.mapBy, f.bind = "slot", "auto"
	defineFlags(fl, []flagRow{
		{&f.mapBy, "map-by", "", "assign consecutive ranks to one host after the other (slot) or to the hosts in turn (node), or ranks that talk to each other in a trace to one host (traffic=TRACE), and within a host to cores, sockets or NUMA nodes in turn (core, socket, numa): for example node,socket"},
		{&f.bind, "bind-to", "", "bind each rank to its share of the cores (core), or to the sockets or NUMA nodes of its share (socket, numa); none; or auto (core if there is a core for each rank)"},
		{&f.report, "report-bindings", "", "print the cores that each rank is bound to"},
	})
}

// trafficWord begins a value of --map-by that names a trace.
const trafficWord = "traffic="

func (f *mappingFlags) set(cfg *launch.Config) (err error) {
	cfg.ReportBindings = f.report
	if cfg.Bind, err = launch.ParseBind(f.bind); err != nil {
		return fmt.Errorf("--bind-to: %w", err)
	}
	words := strings.Split(f.mapBy, ",")
	file := ""
	for i, word := range words {
		if name, ok := strings.CutPrefix(word, trafficWord); ok {
			file, words[i] = name, "slot" // hosts get as many ranks as by slot
		}
	}
	if cfg.MapBy, err = launch.ParseMapBy(strings.Join(words, ",")); err != nil {
		return fmt.Errorf("--map-by: %w", err)
	}
	if file != "" {
		if cfg.MapBy.Traffic, err = readTraffic(file); err != nil {
			return fmt.Errorf("--map-by traffic=%s: %w", file, err)
		}
	}
	return nil
}

// readTraffic returns the traffic of the messages of a trace.
func readTraffic(file string) (*traffic.Matrix, error) {
	t, err := readCalls(file)
	if err != nil {
		return nil, err
	}
	m := advise.Traffic(t)
	if m.Total() == 0 {
		return nil, errors.New("the trace has no messages between ranks, only collectives, which any placement suits; leave the flag out")
	}
	return m, nil
}

// outputFlags control what is printed.
type outputFlags struct {
	dir, label     string
	quiet, verbose bool
}

func (f *outputFlags) define(fl *pflag.FlagSet) {
	f.label = "auto"
	defineFlags(fl, []flagRow{
		{&f.label, "label", "", "label output lines with their rank: always, never, or auto (if there is more than one rank)"},
		{&f.dir, "output", "", "write the output of each rank to files of this directory, which is created"},
		{&f.quiet, "quiet", "q", "print nothing but the output of the ranks"},
		{&f.verbose, "verbose", "v", "log the steps of the job to the standard error"},
	})
}

func (f *outputFlags) set(cfg *launch.Config) (err error) {
	if f.quiet && f.verbose {
		return errors.New("-q and -v exclude each other")
	}
	cfg.Output.Quiet, cfg.Output.Verbose = f.quiet, f.verbose
	if f.dir != "" {
		if cfg.Output.Dir, err = filepath.Abs(f.dir); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	if cfg.Output.Label, err = launch.ParseLabel(f.label); err != nil {
		return fmt.Errorf("--label: %w", err)
	}
	return nil
}

// limitFlags bound the time of a job.
type limitFlags struct {
	timeout, stuckAfter, grace, start time.Duration
	onStuck                           string
}

// The values of --on-stuck.
const (
	stuckReport = "report"
	stuckEnd    = "end"
)

func (f *limitFlags) define(fl *pflag.FlagSet) {
	f.stuckAfter, f.onStuck, f.start = time.Minute, stuckReport, time.Minute
	defineFlags(fl, []flagRow{
		{&f.timeout, "timeout", "", "time limit for the job (default: none)"},
		{&f.stuckAfter, "stuck-after", "", "if ranks wait and nothing progresses for this long, print which rank waits for which and what the others do; 0: never"},
		{&f.onStuck, "on-stuck", "", "what follows --stuck-after: repeat the report while nothing progresses (report), or print it once and end the job with status 124, unless a rank computes (end)"},
		{&f.grace, "grace", "", "time for the remaining ranks to exit after one has failed (default: adaptive, see below)"},
		{&f.start, "start-timeout", "", "time limit for each start-up stage on several hosts; 0: no limit"},
	})
}

func (f *limitFlags) set(fl *pflag.FlagSet, cfg *launch.Config) error {
	for _, l := range []struct {
		value      time.Duration
		name, hint string
	}{
		{f.timeout, "timeout", "10m"},
		{f.grace, "grace", "5s, or 0 for the default"},
		{f.stuckAfter, "stuck-after", "10s, or 0 for never"},
		{f.start, "start-timeout", "30s, or 0 for no limit"},
	} {
		if l.value < 0 {
			return fmt.Errorf("--%s %v: give a time such as %s", l.name, l.value, l.hint)
		}
	}
	if f.onStuck != stuckReport && f.onStuck != stuckEnd {
		return fmt.Errorf("--on-stuck %s: use %s or %s", f.onStuck, stuckReport, stuckEnd)
	}
	if f.onStuck == stuckEnd && f.stuckAfter == 0 {
		return errors.New("--on-stuck end needs a time: --stuck-after is 0, which is never")
	}
	orNever := func(limit time.Duration) time.Duration {
		if limit == 0 {
			return -1
		}
		return limit
	}
	cfg.Limits = launch.Limits{Job: f.timeout, Stuck: orNever(f.stuckAfter), EndStuck: f.onStuck == stuckEnd, Grace: f.grace}
	if fl.Changed("start-timeout") { // otherwise the default depends on the hosts
		cfg.Limits.Start = orNever(f.start)
	}
	return nil
}

// observeFlags select what is recorded of a job.
type observeFlags struct{ profile, trace, pprof, metrics string }

func (f *observeFlags) define(fl *pflag.FlagSet) {
	defineFlags(fl, []flagRow{
		{&f.profile, "profile", "", "print a summary when the job ends, on one screen; full: all of it; FILE.json and FILE.html write it to a file; arrivals, arrivals:FILE.svg, arrivals:FILE.json: arrival times at collectives"},
		{&f.trace, "trace", "", "write the calls and messages of all ranks to this file, for muster trace and the Perfetto UI; its name ends in .json or .json.gz"},
		{&f.pprof, "pprof", "", "make each rank write a CPU profile for go tool pprof to this directory: rank-0.pprof, ..."},
		{&f.metrics, "metrics", "", "serve the counters of the running job at this address, in the text format of Prometheus: localhost:9100"},
	})
	fl.Lookup("profile").NoOptDefVal = profileText
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
