package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// command is how a contender is started.
type command struct {
	env  []string // besides that of this process
	argv []string
}

// place is where the hosts of a group are.
type place struct {
	hosts []string
	rsh   string // the command that runs another one on a host
}

// command of a contender. Two ranks are bound one to a core; more than that
// share the cores.
func (g *group) command(c contender, bin binaries, at place) command {
	switch c {
	case openMPI:
		return g.openMPI(bin)
	case mpich:
		return g.mpich(bin)
	case bare: // it makes and binds its two processes itself
		return command{argv: append([]string{bin.bare}, strings.Fields(g.args)...)}
	}
	return g.muster(bin, at)
}

func (g *group) openMPI(bin binaries) command {
	// Its messaging layer that has no fabric in mind, over one transport.
	argv := []string{"mpirun.openmpi", "-n", strconv.Itoa(g.ranks), "--mca", "pml", "ob1"}
	if g.over == network {
		argv = append(argv, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
	} else {
		argv = append(argv, "--mca", "btl", "vader,self")
	}
	if g.ranks == 2 {
		argv = append(argv, "--bind-to", "core")
	} else {
		// Ranks that share cores must be told to yield.
		argv = append(argv, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
	}
	return command{argv: append(append(argv, bin.openMPI), strings.Fields(g.args)...)}
}

func (g *group) mpich(bin binaries) command {
	cmd := command{argv: []string{"mpiexec.hydra", "-n", strconv.Itoa(g.ranks)}}
	if g.over == network {
		cmd.env = []string{"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=self,tcp", "UCX_NET_DEVICES=lo"}
	}
	if g.ranks == 2 {
		cmd.argv = append(cmd.argv, "-bind-to", "core")
	}
	cmd.argv = append(append(cmd.argv, bin.mpich), strings.Fields(g.args)...)
	return cmd
}

func (g *group) muster(bin binaries, at place) command {
	var cmd command
	program := bin.musterOFI
	switch {
	case g.over == sharedMemory:
		program = bin.muster
	case g.channel != "":
		program = bin.muster
		cmd.env = []string{"MUSTER_NETWORK=iwarp", "MUSTER_CHANNEL=" + g.channel, "MUSTER_INTERFACE=lo", "MUSTER_NO_SHARED_MEMORY=1"}
	case g.over == network:
		cmd.env = []string{"MUSTER_NETWORK=ofi:net", "MUSTER_INTERFACE=lo", "MUSTER_NO_SHARED_MEMORY=1"}
	case g.over == hosts:
		cmd.env = []string{"MUSTER_NETWORK=ofi:net"}
	}
	cmd.argv = []string{program, "run", "-n", strconv.Itoa(g.ranks)}
	if g.ranks == 2 {
		cmd.argv = append(cmd.argv, "--bind", "core")
	}
	if g.over == hosts {
		slots := make([]string, len(at.hosts))
		for i, h := range at.hosts {
			slots[i] = fmt.Sprintf("%s:%d", h, g.ranks/len(at.hosts))
		}
		cmd.argv = append(cmd.argv, "--hosts", strings.Join(slots, ","), "--rsh", at.rsh)
	}
	now := strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', 6, 64)
	ours := strings.ReplaceAll(g.ours, "{now}", now)
	cmd.argv = append(append(cmd.argv, program, "bench"), strings.Fields(ours)...)
	if !g.wallClock {
		cmd.argv = append(cmd.argv, "--json")
	}
	return cmd
}
