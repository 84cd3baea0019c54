//go:build channels && linux

package channels

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/internal/lab"
)

// A firewall that drops all UDP does not concern channel rc, which has nothing but TCP
// connections.
func TestConnectionsNeedNoUDP(t *testing.T) {
	j := build(t, lab.Config{Hosts: 2})
	for _, host := range j.hosts.Hosts() {
		for _, chain := range []string{"INPUT", "OUTPUT"} {
			if out, err := exec.Command("ip", "netns", "exec", host, "iptables", "-w", "-I", chain, "-p", "udp", "-j", "DROP").CombinedOutput(); err != nil {
				t.Fatalf("iptables: %v\n%s", err, out)
			}
		}
	}
	for _, env := range [][]string{{"MUSTER_CHANNEL=rc"}, {"MUSTER_CHANNEL=rc", "MUSTER_ENCRYPT=on"}, {"MUSTER_CHANNEL=rc", "MUSTER_EAGER=few", "MUSTER_PORTS=17000-17009"}} {
		t.Run(strings.Join(env, " "), func(t *testing.T) {
			out, err := j.command(t, 2, append(env, "MUSTER_PEER_TIMEOUT=5s"), "exchange", "-messages", "300").CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := strings.Count(string(out), "has exchanged 300 messages"); n != 4 {
				t.Errorf("%d of 4 ranks have exchanged all:\n%s", n, out)
			}
		})
	}
}
