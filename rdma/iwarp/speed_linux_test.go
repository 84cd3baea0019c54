//go:build !muster_portable

package iwarp

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// The device against the sockets it is made of. Each benchmark alternates, in one run,
// between a queue pair and a bare TCP connection that is polled without blocking, and
// reports both and their ratio. There are two methods: two threads and wall-clock time, in
// short rounds of which the best tenth counts, because other work disturbs the rest; and
// both ends alternating in one thread, whose processor time is independent of the load on
// the machine.

// traffic is the work of two ends: there and back, or one way.
type traffic struct {
	near, far func()      // the work of each end in a round, on its own thread
	step      func()      // a round, both ends in one thread
	over      atomic.Bool // near is done, for a far end that only serves
}

// side runs a function on its own thread, once for each round.
func side(tb testing.TB, fn func()) (start, end chan bool) {
	start, end = make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread()
		for range start {
			fn()
			end <- true
		}
	}()
	tb.Cleanup(func() { close(start) })
	return start, end
}

// onTwoThreads measures a round by wall-clock time.
func (w *traffic) onTwoThreads(tb testing.TB) func() time.Duration {
	start, end := side(tb, w.far)
	return func() time.Duration {
		w.over.Store(false)
		start <- true
		begun := time.Now()
		w.near()
		took := time.Since(begun)
		w.over.Store(true)
		<-end
		return took
	}
}

// onOneThread measures a round by the processor time of the thread.
func (w *traffic) onOneThread(testing.TB) func() time.Duration {
	clock := func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
			panic(err)
		}
		return time.Duration(t.Nano())
	}
	return func() time.Duration {
		begun := clock()
		w.step()
		return clock() - begun
	}
}

// bare is one end of a TCP connection.
type bare struct {
	fd  conn
	buf []byte
}

// newBare returns a connection over loopback, with the same settings as the device's.
func newBare(tb testing.TB, size int) (a, b *bare) {
	tb.Helper()
	var at listener
	if err := at.open(nil, netip.MustParseAddrPort("127.0.0.1:0")); err != nil {
		tb.Fatal(err)
	}
	defer at.close()
	from, err := newSocket(at.at.Addr())
	if err == nil {
		err = unix.Connect(int(from), sockaddr(at.at))
	}
	if err != nil && err != unix.EINPROGRESS {
		tb.Fatal(err)
	}
	for {
		to, _, err := unix.Accept4(int(at.sock), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err == unix.EAGAIN {
			continue
		}
		if err == nil {
			err = unix.SetsockoptInt(to, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		}
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _, _ = unix.Close(int(from)), unix.Close(to) })
		return &bare{from, make([]byte, size)}, &bare{conn(to), make([]byte, size)}
	}
}

func (e *bare) send(b []byte) {
	for len(b) > 0 {
		if n, err := send(e.fd, b); err == nil {
			b = b[n:]
		}
	}
}

func (e *bare) receive(b []byte) {
	for len(b) > 0 {
		if n, err := read(e.fd, b); err == nil {
			b = b[n:]
		}
	}
}

// bareEcho sends there and back.
func bareEcho(tb testing.TB, size, trips int) *traffic {
	a, b := newBare(tb, size)
	return &traffic{
		near: func() {
			for range trips {
				a.send(a.buf)
				a.receive(a.buf)
			}
		},
		far: func() {
			for range trips {
				b.receive(b.buf)
				b.send(b.buf)
			}
		},
		step: func() {
			for range trips {
				a.send(a.buf)
				b.receive(b.buf)
				b.send(b.buf)
				a.receive(a.buf)
			}
		},
	}
}

// bareStream sends one way, with an answer at the end.
func bareStream(tb testing.TB, size, count int) *traffic {
	a, b := newBare(tb, size)
	return &traffic{
		near: func() {
			for range count {
				a.send(a.buf)
			}
			a.receive(a.buf[:1])
		},
		far: func() {
			for range count {
				b.receive(b.buf)
			}
			b.send(b.buf[:1])
		},
		step: func() {
			sent, got := 0, 0
			for got < size*count {
				if sent < size*count {
					if n, err := send(a.fd, a.buf[sent%size:]); err == nil {
						sent += n
					}
				}
				if n, err := read(b.fd, b.buf[got%size:]); err == nil {
					got += n
				}
			}
		},
	}
}

// talker is an end that sends the same message repeatedly.
type talker struct {
	*end
	wr  []rdma.SendWR
	out []rdma.Completion
}

