package lab

import (
	"os"
	"slices"
	"strings"
)

// congestion is the congestion control of TCP on the hosts of a lab, whatever this machine uses: a
// lab is to be the same everywhere, and CUBIC is what Linux uses by default. Over a cable of 1 Gbit/s
// BBR delays short bursts between hosts by several milliseconds.
const congestion = "cubic"

// Files below /proc/sys. The first exists in the initial network namespace alone.
const (
	permittedControls = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
	currentControl    = "/proc/sys/net/ipv4/tcp_congestion_control"
)

// permitCongestion permits the hosts to select the congestion control: a namespace may select only
// what all users may. A kernel without it keeps its own.
func permitCongestion() {
	text, err := os.ReadFile(permittedControls)
	if permitted := strings.Fields(string(text)); err == nil && !slices.Contains(permitted, congestion) {
		_ = os.WriteFile(permittedControls, []byte(strings.Join(append(permitted, congestion), " ")), 0)
	}
}

func setCongestion(host string) {
	_ = command("", "ip", "netns", "exec", host, "sh", "-c", "echo "+congestion+" >"+currentControl)
}
