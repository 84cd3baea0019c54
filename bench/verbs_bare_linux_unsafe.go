//go:build linux

package bench

// The references of verbs benchmarks: non-blocking TCP and UDP sockets, used by raw system
// calls without the Go scheduler. Addresses are kept in the kernel's form. No Go program
// can be faster over these sockets unless it makes fewer calls.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

type bareWire struct {
	udp   bool
	side  int
	watch *waiter

	listener int // TCP, of the leader
	fds      []int
	to       [][]byte // UDP: destination as a sockaddr
	ip       netip.Addr

	inSize int
	in     []byte
	got    []int // bytes received on a connection and not consumed
}

const (
	bareReadBuffer   = 1 << 20
	bareSocketBuffer = 4 << 20 // of a UDP socket, each direction
	longestDatagram  = 65507
	bareSetupSeconds = 30
)

// openBare opens the sockets. The follower connects those of TCP.
func openBare(s *VerbsSession, t *verbsTrial, outSize, inSize int) (wire, error) {
	ip, err := netip.ParseAddr(s.at.Address)
	if err != nil {
		return nil, fmt.Errorf("%q is no IP address: %w", s.at.Address, err)
	}
	w := &bareWire{udp: t.Device == BareUDP, side: s.at.Side, watch: &s.waiter, listener: -1, ip: ip,
		inSize: inSize, in: make([]byte, max(bareReadBuffer, inSize)), got: make([]int, t.Connections)}
	switch {
	case t.Bench == "verbs-progress" || t.Bench == "verbs-memory":
		return nil, fmt.Errorf("%w: a bare socket does not have that", rdma.ErrUnsupported)
	case w.udp && max(outSize, inSize) > longestDatagram:
		return nil, fmt.Errorf("%w: a datagram has at most %d bytes", rdma.ErrUnsupported, longestDatagram)
	case w.udp:
		err = w.openUDP(t.Connections)
	case w.side == 0:
		err = w.listen(t.Connections)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a bare %s socket on %s: %w", t.Device, ip, err), w.close())
	}
	return w, nil
}

func (w *bareWire) socket(kind int) (int, error) {
	family := unix.AF_INET
	if w.ip.Is6() {
		family = unix.AF_INET6
	}
	return unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
}

func (w *bareWire) openUDP(n int) error {
	for range n {
		fd, err := w.socket(unix.SOCK_DGRAM | unix.SOCK_NONBLOCK)
		if err != nil {
			return err
		}
		w.fds = append(w.fds, fd)
		for _, option := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF} {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, bareSocketBuffer); err != nil {
				return err
			}
		}
		if err := unix.Bind(fd, kernelAddress(netip.AddrPortFrom(w.ip, 0))); err != nil {
			return err
		}
	}
	return nil
}

func (w *bareWire) listen(n int) (err error) {
	if w.listener, err = w.socket(unix.SOCK_STREAM); err != nil {
		return err
	}
	if err := unix.Bind(w.listener, kernelAddress(netip.AddrPortFrom(w.ip, 0))); err != nil {
		return err
	}
	return unix.Listen(w.listener, n)
}

func (w *bareWire) card() *card {
	c := &card{}
	fds := w.fds
	if w.listener >= 0 {
		fds = []int{w.listener}
	}
	for _, fd := range fds {
		if at, err := unix.Getsockname(fd); err == nil {
			c.Addrs = append(c.Addrs, rdma.Addr(addressOf(at).String()))
		}
	}
	return c
}

func (w *bareWire) connect(theirs *card) error {
	if w.udp {
		for _, a := range theirs.Addrs {
			at, err := netip.ParseAddrPort(string(a))
			if err != nil {
				return err
			}
			w.to = append(w.to, rawAddress(at))
		}
		if len(w.to) != len(w.fds) {
			return fmt.Errorf("the other process has %d sockets for our %d", len(w.to), len(w.fds))
		}
		return nil
	}
	for range len(w.got) { // in the same order at both ends
		fd, err := w.next(theirs)
		if err != nil {
			return fmt.Errorf("connect a bare TCP socket: %w", err)
		}
		w.fds = append(w.fds, fd)
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return err
		}
		if err := unix.SetNonblock(fd, true); err != nil {
			return err
		}
	}
	return nil
}

