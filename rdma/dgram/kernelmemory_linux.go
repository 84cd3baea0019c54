package dgram

import "golang.org/x/sys/unix"

// kernelMemory is what the kernel may hold for the socket, both directions. It counts its
// own bookkeeping in, and so says twice what was asked for (socket(7)).
func (s *socket) kernelMemory() (n uint64) {
	for _, option := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
		if v, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, option); err == nil {
			n += uint64(v)
		}
	}
	return n
}
