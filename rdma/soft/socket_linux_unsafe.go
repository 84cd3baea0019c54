//go:build linux

package soft

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// The socket: one nonblocking UDP socket. Datagrams pass in batches (recvmmsg,
// sendmmsg), whose headers are filled in once and of which only lengths and pointers
// change; and one by one (recvfrom, sendto), which is faster for a single datagram: a
// batch call looks for a second datagram before it returns the first. A message of a
// batch may be a run of several datagrams (runs_linux_unsafe.go).

// rawAddress is an address in the kernel's format.
type rawAddress struct {
	bytes  [unix.SizeofSockaddrInet6]byte
	length uint8
}

// rawOf converts an address to the kernel's format. Port and address are big-endian
// there, the family is in native order.
func rawOf(a netip.AddrPort) (r rawAddress) {
	binary.BigEndian.PutUint16(r.bytes[2:], a.Port())
	if ip := a.Addr().Unmap(); ip.Is4() {
		binary.NativeEndian.PutUint16(r.bytes[:], unix.AF_INET)
		four := ip.As4()
		copy(r.bytes[4:], four[:])
		r.length = unix.SizeofSockaddrInet4
		return r
	}
	binary.NativeEndian.PutUint16(r.bytes[:], unix.AF_INET6)
	sixteen := a.Addr().As16()
	copy(r.bytes[8:], sixteen[:])
	r.length = unix.SizeofSockaddrInet6
	return r
}

// addrPort converts an address from the kernel's format.
func (r *rawAddress) addrPort() netip.AddrPort {
	port := binary.BigEndian.Uint16(r.bytes[2:])
	if r.length == 0 {
		return netip.AddrPort{} // of the device below
	}
	if r.length == unix.SizeofSockaddrInet4 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(r.bytes[4:8])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(r.bytes[8:24])), port)
}

// rawOfPeer returns an address that stands for a peer of the device below.
func rawOfPeer(id rdma.PeerID) (r rawAddress) {
	binary.NativeEndian.PutUint32(r.bytes[:], uint32(id))
	return r
}

func (r *rawAddress) peer() rdma.PeerID { return rdma.PeerID(binary.NativeEndian.Uint32(r.bytes[:])) }

// pieces is the maximum number of memory pieces of a datagram.
const pieces = 3

// batchHeader is the kernel's struct mmsghdr.
type batchHeader struct {
	header unix.Msghdr
	n      uint32
}

type socket struct {
	fd       int
	family   int
	local    netip.AddrPort
	self     bool // bound to the loopback interface
	short    shortcut
	in, out  [batchSize]batchHeader
	inVec    [batchSize]unix.Iovec
	inParts  [pieces]unix.Iovec
	outVec   [4 * maxIndexes]unix.Iovec
	indexes  [maxIndexes][indexLen]byte // of the runs in a call
	nameLen  uint32                     // of the address that recvfrom returned
	peek     peek
	troubled atomic.Bool // the error queue may have entries
	batching bool        // datagrams arrive faster than one per call
	cameLast bool        // the previous call found one
	bulk     uint8       // the latest message was a long run, or a few short ones ago

	runUpTo    int  // longest datagram that is sent in a run; 0: none
	joins      bool // the kernel coalesces received datagrams
	inControl  [batchSize]control
	outControl [batchSize]control
	taken      [batchSize]int // packets in each message
	messages   uint64         // handed to the kernel
	refuses    unix.Errno     // error to simulate for every run, in tests
}

func openSocket(bind netip.AddrPort, buffer int) (*socket, error) {
	raw := rawOf(bind)
	family := unix.AF_INET6
	var to unix.Sockaddr = &unix.SockaddrInet6{Port: int(bind.Port()), Addr: bind.Addr().As16()}
	if raw.length == unix.SizeofSockaddrInet4 {
		family = unix.AF_INET
		to = &unix.SockaddrInet4{Port: int(bind.Port()), Addr: bind.Addr().Unmap().As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	s := &socket{fd: fd, family: family, self: bind.Addr().IsLoopback()}
	if err := s.prepare(to, buffer); err != nil {
		_ = s.close() // the first error matters
		return nil, err
	}
	for i := range batchSize {
		s.in[i].header.Iov, s.in[i].header.Iovlen = &s.inVec[i], 1
	}
	return s, nil
}

func (s *socket) prepare(to unix.Sockaddr, buffer int) error {
	for _, b := range []struct{ option, size int }{{unix.SO_RCVBUF, buffer}, {unix.SO_SNDBUF, buffer / sendShare}} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, b.option, b.size); err != nil {
			return fmt.Errorf("ask for a socket buffer of %d bytes: %w", b.size, err)
		}
	}
	level, option := unix.SOL_IP, unix.IP_RECVERR
	if _, six := to.(*unix.SockaddrInet6); six {
		level, option = unix.SOL_IPV6, unix.IPV6_RECVERR
	}
	if err := unix.SetsockoptInt(s.fd, level, option, 1); err != nil {
		return fmt.Errorf("enable ICMP error reports: %w", err)
	}
	if err := unix.Bind(s.fd, to); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	bound, err := unix.Getsockname(s.fd)
	if err != nil {
		return fmt.Errorf("getsockname: %w", err)
	}
	s.local = addrPortOf(bound)
	s.peek.able = s.peekFrom(0)
	return nil
}