// next makes one more connection. The kernel bounds the time.
func (w *bareWire) next(theirs *card) (int, error) {
	limit := unix.Timeval{Sec: bareSetupSeconds}
	if w.side == 0 {
		if err := unix.SetsockoptTimeval(w.listener, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
			return -1, err
		}
		for {
			fd, _, err := unix.Accept4(w.listener, unix.SOCK_CLOEXEC)
			if err != unix.EINTR {
				return fd, err
			}
		}
	}
	if len(theirs.Addrs) != 1 {
		return -1, errors.New("the other process does not listen")
	}
	at, err := netip.ParseAddrPort(string(theirs.Addrs[0]))
	if err != nil {
		return -1, err
	}
	fd, err := w.socket(unix.SOCK_STREAM)
	if err != nil {
		return -1, err
	}
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &limit)
	if err == nil {
		err = unix.Connect(fd, kernelAddress(at))
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func (w *bareWire) way(int) string {
	if w.udp {
		return "datagram"
	}
	return "stream"
}

func (w *bareWire) lossy() bool { return w.udp }

// send writes a message. When the socket is full it reads, because the other side may be
// blocked until it does.
func (w *bareWire) send(k int, b []byte) error {
	var to unsafe.Pointer
	var length uintptr
	if w.udp {
		to, length = unsafe.Pointer(unsafe.SliceData(w.to[k])), uintptr(len(w.to[k]))
	}
	for len(b) > 0 {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(w.fds[k]), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(to), length)
		switch errno {
		case 0:
			b = b[n:]
			continue
		case unix.EAGAIN, unix.EINTR, unix.ENOBUFS:
		case unix.ECONNREFUSED: // for an earlier datagram
		default:
			return fmt.Errorf("write to a bare socket: %w", errno)
		}
		before := w.got[k]
		if err := w.read(k); err != nil {
			return err
		}
		if w.got[k] != before {
			w.watch.noteProgress()
		} else if err := w.watch.idle(); err != nil {
			return err
		}
	}
	return nil
}

// read receives once.
func (w *bareWire) read(k int) error {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(w.fds[k]), uintptr(unsafe.Pointer(unsafe.SliceData(w.in))), uintptr(len(w.in)), unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR || w.udp && errno == unix.ECONNREFUSED:
		return nil
	case errno != 0:
		return fmt.Errorf("read from a bare socket: %w", errno)
	case n == 0 && !w.udp:
		return errHalted
	}
	w.got[k] += int(n)
	return nil
}

func (w *bareWire) take(k, most int) (int, error) {
	if w.got[k] < w.inSize {
		if err := w.read(k); err != nil || w.got[k] < w.inSize {
			return 0, err
		}
	}
	n := min(w.got[k]/w.inSize, most)
	w.got[k] -= n * w.inSize
	return n, nil
}

func (w *bareWire) stamp() byte { return w.in[0] }

func (w *bareWire) close() error {
	var errs []error
	for _, fd := range append(w.fds, w.listener) {
		if fd >= 0 {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(errs...)
}

func kernelAddress(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

func addressOf(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// rawAddress returns a sockaddr: the family in native byte order, the rest big-endian.
func rawAddress(a netip.AddrPort) []byte {
	if a.Addr().Is4() {
		b := binary.NativeEndian.AppendUint16(nil, unix.AF_INET)
		b = binary.BigEndian.AppendUint16(b, a.Port())
		b = append(b, a.Addr().AsSlice()...)
		return append(b, make([]byte, unix.SizeofSockaddrInet4-len(b))...)
	}
	b := binary.NativeEndian.AppendUint16(nil, unix.AF_INET6)
	b = binary.BigEndian.AppendUint16(b, a.Port())
	b = append(b, make([]byte, 4)...) // flow
	b = append(b, a.Addr().AsSlice()...)
	return append(b, make([]byte, unix.SizeofSockaddrInet6-len(b))...)
}

// socketBuffers returns the buffer memory of a socket in the kernel: received and unsent data,
// and memory reserved for more (SO_MEMINFO).
func socketBuffers(fd int) int {
	const rmem, wmem, forward, option, backlog, words = 0, 2, 4, 6, 7, 9
	var info [words]uint32
	length := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return 0 // not a network socket
	}
	return int(info[rmem] + info[wmem] + info[forward] + info[option] + info[backlog])
}
