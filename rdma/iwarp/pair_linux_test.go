//go:build !muster_portable

package iwarp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// end is one end of a connection under test.
type end struct {
	t   testing.TB
	dev rdma.Device
	cq  rdma.CQ
	qp  rdma.QP
	got []rdma.Completion

	ended []rdma.Completion // OpDisconnected
}

func newEnd(t testing.TB, cfg Config) *end {
	t.Helper()
	e := &end{t: t, dev: open(t, cfg)}
	e.cq, e.qp = e.pair()
	return e
}

// pair creates one more queue pair that lends, with its own completion queue.
func (e *end) pair() (rdma.CQ, rdma.QP) {
	e.t.Helper()
	cq, err := e.dev.NewCQ(64)
	if err != nil {
		e.t.Fatal(err)
	}
	srq, err := e.dev.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		e.t.Fatal(err)
	}
	qp, err := e.dev.NewQP(rdma.QPConfig{Type: rdma.RC, SendCQ: cq, RecvCQ: cq, SRQ: srq})
	if err != nil {
		e.t.Fatal(err)
	}
	return cq, qp
}

// join connects two ends and returns the result of each.
func join(a, b rdma.QP, timeout time.Duration) (errA, errB error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { errA = a.Connect(ctx, b.Addr()) })
	wg.Go(func() { errB = b.Connect(ctx, a.Addr()) })
	wg.Wait()
	return errA, errB
}

func newPair(t testing.TB, cfg Config) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, cfg), newEnd(t, cfg)
	if err := errors.Join(join(a.qp, b.qp, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	return a, b
}

func (e *end) poll() {
	var out [16]rdma.Completion
	for _, c := range out[:e.cq.Poll(out[:])] {
		c.Data = rdma.MemOf(bytes.Clone(c.Data.Bytes()))
		if c.Op == rdma.OpDisconnected {
			e.ended = append(e.ended, c)
			continue
		}
		e.got = append(e.got, c)
	}
}

// pollUntil polls the ends until cond holds.
func pollUntil(t testing.TB, what string, cond func() bool, ends ...*end) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); {
		for _, e := range ends {
			e.poll()
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 20 s of polling, still not: %s", what)
		}
	}
}

// TestForgedAccessesAreRefused makes a connection for each forged access, because a
// refusal ends it: the conformance suite sees only the first one.
func TestForgedAccessesAreRefused(t *testing.T) {
	mem := bytes.Repeat([]byte{7}, 1000)
	type forgery struct {
		name  string
		forge func(owner rdma.Device, mr *rdma.MR) error
	}
	change := func(fn func(mr *rdma.MR)) func(rdma.Device, *rdma.MR) error {
		return func(_ rdma.Device, mr *rdma.MR) error { fn(mr); return nil }
	}
	with := func(right rdma.Access) func(rdma.Device, *rdma.MR) error {
		return func(owner rdma.Device, mr *rdma.MR) (err error) {
			*mr, err = owner.Register(mem, right)
			return err
		}
	}
	forgeries := []forgery{
		{"one byte beyond the end", change(func(mr *rdma.MR) { mr.Base += mr.Len - 39 })},
		{"one byte before the start", change(func(mr *rdma.MR) { mr.Base-- })},
		{"an address that wraps", change(func(mr *rdma.MR) { mr.Base = ^uint64(0) - 3 })},
		{"a region that was deregistered", func(owner rdma.Device, mr *rdma.MR) error { return owner.Deregister(*mr) }},
		{"no right", with(0)},
	}
	for bit := range 32 {
		forgeries = append(forgeries, forgery{fmt.Sprintf("bit %d of the key", bit), change(func(mr *rdma.MR) { mr.RKey ^= 1 << bit })})
	}
	for op, other := range map[rdma.Op]rdma.Access{rdma.OpRead: rdma.RemoteWrite, rdma.OpWrite: rdma.RemoteRead} {
		for _, f := range append(forgeries, forgery{"the other right", with(other)}) {
			a, b := newPair(t, Config{})
			mr, err := b.dev.Register(mem, rdma.RemoteRead|rdma.RemoteWrite)
			if err == nil {
				err = f.forge(b.dev, &mr)
			}
			if err != nil {
				t.Fatal(err)
			}
			here := bytes.Repeat([]byte{9}, 40)
			if _, err := a.qp.PostSend([]rdma.SendWR{{ID: 1, Op: op, Body: rdma.MemOf(here), Remote: mr.Base, RKey: mr.RKey}}); err != nil {
				t.Fatal(err)
			}
			pollUntil(t, "the access has completed", func() bool { return len(a.got) > 0 }, a, b)
			if c := a.got[0]; c.Status != rdma.StatusRemoteAccess || c.ID != 1 {
				t.Errorf("%v with %s completes as %+v", op, f.name, c)
			}
			if !bytes.Equal(mem, bytes.Repeat([]byte{7}, 1000)) || !bytes.Equal(here, bytes.Repeat([]byte{9}, 40)) {
				t.Fatalf("%v with %s transferred bytes", op, f.name)
			}
			_, _ = a.dev.Close(), b.dev.Close()
		}
	}
}

