//go:build linux

package soft

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/iwarp"
)

// The device against bare sockets, in one run and alternating: a busy machine is busy
// for all of them, and the ratio stays. Run it with
//
//	go test -run '^$' -bench . ./rdma/soft
//
// Each benchmark prints the time of the fastest tenth of the rounds, and its ratio to
// that of the bare sockets: the other rounds were disturbed.

// benchEnd is one of two ends. serve and echo each run on their own thread.
type benchEnd interface {
	serve(rounds, size int)
	echo(rounds, size int)
}

const round = 50 // round trips in a row: few, so that some rounds are undisturbed

func BenchmarkHalfRoundTrip(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4)) // two threads play, and the progress threads need a processor
	for _, size := range []int{64, 2048, 8192} {
		bare, tcp := newBareUDP(b), newDevicePlayer(b, rdma.RC)
		for name, one := range map[string]benchEnd{
			"UD": newDevicePlayer(b, rdma.UD), "RD": newDevicePlayer(b, rdma.RD), "RC": tcp,
			"UD-bare": newDevicePlayerOf(b, rdma.UD, Config{NoCRC: true}),
			"RD-bare": newDevicePlayerOf(b, rdma.RD, Config{NoCRC: true}),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				var mine, theirs []time.Duration
				for b.Loop() {
					theirs = append(theirs, play(bare, size))
					mine = append(mine, play(one, size))
				}
				b.ReportMetric(float64(fastest(mine))/float64(fastest(theirs)), "×bareUDP")
				b.ReportMetric(float64(fastest(mine).Nanoseconds())/(2*round), "ns/half")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// fastest returns the longest time of the fastest tenth of the rounds.
func fastest(rounds []time.Duration) time.Duration {
	slices.Sort(rounds)
	return rounds[len(rounds)/10]
}

// play runs one round with two threads.
func play(p benchEnd, size int) time.Duration {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.echo(round+10, size)
		close(done)
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.serve(10, size)
	start := time.Now()
	p.serve(round, size)
	took := time.Since(start)
	<-done
	return took
}

// bareUDP is a pair of bare sockets.
type bareUDP struct {
	fds    [2]int
	to     [2]rawAddress
	buffer [2][]byte
}

func newBareUDP(b *testing.B) *bareUDP {
	u := &bareUDP{}
	for i := range u.fds {
		s, err := openSocket(netip.MustParseAddrPort("127.0.0.1:0"), 1<<20)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.close() }) // nothing depends on it
		u.fds[i], u.to[1-i], u.buffer[i] = s.fd, rawOf(s.local), make([]byte, maxDatagram)
	}
	return u
}

func (u *bareUDP) send(i, size int) {
	to := &u.to[i]
	unix.RawSyscall6(unix.SYS_SENDTO, uintptr(u.fds[i]), uintptr(unsafe.Pointer(&u.buffer[i][0])), uintptr(size), unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&to.bytes[0])), uintptr(to.length))
}

func (u *bareUDP) receive(i int) {
	for {
		_, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(u.fds[i]), uintptr(unsafe.Pointer(&u.buffer[i][0])), maxDatagram, unix.MSG_DONTWAIT, 0, 0)
		if errno == 0 {
			return
		}
	}
}

func (u *bareUDP) serve(rounds, size int) {
	for range rounds {
		u.send(0, size)
		u.receive(0)
	}
}

func (u *bareUDP) echo(rounds, size int) {
	for range rounds {
		u.receive(1)
		u.send(1, size)
	}
}

// devicePlayer is a pair of devices with a queue pair each.
type devicePlayer struct {
	cq   [2]rdma.CQ
	qp   [2]rdma.QP
	peer [2]rdma.PeerID
	body [2][]byte
	wr   [2][1]rdma.SendWR // kept here to avoid allocations
	out  [2][8]rdma.Completion
	reg  [2]rdma.MR // of body
}

func newDevicePlayer(b testing.TB, kind rdma.Transport) *devicePlayer {
	return newDevicePlayerOf(b, kind, Config{})
}

