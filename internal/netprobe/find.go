package netprobe

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Interface is a network interface of this host.
type Interface struct {
	Name         string
	Up           bool // switched on
	Running      bool // its cable is plugged in
	Loopback     bool
	PointToPoint bool
	Bridge       bool // the system reports a bridge
	Tunnel       bool // a program is at its other end
	Physical     bool // a device of the host; others may report a speed that is not theirs
	Prefixes     []netip.Prefix
	MTU          int
	Speed        int // Mbit/s; 0: unknown
	Limit        int // Mbit/s that it is limited to; 0: not limited, or unknown
}

// Rate returns the Mbit/s that the interface can send, or 0 if they are not known: a
// virtual interface reports a speed that has no meaning.
func (i *Interface) Rate() int {
	switch {
	case i.Physical && i.Limit > 0 && i.Speed > 0:
		return min(i.Limit, i.Speed)
	case i.Physical && i.Limit == 0:
		return i.Speed
	}
	return i.Limit
}

// Interfaces returns the interfaces of this host.
func Interfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("netprobe: list the network interfaces of this host: %w", err)
	}
	list, limited := make([]Interface, 0, len(all)), limits()
	for _, i := range all {
		is := func(f net.Flags) bool { return i.Flags&f != 0 }
		// Without this directory only the name is known.
		has := func(file string) bool {
			_, err := os.Stat(filepath.Join("/sys/class/net", i.Name, file))
			return err == nil
		}
		one := Interface{
			Name: i.Name, MTU: i.MTU, Speed: speed(i.Name), Limit: limited[i.Index], Up: is(net.FlagUp), Running: is(net.FlagRunning),
			Loopback: is(net.FlagLoopback), PointToPoint: is(net.FlagPointToPoint),
			Bridge: has("bridge"), Tunnel: has("tun_flags"), Physical: has("device"),
		}
		addrs, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("netprobe: list the addresses of %s: %w", i.Name, err)
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				one.Prefixes = append(one.Prefixes, p)
			}
		}
		list = append(list, one)
	}
	return list, nil
}

func speed(name string) int {
	text, err := os.ReadFile(filepath.Join("/sys/class/net", name, "speed"))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return max(n, 0) // -1: unknown
}