func newTalker(e *end, size int) *talker {
	m := &talker{end: e, wr: make([]rdma.SendWR, 1), out: make([]rdma.Completion, 16)}
	m.wr[0] = rdma.SendWR{Op: rdma.OpSend, Body: rdma.MemOf(make([]byte, size))}
	if size <= smallInline {
		m.wr[0].Flags = rdma.Inline
	}
	return m
}

func (m *talker) send() {
	if n, err := m.qp.PostSend(m.wr); n != 1 {
		panic(err)
	}
}

// ended returns the number of completions of a kind that Poll returns.
func (m *talker) ended(op rdma.Op) (n int) {
	for _, c := range m.out[:m.cq.Poll(m.out)] {
		if c.Status != rdma.StatusOK {
			panic(c.Status)
		}
		if c.Op == op {
			n++
		}
	}
	return n
}

func (m *talker) receive() {
	for m.ended(rdma.OpRecv) == 0 {
	}
}

// pairEcho is bareEcho over a queue pair.
func pairEcho(tb testing.TB, cfg Config, size, trips int) *traffic {
	one, two := newPair(tb, cfg)
	a, b := newTalker(one, size), newTalker(two, size)
	return &traffic{
		near: func() {
			for range trips {
				a.send()
				a.receive()
			}
		},
		far: func() {
			for range trips {
				b.receive()
				b.send()
			}
		},
		step: func() {
			for range trips {
				a.send()
				b.receive()
				b.send()
				a.receive()
			}
		},
	}
}

// pairStream is bareStream by Writes or Reads, all of which are complete at the end.
func pairStream(tb testing.TB, cfg Config, op rdma.Op, size, count int) *traffic {
	one, two := newPair(tb, cfg)
	a, b := newTalker(one, size), newTalker(two, size)
	mr, err := b.dev.Register(make([]byte, size), rdma.RemoteWrite|rdma.RemoteRead)
	if err != nil {
		tb.Fatal(err)
	}
	a.wr[0] = rdma.SendWR{Op: op, Body: rdma.MemOf(make([]byte, size)), Remote: mr.Base, RKey: mr.RKey}
	near := func(beside func()) {
		const window = 16
		for posted, ended := 0, 0; ended < count; {
			for ; posted < min(count, ended+window); posted++ {
				a.send()
			}
			beside()
			ended += a.ended(op)
		}
	}
	w := &traffic{
		near: func() { near(func() {}) },
		step: func() { near(func() { b.cq.Poll(b.out) }) },
	}
	w.far = func() {
		for !w.over.Load() {
			b.cq.Poll(b.out)
		}
	}
	return w
}

// against alternates rounds and reports the best tenth of both in a unit, and the ratio:
// of the times, or of the rates if more is better.
func against(b *testing.B, unit string, rate bool, per func(time.Duration) float64, ours, theirs *traffic) {
	for _, way := range []struct {
		name string
		of   func(*traffic) func() time.Duration
	}{
		{"threads=2", func(w *traffic) func() time.Duration { return w.onTwoThreads(b) }},
		{"threads=1", func(w *traffic) func() time.Duration { return w.onOneThread(b) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			one, other := way.of(ours), way.of(theirs)
			var mine, reference []float64
			for range max(b.N, 50) {
				mine, reference = append(mine, per(one())), append(reference, per(other()))
			}
			slices.Sort(mine)
			slices.Sort(reference)
			best := len(mine) / 10
			if rate {
				best = len(mine) - 1 - best
			}
			b.ReportMetric(mine[best], unit)
			b.ReportMetric(reference[best], "tcp-"+unit)
			b.ReportMetric(mine[best]/reference[best], "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// speedConfigs returns the kinds of connection that differ in cost.
func speedConfigs() map[string]Config {
	return map[string]Config{"crc": {}, "bare": {NoCRC: true}, "tls": {Encrypt: true, Key: []byte("k")}}
}

func BenchmarkHalfRoundTripAgainstTCP(b *testing.B) {
	const trips = 40
	half := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / 2 / trips }
	for name, cfg := range speedConfigs() {
		for _, size := range []int{64, 8 << 10} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				against(b, "us", false, half, pairEcho(b, cfg, size, trips), bareEcho(b, size, trips))
			})
		}
	}
}

func BenchmarkBandwidthAgainstTCP(b *testing.B) {
	const size, count = 1 << 20, 16
	rate := func(d time.Duration) float64 { return float64(size*count) / float64(d.Nanoseconds()) }
	for name, cfg := range speedConfigs() {
		for _, op := range []rdma.Op{rdma.OpWrite, rdma.OpRead} {
			b.Run(fmt.Sprintf("%s/%v", name, op), func(b *testing.B) {
				against(b, "GB/s", true, rate, pairStream(b, cfg, op, size, count), bareStream(b, size, count))
			})
		}
	}
}