// TestBrokenConnectionStatus: requests that are posted later complete too, with the
// reason.
func TestBrokenConnectionStatus(t *testing.T) {
	a, b := newPair(t, Config{})
	wrs := []rdma.SendWR{{ID: 1, Op: rdma.OpWrite, Body: rdma.MemOf(make([]byte, 8)), Remote: 8, RKey: 77}}
	if _, err := a.qp.PostSend(wrs); err != nil {
		t.Fatal(err)
	}
	pollUntil(t, "the access has completed", func() bool { return len(a.got) == 1 }, a, b)
	for _, c := range []struct {
		e    *end
		op   rdma.Op
		want rdma.Status
	}{{a, rdma.OpRead, rdma.StatusRemoteAccess}, {a, rdma.OpSend, rdma.StatusFault}, {b, rdma.OpSend, rdma.StatusFault}} {
		c.e.got = nil
		if n, err := c.e.qp.PostSend([]rdma.SendWR{{ID: 2, Op: c.op}}); n != 1 || err != nil {
			t.Fatalf("a %v on a broken connection: %d, %v", c.op, n, err)
		}
		pollUntil(t, "the work has completed", func() bool { return len(c.e.got) == 1 }, c.e)
		if got := c.e.got[0].Status; got != c.want {
			t.Errorf("a %v on a broken connection completes with %v, expected %v", c.op, got, c.want)
		}
	}
}

func TestConnectNeedsTheKey(t *testing.T) {
	for _, keys := range [][2]string{{"one", "two"}, {"", "two"}, {"one", ""}} {
		a, b := newEnd(t, Config{Key: []byte(keys[0])}), newEnd(t, Config{Key: []byte(keys[1])})
		if errA, errB := join(a.qp, b.qp, 200*time.Millisecond); errA == nil || errB == nil {
			t.Errorf("with the keys %q: %v, %v; both should fail", keys, errA, errB)
		}
	}
	a, b := newPair(t, Config{Key: []byte("one")})
	if n, err := a.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: 4, Head: [64]byte{1, 2, 3, 4}}}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	pollUntil(t, "the message has arrived", func() bool { return len(b.got) == 1 }, a, b)
	if got := b.got[0].Data.Bytes(); !bytes.Equal(got, []byte{1, 2, 3, 4}) {
		t.Errorf("the message is %x", got)
	}
}

