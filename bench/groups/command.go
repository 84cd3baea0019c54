package groups

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// command is the command line of a contender.
type command struct {
	env  []string // besides that of this process
	argv []string
}

// hostSet has the hosts of a group.
type hostSet struct {
	hosts []string
	rails int    // of each host
	rsh   string // command that runs another one on a host
	// onHost is the same as a script with the interface of ssh.
	onHost string
	// second is the address of the second host on the first rail.
	second string
}

// command returns the command line of a contender. Two ranks are bound to one core each;
// more ranks share the cores. Ranks on hosts of a lab are not bound, because every host
// would begin with the first core.
func (g *group) command(c contender, bin binaries, at hostSet) command {
	switch c {
	case openMPI:
		return g.openMPI(bin, at)
	case mpich:
		return g.mpich(bin, at)
	case bare: // it starts and binds its two processes itself
		return command{argv: append([]string{bin.bare}, strings.Fields(g.args)...)}
	case bareUDP: // it enters the network namespaces of the two hosts itself
		return command{argv: append([]string{bin.bareUDP, at.hosts[0], at.hosts[1], at.second}, strings.Fields(g.args)...)}
	case oneRail:
		cmd := g.muster(bin, at)
		cmd.env = append(cmd.env, "MUSTER_INTERFACE=eth0")
		return cmd
	case plain:
		unencrypted := *g
		unencrypted.encrypt = false
		return unencrypted.muster(bin, at)
	case asMPICH:
		other := *g
		other.front = "--mpich"
		return other.muster(bin, at)
	case gcm:
		return command{argv: append([]string{bin.muster, "bench", "cipher"}, append(strings.Fields(g.args), "--json")...)}
	case before:
		bin.muster = bin.before
	}
	return g.muster(bin, at)
}

// slots returns the hosts with the number of ranks on each.
func (at hostSet) slots(ranks int) string {
	slots := make([]string, len(at.hosts))
	for i, h := range at.hosts {
		slots[i] = fmt.Sprintf("%s:%d", h, (ranks+len(at.hosts)-1-i)/len(at.hosts)) // the first have one more if it is no multiple
	}
	return strings.Join(slots, ",")
}

// interfaces returns those of a host: eth0, eth1 and so on, one for each rail.
func (at hostSet) interfaces() string {
	names := make([]string, at.rails)
	for r := range names {
		names[r] = fmt.Sprintf("eth%d", r)
	}
	return strings.Join(names, ",")
}

func (g *group) openMPI(bin binaries, at hostSet) command {
	// ob1 is its messaging layer for plain transports.
	argv := []string{"mpirun.openmpi", "-n", strconv.Itoa(g.ranks), "--mca", "pml", "ob1"}
	switch g.over {
	case network:
		argv = append(argv, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
	case hosts:
		// The launcher must run on a host: the machine itself has no link to them.
		argv = append([]string{at.onHost, at.hosts[0]}, argv...)
		argv = append(argv, "--host", at.slots(g.ranks), "--mca", "plm_rsh_agent", at.onHost, "--mca", "oob_tcp_if_include", "eth0",
			"--mca", "btl", "vader,tcp,self", "--mca", "btl_tcp_if_include", at.interfaces())
	default:
		argv = append(argv, "--mca", "btl", "vader,self")
		if g.copies {
			argv = append(argv, "--mca", "btl_vader_single_copy_mechanism", "none")
		}
	}
	switch {
	case g.ranks == 2 && g.over == hosts:
		argv = append(argv, "--bind-to", "none")
	case g.ranks == 2:
		argv = append(argv, "--bind-to", "core")
	default:
		// Ranks that share cores must yield.
		argv = append(argv, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1")
	}
	if g.async {
		argv = append(argv, "--mca", "btl_tcp_progress_thread", "1")
	}
	return command{argv: append(append(argv, bin.openMPI), strings.Fields(g.args)...)}
}

func (g *group) mpich(bin binaries, at hostSet) command {
	cmd := command{argv: []string{"mpiexec.hydra", "-n", strconv.Itoa(g.ranks)}}
	switch g.over {
	case network:
		cmd.env = []string{"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=self,tcp", "UCX_NET_DEVICES=lo"}
	case hosts:
		// UCX would detect one machine and use shared memory.
		cmd.env = []string{"UCX_TLS=self,tcp", "UCX_NET_DEVICES=" + at.interfaces()}
		cmd.argv = append([]string{at.onHost, at.hosts[0]}, cmd.argv...)
		cmd.argv = append(cmd.argv, "-hosts", at.slots(g.ranks), "-launcher", "ssh", "-launcher-exec", at.onHost, "-iface", "eth0")
	}
	if g.ranks == 2 && g.over != hosts {
		cmd.argv = append(cmd.argv, "-bind-to", "core")
	}
	if g.async {
		cmd.env = append(cmd.env, "MPIR_CVAR_ASYNC_PROGRESS=1")
	}
	cmd.argv = append(append(cmd.argv, bin.mpich), strings.Fields(g.args)...)
	return cmd
}

func (g *group) muster(bin binaries, at hostSet) command {
	var cmd command
	program := bin.musterOFI
	switch {
	case g.simulated:
		return command{argv: append(append([]string{bin.muster, "sim"}, strings.Fields(g.ours)...), "--json")}
	case g.over == sharedMemory:
		program = bin.muster
		if g.front != "" {
			program = bin.musterC
		}
		if g.copies {
			cmd.env = []string{"MUSTER_NO_PROCESS_VM=1"}
		}
	case g.over == hosts && g.channel != "":
		program = bin.muster
		cmd.env = []string{"MUSTER_NETWORK=iwarp", "MUSTER_CHANNEL=" + g.channel}
	case g.channel != "":
		program = bin.muster
		cmd.env = []string{"MUSTER_NETWORK=iwarp", "MUSTER_CHANNEL=" + g.channel, "MUSTER_INTERFACE=lo", "MUSTER_NO_SHARED_MEMORY=1"}
	case g.over == network:
		cmd.env = []string{"MUSTER_NETWORK=ofi:net", "MUSTER_INTERFACE=lo", "MUSTER_NO_SHARED_MEMORY=1"}
	case g.over == hosts:
		cmd.env = []string{"MUSTER_NETWORK=ofi:net"}
	}
	cmd.env = append(cmd.env, g.env...)
	if g.encrypt {
		cmd.env = append(cmd.env, "MUSTER_ENCRYPT=on")
	}
	if g.direct {
		cmd.argv = append([]string{program, "bench"}, strings.Fields(g.ours)...)
		cmd.argv = append(cmd.argv, "--json")
		return cmd
	}
	cmd.argv = []string{program, "run", "-n", strconv.Itoa(g.ranks)}
	switch {
	case g.over == hosts:
		cmd.argv = append(cmd.argv, "--bind", "none", "--hosts", at.slots(g.ranks), "--rsh", at.rsh)
	case g.ranks == 2:
		cmd.argv = append(cmd.argv, "--bind", "core")
	}
	if loops := map[string]string{"--mpich": bin.mpich, "--openmpi": bin.openMPI}[g.front]; loops != "" {
		cmd.argv = append(append(cmd.argv, g.front, loops), strings.Fields(g.args)...)
		return cmd
	}
	now := strconv.FormatFloat(float64(time.Now().UnixMicro())/1e6, 'f', 6, 64)
	ours := strings.ReplaceAll(g.ours, "{now}", now)
	cmd.argv = append(append(cmd.argv, program, "bench"), strings.Fields(ours)...)
	if !g.wallClock {
		cmd.argv = append(cmd.argv, "--json")
	}
	return cmd
}
