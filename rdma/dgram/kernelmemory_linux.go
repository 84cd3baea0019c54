package dgram

import "golang.org/x/sys/unix"

// kernelMemory returns the size of the socket's kernel buffers, both directions. The
// kernel includes its own bookkeeping and so reports twice the requested size
// (socket(7)).
func (s *socket) kernelMemory() (n uint64) {
	for _, option := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
		if v, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, option); err == nil {
			n += uint64(v)
		}
	}
	return n
}
