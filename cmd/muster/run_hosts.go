package main

// The flags of muster run that select hosts.

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/muster-mpi/muster/internal/launch"
)

// hostFlags select the hosts of a job.
type hostFlags struct {
	list, file, rsh, lab, agentPath string
	copy, oversubscribe             bool
	perHost, treeWidth              int
}

func (f *hostFlags) define(fl *pflag.FlagSet) {
	f.treeWidth = 16
	defineFlags(fl, []flagRow{
		{&f.list, "hosts", "", "hosts to run on, with the number of slots of each: a:4,b:4; also --host"},
		{&f.file, "hostfile", "", "file with one host per line: host:4 or host slots=4"},
		{&f.perHost, "ranks-per-host", "", "number of slots of each host, whatever the list of hosts says"},
		{&f.oversubscribe, "oversubscribe", "", "allow more ranks than slots: the hosts get ranks in proportion to their slots"},
		{&f.rsh, "rsh", "", "command that starts a process on a host (default: ssh); {host} is replaced, otherwise the host is appended"},
		{&f.lab, "lab", "", "run on the hosts of a lab (see muster lab); --lab NAME selects one of several"},
		{&f.copy, "copy", "", "send the program to the hosts with the job, so that they need not have it"},
		{&f.agentPath, "agent-path", "", "path of muster on the hosts (default: the path of this executable)"},
		{&f.treeWidth, "tree-width", "", "number of hosts that one process starts agents on; those agents start further ones"},
	})
	fl.Lookup("lab").NoOptDefVal = defaultLab
}

// set sets the hosts of the job. slots is the number of ranks that a batch system allows on
// this machine, if it has allocated no other; 0: no batch system.
func (f *hostFlags) set(fl *pflag.FlagSet, cfg *launch.Config) (slots int, err error) {
	if fl.Changed("lab") {
		err = f.setLab(cfg)
	} else {
		slots, err = f.find(cfg)
	}
	if err != nil {
		return 0, err
	}
	if fl.Changed("ranks-per-host") {
		if f.perHost < 1 {
			return 0, fmt.Errorf("--ranks-per-host %d: use 1 or more", f.perHost)
		}
		slots = f.perHost
		for i := range cfg.Hosts {
			cfg.Hosts[i].Slots = f.perHost
		}
	}
	if len(cfg.Hosts) == 0 {
		for _, name := range []string{"rsh", "agent-path", "tree-width"} {
			if fl.Changed(name) {
				return 0, fmt.Errorf("--%s needs --hosts or --hostfile", name)
			}
		}
		if f.copy && slots == 0 { // a script may run in an allocation of one host
			return 0, errors.New("--copy needs --hosts or --hostfile: on this machine the program is started where it is")
		}
		return slots, nil
	}
	if f.treeWidth < 1 {
		return 0, fmt.Errorf("--tree-width %d: use 1 or more", f.treeWidth)
	}
	r := &cfg.Remote
	r.AgentPath, r.TreeWidth, r.Copy = f.agentPath, f.treeWidth, f.copy
	if f.rsh != "" {
		if r.RSH, err = launch.ParseRSH(f.rsh); err != nil {
			return 0, fmt.Errorf("--rsh %q: %w", f.rsh, err)
		}
	}
	return 0, nil
}

// addSlots gives the hosts the slots that the ranks of the job need, if more ranks may run than
// there are slots.
func (f *hostFlags) addSlots(cfg *launch.Config) {
	ranks, slots := cfg.Ranks+cfg.Spares, 0
	for _, p := range cfg.Programs {
		ranks += p.Ranks
	}
	for _, h := range cfg.Hosts {
		slots += max(1, h.Slots)
	}
	if !f.oversubscribe || ranks <= slots {
		return
	}
	for i, h := range cfg.Hosts {
		cfg.Hosts[i].Slots = max(1, h.Slots) * ((ranks + slots - 1) / slots)
	}
}

// variables returns the variables of --env.
func variables(flags []string) (env []string, err error) {
	for _, kv := range flags {
		name, _, given := strings.Cut(kv, "=")
		if name == "" {
			return nil, fmt.Errorf("--env %q: give NAME=VALUE, or NAME", kv)
		}
		if value, set := os.LookupEnv(name); !given && set {
			kv = name + "=" + value
		} else if !given {
			return nil, fmt.Errorf("--env %s: the variable is not set here; use --env %s=VALUE", name, name)
		}
		env = append(env, kv)
	}
	return env, nil
}

// hostfileVariables name a host file in clusters set up for other launchers, for
// example by the Kubernetes MPI operator. Hosts may come up late in such clusters.
var hostfileVariables = []string{"HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile"}

// find returns the hosts of the flags, of a host file that a variable names, or of a batch
// system.
func (f *hostFlags) find(cfg *launch.Config) (slots int, err error) {
	switch {
	case f.list != "" && f.file != "":
		return 0, errors.New("--hosts and --hostfile exclude each other: use one")
	case f.list != "":
		if cfg.Hosts, err = launch.ParseHosts(f.list); err != nil {
			return 0, fmt.Errorf("--hosts: %w", err)
		}
		return 0, nil
	case f.file != "":
		return 0, readHostfile(f.file, "--hostfile", cfg)
	}
	for _, name := range hostfileVariables {
		if path := os.Getenv(name); path != "" {
			cfg.Remote.Retry = true
			return 0, readHostfile(path, name, cfg)
		}
	}
	hosts, from, err := launch.Allocation(os.Getenv, os.ReadFile)
	if err != nil {
		return 0, fmt.Errorf("%s: %w; to ignore it, use --hosts", from, err)
	}
	if len(hosts) == 1 && launch.IsThisMachine(hosts[0].Name) {
		return hosts[0].Slots, nil // without an agent
	}
	cfg.Hosts = hosts
	return 0, nil
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
