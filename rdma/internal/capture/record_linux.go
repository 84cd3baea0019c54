package capture

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// A recorder stores every frame of an interface of this host, like tcpdump: a packet
// socket sees what the kernel sends and receives there.

// Recorder stores the frames of an interface until it is stopped.
type Recorder struct {
	name string
	fd   int
}

const recorderBuffer = 64 << 20 // limit of unread data until Stop

// Record begins to store the frames of an interface that an IPv4 host sends or receives.
// On "lo" that may be any of 127.0.0.0/8: a test that uses its own address sees no other
// traffic. The error is [ErrNoRights] if this process may not record.
func Record(name string, host netip.Addr) (*Recorder, error) {
	fail := func(what string, err error) error {
		return fmt.Errorf("capture: record %v on %s: %s: %w", host, name, what, err)
	}
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fail("find the interface", err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0) // 0: receive nothing yet
	if err == unix.EPERM || err == unix.EACCES {
		return nil, ErrNoRights
	}
	if err != nil {
		return nil, fail("create a packet socket", err)
	}
	// Beyond the system's limit if permitted; Stop reports losses.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, recorderBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, recorderBuffer)
	}
	filter := hostFilter(host)
	if err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}); err != nil {
		_ = unix.Close(fd)
		return nil, fail("attach a filter", err)
	}
	every := uint16(unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8) // in network byte order
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: every, Ifindex: link.Index}); err != nil {
		_ = unix.Close(fd)
		return nil, fail("bind a packet socket", err)
	}
	return &Recorder{name, fd}, nil
}

// hostFilter returns a BPF program that passes IPv4 from or to a host.
func hostFilter(host netip.Addr) []unix.SockFilter {
	address := host.As4()
	want := binary.BigEndian.Uint32(address[:])
	const (
		half   = unix.BPF_LD | unix.BPF_H | unix.BPF_ABS
		word   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equals = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		end    = unix.BPF_RET | unix.BPF_K
	)
	return []unix.SockFilter{
		{Code: half, K: 12},
		{Code: equals, K: etherIPv4, Jf: 4},
		{Code: word, K: etherHead + 12}, // from
		{Code: equals, K: want, Jt: 3},
		{Code: word, K: etherHead + 16}, // to
		{Code: equals, K: want, Jt: 1},
		{Code: end, K: 0},
		{Code: end, K: maxFrame},
	}
}

// Stop ends the recording and returns the frames.
func (r *Recorder) Stop() ([]Frame, error) {
	defer unix.Close(r.fd)
	var frames []Frame
	buffer := make([]byte, maxFrame)
	for {
		n, from, err := unix.Recvfrom(r.fd, buffer, unix.MSG_TRUNC)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return frames, r.checkLost()
		case err != nil:
			return nil, fmt.Errorf("capture: record on %s: %w", r.name, err)
		case n > len(buffer):
			return nil, fmt.Errorf("capture: record on %s: a frame of %d bytes is longer than %d", r.name, n, len(buffer))
		}
		// A loopback interface shows every frame twice, outgoing and incoming.
		if link, ok := from.(*unix.SockaddrLinklayer); ok && link.Pkttype == unix.PACKET_OUTGOING && r.name == "lo" {
			continue
		}
		frames = append(frames, Frame{At: time.Unix(0, int64(len(frames))*1000), Data: append([]byte(nil), buffer[:n]...)})
	}
}

// checkLost returns an error if frames were dropped for lack of room.
func (r *Recorder) checkLost() error {
	stats, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return fmt.Errorf("capture: record on %s: get the number of lost frames: %w", r.name, err)
	}
	if stats.Drops > 0 {
		return fmt.Errorf("capture: record on %s: %d frames were lost for lack of room: record less", r.name, stats.Drops)
	}
	return nil
}
