package rdmatest

import (
	"net/netip"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ResetTCP resets the TCP connections of this process for which pick returns true, and
// returns their number. Both ends see ECONNRESET. Data that the near end had received but
// not read is lost, so pick an end to which nothing is in flight unless that is intended.
func ResetTCP(pick func(local, remote netip.AddrPort) bool) (resets int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || kind != unix.IPPROTO_TCP {
			continue
		}
		near, err1 := unix.Getsockname(fd)
		far, err2 := unix.Getpeername(fd)
		if err1 != nil || err2 != nil || !pick(addrPort(near), addrPort(far)) {
			continue
		}
		// Linux resets a connection when its socket is connected to AF_UNSPEC.
		raw := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		if connectRaw(fd, &raw) == nil {
			resets++
		}
	}
	return resets
}

// ResetLoopback resets the TCP connections that have both ends in this process.
func ResetLoopback() int {
	return ResetTCP(func(local, remote netip.AddrPort) bool {
		return local.Addr() == remote.Addr() && local.Port() > remote.Port() // one of the two ends
	})
}

func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}
