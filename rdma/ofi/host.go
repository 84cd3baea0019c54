//go:build ofi && cgo && linux

package ofi

import (
	"net"
	"os"
	"strconv"
	"strings"
)

// thisHost reads interfaces, routes and speeds. What cannot be read is omitted: the choice
// is then made without it.
func thisHost() host {
	h := host{interfaces: map[string]string{}, loopback: map[string]bool{}, gateway: map[string]bool{}, speed: map[string]uint64{}}
	list, _ := net.Interfaces()
	for _, i := range list {
		h.loopback[i.Name] = i.Flags&net.FlagLoopback != 0
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok {
				h.interfaces[n.IP.String()] = i.Name
			}
		}
		if text, err := os.ReadFile("/sys/class/net/" + i.Name + "/speed"); err == nil {
			if mbit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && mbit > 0 {
				h.speed[i.Name] = uint64(mbit) * 1e6
			}
		}
	}
	// Name, destination and mask are columns 0, 1 and 7 of the IPv4 table; destination,
	// its length and name are columns 0, 1 and 9 of the IPv6 table.
	for _, f := range rows("/proc/net/route") {
		if len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			h.gateway[f[0]] = true
		}
	}
	for _, f := range rows("/proc/net/ipv6_route") {
		if len(f) > 9 && f[1] == "00" && strings.Trim(f[0], "0") == "" && !h.loopback[f[9]] {
			h.gateway[f[9]] = true
		}
	}
	return h
}

func rows(file string) [][]string {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var list [][]string
	for line := range strings.Lines(string(text)) {
		list = append(list, strings.Fields(line))
	}
	return list
}
