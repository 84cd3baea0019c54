//go:build launchers

package launchers

// Hydra on two hosts, which are network namespaces with a cable between them.
// Instead of ssh it gets a script that goes into a namespace.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// twoHosts makes the namespaces and gives their names and the script.
func twoHosts(t *testing.T) (a, b, rsh string) {
	t.Helper()
	asRoot(t)
	tool(t, "ip", "iproute2")
	a, b = fmt.Sprintf("lp%da", os.Getpid()), fmt.Sprintf("lp%db", os.Getpid())
	for _, host := range []string{a, b} {
		if out, err := exec.Command("ip", "netns", "add", host).CombinedOutput(); err != nil {
			t.Skipf("cannot create network namespaces: %v: %s", err, out)
		}
		t.Cleanup(func() { exec.Command("ip", "netns", "del", host).Run() })
	}
	for _, args := range [][]string{
		{"link", "add", "eth0", "netns", a, "type", "veth", "peer", "name", "eth0", "netns", b},
		{"-n", a, "addr", "add", "10.231.77.1/24", "dev", "eth0"},
		{"-n", b, "addr", "add", "10.231.77.2/24", "dev", "eth0"},
		{"-n", a, "link", "set", "eth0", "up"}, {"-n", b, "link", "set", "eth0", "up"},
		{"-n", a, "link", "set", "lo", "up"}, {"-n", b, "link", "set", "lo", "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %q: %v: %s", args, err, out)
		}
	}
	// Hydra calls it like ssh: options, host, words of a command line.
	rsh = filepath.Join(t.TempDir(), "rsh")
	script := "#!/bin/sh\nwhile [ \"${1#-}\" != \"$1\" ]; do shift; done\nhost=$1; shift\nexec ip netns exec \"$host\" sh -c \"$*\"\n"
	if err := os.WriteFile(rsh, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return a, b, rsh
}

func TestUnderHydraOnTwoHosts(t *testing.T) {
	mpiexec := tool(t, "mpiexec.hydra", "mpich")
	ring.command(t) // built before the hosts are made
	a, b, rsh := twoHosts(t)
	start := []string{"ip", "netns", "exec", a, mpiexec, "-launcher", "ssh", "-launcher-exec", rsh, "-iface", "eth0", "-hosts", a + ":2," + b + ":2", "-n", "4"}
	tryAll(t, nil, start, []trial{
		// First, right after the link has come up: see linkTime of rdma/ofi.
		{"a message goes round two hosts", nil, ringOfFour, nil, ring},
		{"by a socket", []string{role + "exchange"}, nodeLines(0, 0, 1, 1), nil, plain},
		{"by a port", []string{role + "exchange"}, nodeLines(0, 0, 1, 1), []string{"-pmi-port"}, plain},
		{"the tests of point-to-point pass on two hosts", nil, []string{"PASS"}, nil, mpi},
	})
}

// Ranks that need a network and have none report it instead of waiting for each other.
func TestHostWithoutNetworkIsReported(t *testing.T) {
	program := ring.command(t)[0]
	a, _, _ := twoHosts(t)
	if out, err := exec.Command("ip", "-n", a, "link", "set", "eth0", "down").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// A rank with its own process table cannot share memory.
	alone := "unshare --pid --fork --mount-proc " + program
	out, err := run(t, []string{"MUSTER_SIZE=2", "MUSTER_ROOT=localhost:7700", "MUSTER_KEY=test-of-launchers"}, "ip", "netns", "exec", a, "sh", "-c",
		"MUSTER_RANK=1 "+alone+" & MUSTER_RANK=0 "+alone+"; status=$?; wait; exit $status")
	if err == nil || strings.Count(out, "no interface is up but loopback") != 2 || !strings.Contains(out, "MUSTER_INTERFACE") {
		t.Errorf("both ranks must report that there is no network, and a remedy; got %v and\n%s", err, end(out))
	}
}