func addrPortOf(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// reaches reports whether the socket can send to the address.
func (s *socket) reaches(a netip.AddrPort) bool {
	return s.local.Addr().Is4() == a.Addr().Unmap().Is4()
}

// receiveOne receives a datagram into a slot.
func (s *socket) receiveOne(t *slot) bool {
	if s.joins {
		return s.receiveJoined(t)
	}
	s.nameLen = uint32(len(t.from.bytes))
	// Raw: the call does not block, and informing the scheduler costs more than the
	// call.
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&t.data[0])), uintptr(len(t.data)), unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&t.from.bytes[0])), uintptr(unsafe.Pointer(&s.nameLen)))
	if errno != 0 {
		s.noteTrouble(errno)
		return false
	}
	t.n, t.from.length = int(n), uint8(s.nameLen)
	return true
}

// peek is the state of SO_PEEK_OFF: the kernel returns queued data from an offset,
// which advances with every peek and moves back with what is received.
type peek struct {
	able  bool // supported, for UDP since Linux 4.7
	moved bool // the offset may not be 0
}

func (s *socket) peeks() bool { return s.peek.able }

// peekFrom sets the offset.
func (s *socket) peekFrom(at int) bool {
	value := int32(at)
	_, _, errno := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_PEEK_OFF, uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
	return errno == 0
}

// look peeks at the front of the next datagram. It returns the bytes copied and the
// length of the datagram, 0 if there is none.
func (s *socket) look(front []byte) (n, whole int) {
	if s.peek.moved && !s.peekFrom(0) {
		s.peek.able = false
		return 0, 0
	}
	s.peek.moved = true
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&front[0])), uintptr(len(front)), unix.MSG_DONTWAIT|unix.MSG_PEEK|unix.MSG_TRUNC, 0, 0)
	if errno != 0 {
		s.noteTrouble(errno)
		return 0, 0
	}
	return min(int(r), len(front)), int(r)
}

// lookAt peeks at an offset of the datagram that look has returned.
func (s *socket) lookAt(at int, b []byte) bool {
	if !s.peekFrom(at) {
		return false
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_PEEK, 0, 0)
	return errno == 0 && int(n) == len(b)
}

// receiveInto is receiveOne with the payload received into target. What follows the
// payload goes behind the front in the slot.
func (s *socket) receiveInto(t *slot, front int, target []byte) bool {
	s.inParts[0].Base, s.inParts[1].Base, s.inParts[2].Base = &t.data[0], &target[0], &t.data[front]
	s.inParts[0].SetLen(front)
	s.inParts[1].SetLen(len(target))
	s.inParts[2].SetLen(len(t.data) - front)
	m := unix.Msghdr{Iov: &s.inParts[0]}
	m.SetIovlen(len(s.inParts))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&m)), unix.MSG_DONTWAIT)
	s.inParts = [pieces]unix.Iovec{}
	if errno != 0 {
		s.noteTrouble(errno)
		return false
	}
	t.n = int(n)
	s.peek.moved = false // the kernel has moved the offset back
	return true
}

// noteTrouble distinguishes an error from an empty queue. The caller treats both alike:
// what is lost is retransmitted, or was unreliable.
func (s *socket) noteTrouble(errno unix.Errno) {
	if errno != unix.EAGAIN && errno != unix.EINTR {
		s.troubled.Store(true)
	}
}

// receiveJoined receives a datagram, or a run of them, into a slot.
func (s *socket) receiveJoined(t *slot) bool {
	s.aim(0, t)
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.in[0].header)), unix.MSG_DONTWAIT)
	if errno != 0 {
		s.noteTrouble(errno)
		return false
	}
	s.in[0].n = uint32(n)
	s.fillSlot(0, t)
	return true
}