func newDevicePlayerOf(b testing.TB, kind rdma.Transport, c Config) *devicePlayer {
	c.Bind, c.JobKey = netip.MustParseAddrPort("127.0.0.1:0"), []byte("key")
	p := &devicePlayer{}
	var devices [2]rdma.Device
	for i := range devices {
		var err error
		if kind == rdma.RC {
			devices[i], err = iwarp.Open(iwarp.Config{Key: []byte("key")})
		} else {
			devices[i], err = Open(c)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = devices[i].Close() }) // nothing depends on it
		if p.cq[i], err = devices[i].NewCQ(64); err != nil {
			b.Fatal(err)
		}
		srq, err := devices[i].NewSRQ(rdma.SRQConfig{Lend: true})
		if err != nil {
			b.Fatal(err)
		}
		if p.qp[i], err = devices[i].NewQP(rdma.QPConfig{Type: kind, SendCQ: p.cq[i], RecvCQ: p.cq[i], SRQ: srq}); err != nil {
			b.Fatal(err)
		}
		p.body[i] = make([]byte, 1<<20)
		if p.reg[i], err = devices[i].Register(p.body[i], rdma.RemoteWrite|rdma.RemoteRead); err != nil {
			b.Fatal(err)
		}
	}
	if kind == rdma.RC {
		p.connect(b)
		return p
	}
	for i := range devices {
		var err error
		if p.peer[i], err = devices[i].Resolve(p.qp[1-i].Addr()); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

// connect connects both ends, as RC requires.
func (p *devicePlayer) connect(b testing.TB) {
	failed := make(chan error)
	for i := range p.qp {
		go func() { failed <- p.qp[i].Connect(b.Context(), p.qp[1-i].Addr()) }()
	}
	for range p.qp {
		if err := <-failed; err != nil {
			b.Fatal(err)
		}
	}
}

func (p *devicePlayer) send(i, size int) {
	wr := &p.wr[i]
	wr[0].Op, wr[0].Peer, wr[0].Body, wr[0].Flags = rdma.OpSend, p.peer[i], rdma.MemOf(p.body[i][:size]), 0
	if size <= 256 {
		wr[0].Flags = rdma.Inline
	}
	p.post(i)
}

// post posts the work request of one end.
func (p *devicePlayer) post(i int) {
	for {
		n, err := p.qp[i].PostSend(p.wr[i][:])
		if n == 1 {
			return
		}
		if err != rdma.ErrAgain {
			panic(err)
		}
		p.cq[i].Poll(p.out[i][:0])
	}
}

func (p *devicePlayer) receive(i int) {
	for {
		for _, c := range p.out[i][:p.cq[i].Poll(p.out[i][:])] {
			if c.Status != rdma.StatusOK {
				panic(c.Status.Err())
			}
			if c.Op == rdma.OpRecv {
				return
			}
		}
	}
}

func (p *devicePlayer) serve(rounds, size int) {
	for range rounds {
		p.send(0, size)
		p.receive(0)
	}
}

func (p *devicePlayer) echo(rounds, size int) {
	for range rounds {
		p.receive(1)
		p.send(1, size)
	}
}

// BenchmarkWrite writes a megabyte at a time, with several in flight, and compares with
// TCP.
func BenchmarkWrite(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	for _, v := range []struct {
		name string
		c    Config
	}{
		{"loopback", Config{}},
		{"loopback-bare", Config{NoCRC: true}},
		{"jumbo", Config{Datagram: 8972}},
		{"ethernet", Config{Datagram: ethernetDatagram}},
		{"ethernet-apart", Config{Datagram: ethernetDatagram, NoRuns: true}},
	} {
		b.Run(v.name, func(b *testing.B) {
			p, tcp := newDevicePlayerOf(b, rdma.RD, v.c), newBareTCP(b)
			var mine, theirs []time.Duration
			b.SetBytes(megabytes << 20)
			for b.Loop() {
				theirs = append(theirs, playMegabytes(tcp))
				mine = append(mine, playMegabytes(p))
			}
			b.ReportMetric(float64(fastest(theirs))/float64(fastest(mine)), "×bareTCP")
			b.ReportMetric(megabytes*(1<<20)/1e6/fastest(mine).Seconds(), "MB/s-quick")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// megabytes is the volume of one round; underWayAtOnce of them are in flight.
const megabytes, underWayAtOnce = 16, 4

type streamer interface {
	give()
	take(done <-chan struct{})
}

func playMegabytes(p streamer) time.Duration {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.take(done)
		close(ended)
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	p.give()
	took := time.Since(start)
	close(done)
	<-ended
	return took
}

// give writes the megabytes and waits until the peer has them.
func (p *devicePlayer) give() {
	posted, ended := 0, 0
	for ended < megabytes {
		if posted < megabytes && posted-ended < underWayAtOnce {
			p.wr[0][0] = rdma.SendWR{Op: rdma.OpWrite, Peer: p.peer[0], Body: rdma.MemOf(p.body[0]), Remote: p.reg[1].Base, RKey: p.reg[1].RKey}
			p.post(0)
			posted++
			continue
		}
		for _, c := range p.out[0][:p.cq[0].Poll(p.out[0][:])] {
			if c.Status != rdma.StatusOK {
				panic(c.Status.Err())
			}
			ended++
		}
	}
}

// take polls, like a rank that waits for something else.
func (p *devicePlayer) take(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
			p.cq[1].Poll(p.out[1][:])
		}
	}
}

// bareTCP is a bare connection.
type bareTCP struct {
	fds    [2]int
	buffer [2][]byte
}

func newBareTCP(b *testing.B) *bareTCP {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it has done its work
	t := &bareTCP{}
	for i := range t.fds {
		var c net.Conn
		if i == 0 {
			c, err = net.Dial("tcp", l.Addr().String())
		} else {
			c, err = l.Accept()
		}
		if err != nil {
			b.Fatal(err)
		}
		f, err := c.(*net.TCPConn).File()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _, _ = f.Close(), c.Close() }) // nothing depends on it
		t.fds[i], t.buffer[i] = int(f.Fd()), make([]byte, 1<<20)
		if err := unix.SetNonblock(t.fds[i], true); err != nil {
			b.Fatal(err)
		}
	}
	return t
}

// give sends the megabytes and waits for the byte that confirms them.
func (t *bareTCP) give() {
	for range megabytes {
		t.move(0, unix.SYS_SENDTO, 1<<20)
	}
	t.move(0, unix.SYS_RECVFROM, 1)
}

func (t *bareTCP) take(<-chan struct{}) {
	for range megabytes {
		t.move(1, unix.SYS_RECVFROM, 1<<20)
	}
	t.move(1, unix.SYS_SENDTO, 1)
}

// move sends or receives n bytes.
func (t *bareTCP) move(i int, call uintptr, size int) {
	for at := 0; at < size; {
		n, _, errno := unix.RawSyscall6(call, uintptr(t.fds[i]), uintptr(unsafe.Pointer(&t.buffer[i][at])), uintptr(size-at), unix.MSG_DONTWAIT, 0, 0)
		if errno == 0 {
			at += int(n)
		}
	}
}