// TestForeignConnections: clients connect before the peer, with garbage, with nothing, and
// with a request for a queue pair that does not exist.
func TestForeignConnections(t *testing.T) {
	a, b := newEnd(t, Config{}), newEnd(t, Config{})
	w := preferences{crc: true, p2p: true, ready: readyWrite, ird: 1, ord: 1}
	var lost Config
	req := w.request(lost.greeting(greetRequest, 12345, a.qp.Addr(), b.qp.Addr()))
	foreign, err := req.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := (&startup{revision: 1}).append(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []*end{a, b} {
		at, _, _, err := parseAddr(e.qp.Addr())
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range [][]byte{nil, []byte("GET / HTTP/1.0\r\n\r\n"), foreign, plain, make([]byte, 4000)} {
			c, err := net.Dial("tcp", at.String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Write(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(join(a.qp, b.qp, 20*time.Second)); err != nil {
		t.Errorf("with foreign connections: %v", err)
	}
}

// TestConnectInRing: each rank waits for another one first.
func TestConnectInRing(t *testing.T) {
	const n = 3
	var ends [n]*end
	var qps [n][n]rdma.QP
	for i := range n {
		ends[i] = newEnd(t, Config{})
		for j := range n {
			if _, qp := ends[i].pair(); i != j {
				qps[i][j] = qp
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			for k := 1; k < n; k++ {
				j := (i + k) % n
				errs[i] = errors.Join(errs[i], qps[i][j].Connect(ctx, qps[j][i].Addr()))
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// TestDamagedFrameCausesTerminate plays a peer that sends a bad CRC.
func TestDamagedFrameCausesTerminate(t *testing.T) {
	for _, size := range []int{20, 3000, 30000} { // through the buffer and directly
		e, peer, f := rawPeer(t)
		body := make([]byte, size)
		h := ddp.Header{Op: ddp.Send, Last: true, MSN: 1}
		var head [ddp.UntaggedLen]byte
		frame := f.append(nil, head[:h.Put(head[:])], body)
		frame[len(frame)-1] ^= 1
		if _, err := peer.Write(frame); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 100)
		read := make(chan int, 1)
		go func() { n, _ := peer.Read(answer); read <- n }()
		n := -1
		pollUntil(t, "a Terminate has arrived", func() bool {
			select {
			case n = <-read:
				return true
			default:
				return false
			}
		}, e)
		d := deframer{crc: true}
		segment, _, _, err := d.next(answer[:n])
		if err != nil || len(segment) < ddp.UntaggedLen+4 {
			t.Fatalf("got %x, %v instead of a Terminate", answer[:n], err)
		}
		var got ddp.Header
		k, fault := got.Decode(segment, len(segment))
		var term ddp.Terminate
		if fault != ddp.NoFault || got.Op != ddp.TerminateOp || !term.Decode(segment[k:]) || term.Fault != ddp.FaultMPACRC {
			t.Errorf("a bad CRC causes %v %+v", got.Op, term.Fault)
		}
		if len(e.got) != 0 {
			t.Errorf("a damaged message of %d bytes is delivered", size)
		}
	}
}

// rawPeer connects a socket of the test to a queue pair, as the initiator. Only polls make progress.
func rawPeer(t *testing.T) (*end, net.Conn, *framer) {
	t.Helper()
	e := newEnd(t, Config{Served: true})
	at, token, _, err := parseAddr(e.qp.Addr())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := net.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	me := rdma.Addr("0.0.0.0:1/0000000000000001") // smaller: it dials
	w := preferences{crc: true, p2p: true, ready: readyWrite, ird: 1, ord: 1}
	var cfg Config
	req := w.request(cfg.greeting(greetRequest, token, e.qp.Addr(), me))
	frame, err := req.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Write(frame); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := e.qp.Connect(ctx, me); err != nil {
		t.Fatal(err)
	}
	reply := make([]byte, startupMax)
	n, err := peer.Read(reply)
	if err != nil {
		t.Fatal(err)
	}
	rep, _, err := parseStartup(reply[:n], true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.conclude(&rep); err != nil {
		t.Fatal(err)
	}
	f := &framer{crc: true}
	ready := ddp.Header{Op: ddp.Write, Last: true}
	var head [ddp.TaggedLen]byte
	if _, err := peer.Write(f.append(nil, head[:ready.Put(head[:])])); err != nil {
		t.Fatal(err)
	}
	return e, peer, f
}

// TestPeerInSmallPieces sends a long message byte by byte and in odd pieces.
func TestPeerInSmallPieces(t *testing.T) {
	e, peer, f := rawPeer(t)
	body := someBytes(20000)
	var stream []byte
	for msn, lo := uint32(1), 0; lo < len(body); msn, lo = msn+1, lo+10000 {
		for off := 0; off < 10000; off += 5000 {
			h := ddp.Header{Op: ddp.Send, Last: off == 5000, MSN: msn, MO: uint32(off)}
			var head [ddp.UntaggedLen]byte
			stream = f.append(stream, head[:h.Put(head[:])], body[lo+off:lo+off+5000])
		}
	}
	for i, k := 0, 1; i < len(stream); i, k = i+k, k%700+37 {
		if _, err := peer.Write(stream[i:min(i+k, len(stream))]); err != nil {
			t.Fatal(err)
		}
		e.poll()
	}
	pollUntil(t, "both messages have arrived", func() bool { return len(e.got) == 2 }, e)
	if got := append(e.got[0].Data.Bytes(), e.got[1].Data.Bytes()...); !bytes.Equal(got, body) {
		t.Error("the messages are not what was sent")
	}
	if binary.BigEndian.Uint16(stream) != 5018 {
		t.Errorf("the test's frames have segments of %d bytes", binary.BigEndian.Uint16(stream))
	}
}

// TestForeignPeers connects two devices as if each were of another implementation.
func TestForeignPeers(t *testing.T) {
	a, b := newEnd(t, Config{}), newEnd(t, Config{})
	at, _, _, err := parseAddr(b.qp.Addr())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	var errA, errB error
	wg.Go(func() { errA = a.qp.Connect(ctx, rdma.Addr(at.String())) })
	wg.Go(func() { errB = b.qp.Connect(ctx, Anybody) })
	wg.Wait()
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]*end{{a, b}, {b, a}} { // the responder may send too
		if n, err := way[0].qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: 3}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		pollUntil(t, "the message has arrived", func() bool { return len(way[1].got) == 1 }, a, b)
	}
	keyed := newEnd(t, Config{Key: []byte("k")})
	for _, peer := range []rdma.Addr{Anybody, rdma.Addr(at.String())} {
		if err := keyed.qp.Connect(ctx, peer); err == nil {
			t.Errorf("a device with a key connects to %q", peer)
		}
	}
}

func TestInvalidAddresses(t *testing.T) {
	e := newEnd(t, Config{})
	for _, addr := range []rdma.Addr{"", "nonsense", "127.0.0.1", "127.0.0.1:70000", "127.0.0.1:5/12", "127.0.0.1:5/012345678901234g", e.qp.Addr()} {
		if err := e.qp.Connect(context.Background(), addr); err == nil {
			t.Errorf("Connect to %q succeeds", addr)
		}
	}
	for _, cfg := range []Config{{Address: "nowhere"}, {Address: "192.0.2.1"}, {Port: 70000}} {
		if d, err := Open(cfg); err == nil {
			t.Errorf("Open(%+v) succeeds", cfg)
			_ = d.Close()
		}
	}
}

// TestIdleConnectionHoldsNoBuffer, so that a thousand of them can be open.
func TestIdleConnectionHoldsNoBuffer(t *testing.T) {
	a, b := newPair(t, Config{NoThread: true})
	for _, size := range []int{10, 50000} {
		a.got, b.got = nil, nil
		if n, err := a.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Body: rdma.MemOf(make([]byte, size))}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		pollUntil(t, "the message has arrived and was sent", func() bool { return len(b.got) == 1 && len(a.got) == 1 }, a, b)
		for _, e := range []*end{a, b} {
			if q := e.qp.(*queuePair); q.in.buf != nil || q.out.copied != nil {
				t.Errorf("after a message of %d bytes the queue pair keeps %d bytes to read into and %d to send from",
					size, len(q.in.buf), cap(q.out.copied))
			}
			if n := e.qp.Pending(); n != 0 {
				t.Errorf("%d messages are pending when all have arrived", n)
			}
		}
	}
}

// TestWaitArmedWhilePolling arms and waits in one goroutine while another polls.
func TestWaitArmedWhilePolling(t *testing.T) {
	a, b := newPair(t, Config{})
	cq := b.cq
	for round := range 20 {
		pollUntil(t, "the queue is idle", func() bool { return cq.Arm(rdma.NotifyAny, time.Hour) > 0 }, b)
		woken := make(chan error, 1)
		go func() { woken <- cq.WaitArmed(20 * time.Second) }()
		b.poll() // permitted meanwhile
		if n, err := a.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: 1}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		start := time.Now()
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Fatalf("round %d: WaitArmed lasts %v although a message has arrived", round, took)
		}
		pollUntil(t, "the message has arrived", func() bool { return len(b.got) == round+1 }, b)
	}
}

// TestMessagesBeforeCloseArrive although the sender has not read everything it was sent.
func TestMessagesBeforeCloseArrive(t *testing.T) {
	a, b := newPair(t, Config{NoThread: true})
	for _, e := range []*end{b, a} {
		if n, err := e.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: 5}}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		b.cq.Poll(nil) // the responder sends when it has received from the initiator
		a.cq.Poll(nil)
	}
	b.got = nil
	wr := rdma.SendWR{Op: rdma.OpSend, Body: rdma.MemOf(make([]byte, 40000))}
	if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if err := a.qp.Close(); err != nil {
		t.Fatal(err)
	}
	pollUntil(t, "both messages have arrived", func() bool { return len(b.got) == 2 }, b)
	for i, c := range b.got {
		if want := []uint64{5, 40000}[i]; c.Op != rdma.OpRecv || c.Status != rdma.StatusOK || c.Len != want {
			t.Errorf("message %d, sent before the close, arrives as %+v", i, c)
		}
	}
}
