//go:build !windows

package main

import (
	"slices"
	"testing"

	"github.com/muster-mpi/muster/internal/launch"
)

// TestLabCores checks that ranks on a lab learn how many share the cores, unless the user
// has said something else.
func TestLabCores(t *testing.T) {
	hosts := make([]launch.Host, 4)
	for _, c := range []struct {
		cfg  launch.Config
		env  string
		want []string
	}{
		{launch.Config{Ranks: 8, Hosts: hosts}, "", []string{"MUSTER_RANKS_ON_CORES=8"}},
		{launch.Config{Hosts: hosts}, "", []string{"MUSTER_RANKS_ON_CORES=4"}},
		{launch.Config{Hosts: hosts, Programs: []launch.Program{{Ranks: 3}, {Ranks: 2}}}, "", []string{"MUSTER_RANKS_ON_CORES=5"}},
		{launch.Config{Ranks: 8, Hosts: hosts, ExtraEnv: []string{"MUSTER_RANKS_ON_CORES=1"}}, "", []string{"MUSTER_RANKS_ON_CORES=8", "MUSTER_RANKS_ON_CORES=1"}}, // the last counts
		{launch.Config{Ranks: 8, Hosts: hosts}, "1", nil},
	} {
		t.Setenv(ranksOnCores, c.env)
		labCores(&c.cfg)
		if !slices.Equal(c.cfg.ExtraEnv, c.want) {
			t.Errorf("%d ranks, %d programs, variable %q: %q, want %q", c.cfg.Ranks, len(c.cfg.Programs), c.env, c.cfg.ExtraEnv, c.want)
		}
	}
}
