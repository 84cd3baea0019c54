package soft

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

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

// kernelDrops returns the number of datagrams that the kernel has dropped because the
// receive buffer was full. It reads a file of the kernel, and is 0 if that is missing.
func (s *socket) kernelDrops() uint64 {
	var stat unix.Stat_t
	if unix.Fstat(s.fd, &stat) != nil {
		return 0
	}
	inode := strconv.FormatUint(stat.Ino, 10)
	for _, file := range []string{"/proc/self/net/udp", "/proc/self/net/udp6"} {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, ok := dropsOf(string(text), inode); ok {
			return n
		}
	}
	return 0
}

// dropsOf finds the drops of a socket in the table of all sockets: the tenth word of a line
// is the inode, the last one the number of drops.
func dropsOf(table, inode string) (n uint64, ok bool) {
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) < 13 || words[9] != inode {
			continue
		}
		n, err := strconv.ParseUint(words[len(words)-1], 10, 64)
		return n, err == nil
	}
	return 0, false
}
