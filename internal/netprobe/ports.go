package netprobe

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// Ports is a range of ports that sockets are bound to. The zero value leaves the choice
// to the kernel.
type Ports struct{ First, Last uint16 }

// ParsePorts parses a range such as "7000-7099", or a single port. Empty text is the zero
// value.
func ParsePorts(s string) (Ports, error) {
	if s == "" {
		return Ports{}, nil
	}
	from, to, isRange := strings.Cut(s, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	if err1 != nil || err2 != nil || first == 0 || last < first {
		return Ports{}, fmt.Errorf("invalid range of ports %q: use a range from 1 to 65535, such as 7000-7099", s)
	}
	return Ports{uint16(first), uint16(last)}, nil
}

// Try calls open with one port of the range after the other, beginning with the one at
// the given index, until one is free. Without a range it calls it with 0.
func (p Ports) Try(index int, open func(port uint16) error) error {
	if p == (Ports{}) {
		return open(0)
	}
	n := int(p.Last-p.First) + 1
	var first error // the port meant for this rank; those after it are in use by its neighbors
	for i := range n {
		port := p.First + uint16((index+i)%n)
		err := open(port)
		if !inUse(err) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return fmt.Errorf("all %d ports from %d to %d are in use; each rank of a host needs one, and the first rank one more: %w", n, p.First, p.Last, first)
}

// wsaInUse is WSAEADDRINUSE of Windows.
const wsaInUse = syscall.Errno(10048)

func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || runtime.GOOS == "windows" && errors.Is(err, wsaInUse)
}