// receive fills slots with what has arrived and returns how many.
func (s *socket) receive(slots []*slot) int {
	if len(slots) == 0 {
		return 0
	}
	for i, t := range slots {
		s.aim(i, t)
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.in[0])), uintptr(len(slots)), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		s.noteTrouble(errno)
		return 0
	}
	for i, t := range slots[:n] {
		s.fillSlot(i, t)
	}
	return int(n)
}

// aim directs a message of a batch into a slot.
func (s *socket) aim(i int, t *slot) {
	s.inVec[i].Base = &t.data[0]
	s.inVec[i].SetLen(len(t.data))
	s.in[i].header.Name, s.in[i].header.Namelen = &t.from.bytes[0], uint32(len(t.from.bytes))
	if s.joins {
		s.expectJoined(i)
	}
}

// fillSlot records what was received into a slot.
func (s *socket) fillSlot(i int, t *slot) {
	t.n = int(s.in[i].n)
	t.from.length = uint8(s.in[i].header.Namelen)
	if s.joins {
		t.each = s.joinedAt(i)
		s.noteBulk(t.n)
	}
}

// send sends datagrams and returns how many the kernel accepted. full means that it
// accepts no more for now. Otherwise the one after those accepted can never be sent.
func (s *socket) send(packets []packet) (n int, full bool) {
	if l := &packets[0]; len(packets) == 1 && l.index.packets == 0 {
		return s.sendOne(l)
	} else if l.index.count > 1 && s.runUpTo == 0 {
		l.shorten()
	}
	messages := s.compose(packets)
	took, errno := s.sendMessages(messages)
	if s.segmented() && refusesRun(errno) {
		return s.withdraw(packets)
	}
	s.messages += uint64(took)
	for _, of := range s.taken[:took] {
		n += of
	}
	return s.sendEnded(n, errno)
}

// sendMessages sends what compose has prepared. The kernel accepts some of it or
// returns an error.
func (s *socket) sendMessages(n int) (took int, errno unix.Errno) {
	if s.refuses != 0 && s.segmented() {
		return 0, s.refuses
	}
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.out[0])), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), 0
}

// segmented reports whether the kernel is to segment the first message.
func (s *socket) segmented() bool { return s.out[0].header.Control != nil }

// gather describes the pieces of a datagram to the kernel and returns how many there
// are.
func gather(to *[pieces]unix.Iovec, l *packet) (n int) {
	to[0].Base = &l.data[0]
	to[0].SetLen(len(l.data))
	if l.body == nil {
		return 1
	}
	to[1].Base, to[2].Base = &l.body[0], &l.seal[0]
	to[1].SetLen(len(l.body))
	to[2].SetLen(len(l.seal))
	return pieces
}

// sendEnded interprets the result of a send call.
func (s *socket) sendEnded(took int, errno unix.Errno) (n int, full bool) {
	switch errno {
	case 0:
		return took, false
	case unix.EAGAIN, unix.ENOBUFS, unix.EINTR:
		return 0, true
	case unix.ECONNREFUSED, unix.EHOSTUNREACH:
		// The error is about an earlier datagram and reported once; nothing was sent.
		// The rest waits for the next call.
		s.troubled.Store(true)
		return 0, true
	}
	return 0, false
}

// refusals reports the addresses for which ICMP errors have arrived, and whether the
// process is missing rather than the host. It is rare.
func (s *socket) refusals(report func(at netip.AddrPort, process bool)) {
	if !s.troubled.Load() {
		return
	}
	s.troubled.Store(false)
	var bytes [1]byte
	var about [512]byte
	for range 4 * batchSize {
		_, n, _, to, err := unix.Recvmsg(s.fd, bytes[:], about[:], unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			return
		}
		report(addrPortOf(to), causeOf(about[:n]) == unix.ECONNREFUSED)
	}
	s.troubled.Store(true) // there may be more
}

// causeOf returns the error of an error queue message: the first field of struct
// sock_extended_err (ip(7), IP_RECVERR).
func causeOf(about []byte) unix.Errno {
	list, err := unix.ParseSocketControlMessage(about)
	if err != nil {
		return 0
	}
	for _, m := range list {
		if recverr := m.Header.Type == unix.IP_RECVERR || m.Header.Type == unix.IPV6_RECVERR; recverr && len(m.Data) >= 4 {
			return unix.Errno(binary.NativeEndian.Uint32(m.Data))
		}
	}
	return 0
}

// source returns what to sleep on, and what a sleeper sets when there is an error to read.
// readable is the event of a socket with datagrams.
const readable = unix.EPOLLIN

func (s *socket) source() (fd int, trouble *atomic.Bool) { return s.fd, &s.troubled }

func (s *socket) close() error {
	s.closeShortcut()
	return unix.Close(s.fd)
}
