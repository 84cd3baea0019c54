package main

// The flags of muster run that select hosts.

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/launch"
)

// hostFlags evaluates the flags that select hosts and variables. slots is the number of
// ranks that a batch system allows on this machine, if it has allocated no other; 0: no
// batch system.
func hostFlags(cmd *cobra.Command, f runFlags, cfg *launch.Config) (slots int, err error) {
	if cfg.ExtraEnv, err = variables(f.env); err != nil {
		return 0, err
	}
	if cmd.Flags().Changed("start-timeout") {
		cfg.StartTimeout = f.startTimeout
		if f.startTimeout < 0 {
			return 0, fmt.Errorf("--start-timeout %v: give a time such as 30s, or 0 for no limit", f.startTimeout)
		}
		if f.startTimeout == 0 {
			cfg.StartTimeout = -1
		}
	}
	if cmd.Flags().Changed("lab") {
		err = labHosts(f, cfg)
	} else {
		slots, err = findHosts(f, cfg)
	}
	if err != nil {
		return 0, err
	}
	if len(cfg.Hosts) == 0 {
		for _, name := range []string{"rsh", "agent-path", "tree-width"} {
			if cmd.Flags().Changed(name) {
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
	cfg.AgentPath, cfg.TreeWidth = f.agentPath, f.treeWidth
	if f.rsh != "" {
		if cfg.RSH, err = launch.ParseRSH(f.rsh); err != nil {
			return 0, fmt.Errorf("--rsh %q: %w", f.rsh, err)
		}
	}
	return 0, nil
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

func findHosts(f runFlags, cfg *launch.Config) (slots int, err error) {
	switch {
	case f.hosts != "" && f.hostfile != "":
		return 0, errors.New("--hosts and --hostfile exclude each other: use one")
	case f.hosts != "":
		if cfg.Hosts, err = launch.ParseHosts(f.hosts); err != nil {
			return 0, fmt.Errorf("--hosts: %w", err)
		}
		return 0, nil
	case f.hostfile != "":
		return 0, readHostfile(f.hostfile, "--hostfile", cfg)
	}
	for _, name := range hostfileVariables {
		if path := os.Getenv(name); path != "" {
			cfg.Retry = true
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
