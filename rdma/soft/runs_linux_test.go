package soft

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Runs of datagrams: which are grouped, how the kernel passes them, and what happens
// when it rejects them.

// TestRunsCarryAWrite writes a megabyte in Ethernet datagrams and counts the kernel
// messages.
func TestRunsCarryAWrite(t *testing.T) {
	for _, v := range []struct {
		name    string
		config  Config
		refuses unix.Errno
		share   float64 // of datagrams impaired
		runs    bool    // runs are used to the end
	}{
		{"taken", Config{}, 0, 0, true},
		{"taken-encrypted", Config{Encrypt: true}, 0, 0, true},
		{"taken-jumbo", Config{Datagram: 8972}, 0, 0, true},
		{"impaired", Config{}, 0, 0.05, true},
		{"impaired-encrypted", Config{Encrypt: true}, 0, 0.05, true},
		{"no-checksums", Config{}, unix.EIO, 0, false},
		{"no-checksums-encrypted", Config{Encrypt: true}, unix.EIO, 0, false},
		{"not-known", Config{}, unix.EINVAL, 0, false},
		{"too-long", Config{}, unix.EMSGSIZE, 0, false},
		{"not-wanted", Config{NoRuns: true}, 0, 0, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			if v.config.Datagram == 0 {
				v.config.Datagram = ethernetDatagram
			}
			a, b := newTestNode(t, v.config), newTestNode(t, v.config)
			if a.net.first.runUpTo == 0 && v.runs {
				t.Skip("this kernel has no UDP_SEGMENT")
			}
			to := a.resolve(t, b)
			a.mu.Lock()
			a.net.first.refuses = v.refuses
			if v.share > 0 {
				a.outgoing.disturb = byPacket(a, impair(v.share, 1))
			}
			a.mu.Unlock()
			source, target := make([]byte, 1<<20), make([]byte, 1<<20)
			for i := range source {
				source[i] = byte(i ^ i>>8 ^ i>>16)
			}
			mr, err := b.Register(target, rdma.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			wr := rdma.SendWR{ID: 1, Op: rdma.OpWrite, Peer: to, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}
			if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
				t.Fatal(err)
			}
			pollBoth(t, a, b, func(onA bool, c *rdma.Completion) bool {
				if c.Status != rdma.StatusOK {
					t.Fatalf("the write completes with %v", c.Status.Err())
				}
				return onA && c.ID == 1
			})
			b.mu.Lock() // synchronizes with the progress thread's writes
			defer b.mu.Unlock()
			if !bytes.Equal(source, target) {
				t.Error("the bytes received differ from those written")
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			sent, messages := a.traffic.sent, a.net.first.messages
			t.Logf("%d datagrams in %d messages; %d received", sent, messages, b.traffic.received)
			if still := a.net.first.runUpTo > 0; still != v.runs {
				t.Errorf("runs in use at the end: %v, want %v", still, v.runs)
			}
			if v.runs && messages >= sent { // their length depends on load and losses
				t.Errorf("%d datagrams were sent in %d messages: no runs", sent, messages)
			}
			if !v.runs && messages != sent {
				t.Errorf("%d datagrams were sent in %d messages without runs", sent, messages)
			}
			if u := a.drops.Unsendable; u != 0 {
				t.Errorf("%d datagrams were dropped because their run was rejected", u)
			}
		})
	}
}

// TestRunOf checks which packets form a run.
func TestRunOf(t *testing.T) {
	here, there := rawOf(netip.MustParseAddrPort("127.0.0.1:1000")), rawOf(netip.MustParseAddrPort("127.0.0.1:1001"))
	packets := func(to rawAddress, lengths ...int) (list []packet) {
		for _, n := range lengths {
			list = append(list, packet{data: make([]byte, n), to: to})
		}
		return list
	}
	gathered := []packet{
		{data: make([]byte, 80), body: make([]byte, 8800), to: here},
		{data: make([]byte, 8880+sealLen), to: here}, // copied, and of the same length
		{data: make([]byte, 80), body: make([]byte, 8801), to: here},
	}
	for _, v := range []struct {
		name    string
		upTo    int
		packets []packet
		want    []int
	}{
		{"one", 1472, packets(here, 1400), []int{1}},
		{"equal", 1472, packets(here, 1400, 1400, 1400), []int{3}},
		{"the-last-is-shorter", 1472, packets(here, 1400, 1400, 100), []int{3}},
		{"a-short-one-ends-it", 1472, packets(here, 1400, 100, 100, 1400), []int{2, 1, 1}},
		{"a-longer-one-begins-another", 1472, packets(here, 100, 100, 1400), []int{2, 1}},
		{"to-two-peers", 1472, append(packets(here, 700, 700), packets(there, 700, 700)...), []int{2, 2}},
		{"long-ones-go-alone", 1472, packets(here, 1473, 1473), []int{1, 1}},
		{"none-are-taken", 0, packets(here, 1400, 1400), []int{1, 1}},
		{"a-packet-has-an-end", 9000, packets(here, 9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000), []int{7, 1}},
		{"gathered", 9000, gathered, []int{2, 1}},
	} {
		t.Run(v.name, func(t *testing.T) {
			s := &socket{runUpTo: v.upTo}
			if n := s.compose(v.packets); !slices.Equal(s.taken[:n], v.want) {
				t.Errorf("the packets are grouped as %v, want %v", s.taken[:n], v.want)
			}
		})
	}
}

// TestRunsSurviveBadAddress: the kernel rejects port 0, alone or in a run. That must
// not disable runs.
func TestRunsSurviveBadAddress(t *testing.T) {
	s, _ := twoSockets(t)
	list := []packet{{data: make([]byte, 100)}, {data: make([]byte, 100)}}
	for i := range list {
		list[i].to = rawOf(netip.MustParseAddrPort("127.0.0.1:0"))
	}
	if n, full := s.send(list); n != 0 || full {
		t.Errorf("packets to port 0: %d accepted, full: %v", n, full)
	}
	if s.runUpTo == 0 {
		t.Error("runs are disabled")
	}
}

// TestRunsAllocateNothing sends and receives a run over two bare sockets.
func TestRunsAllocateNothing(t *testing.T) {
	a, b := twoSockets(t)
	const length = 1000
	var list [batchSize]packet
	for i := range list {
		list[i].data, list[i].to = bytes.Repeat([]byte{byte(i)}, length), rawOf(b.local)
	}
	into := &slot{data: make([]byte, maxDatagram)}
	deadline := time.Now().Add(testTimeout)
	allocated := testing.AllocsPerRun(20, func() {
		if n, _ := a.send(list[:]); n != len(list) {
			t.Fatalf("%d of %d packets are accepted", n, len(list))
		}
		for got := 0; got < len(list)*length; {
			if b.receiveOne(into) {
				if into.n > length && into.each != length {
					t.Fatalf("received %d bytes with segment length %d", into.n, into.each)
				}
				if into.data[0] != byte(got/length) {
					t.Fatalf("received datagram %d, want %d", into.data[0], got/length)
				}
				got += into.n
			} else if time.Now().After(deadline) {
				t.Fatalf("received only %d bytes", got)
			}
		}
	})
	if allocated != 0 {
		t.Errorf("a run allocates %v times", allocated)
	}
}

// twoSockets returns two sockets with runs enabled.
func twoSockets(t *testing.T) (a, b *socket) {
	t.Helper()
	for _, s := range []**socket{&a, &b} {
		var err error
		if *s, err = openSocket(netip.MustParseAddrPort("127.0.0.1:0"), 1<<20); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := (*s).close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		if (*s).allowRuns(ethernetDatagram); (*s).runUpTo == 0 || !(*s).joins {
			t.Skip("this kernel has no UDP_SEGMENT or no UDP_GRO")
		}
	}
	return a, b
}

// TestReceiveRun: pieces of a message need no slot. A datagram that must be kept gets
// its own slot, and one that finds none is dropped and counted. The slot of the run
// always stays with the socket.
func TestReceiveRun(t *testing.T) {
	for _, v := range []struct {
		name           string
		room           bool
		last           bool // each datagram is a message
		first          uint32
		shown, dropped int
	}{
		{name: "pieces", shown: 1},
		{name: "messages", room: true, last: true, shown: 3},
		{name: "messages-without-room", last: true, dropped: 3},
		{name: "early", room: true, last: true, first: 1},
		{name: "early-without-room", last: true, first: 1, dropped: 3},
	} {
		t.Run(v.name, func(t *testing.T) {
			d, q := newTestPair(t, rdma.RD)
			peerKeys := testKeyring(t, "the key of the test")
			run := d.incoming.store.take()
			run.n, run.from = 0, rawOf(d.net.first.local)
			for i := range 3 {
				segment := make([]byte, ddp.UntaggedLen+100)
				about := ddp.Header{Op: ddp.Send, Last: i == 2, QN: ddp.QueueSend, MSN: 1, MO: uint32(100 * i)}
				if v.last {
					about.Last, about.MSN, about.MO = true, uint32(1+i)+uint32(v.first), 0
				}
				about.Put(segment)
				h := header{kind: kindSegment, to: q.number, from: 1, toIncarnation: d.keys.incarnation, number: reliable.Number(v.first + uint32(i)), sequence: reliable.Sequence(v.first + uint32(i))}
				peerKeys.stampHeader(&h)
				sealed := peerKeys.seal(append(h.append(nil), segment...))
				run.n += copy(run.data[run.n:], sealed)
				run.each = len(sealed)
			}
			if !v.room {
				d.incoming.store.free, d.incoming.store.made = nil, maxSlots
			}
			if d.takeIn(run) {
				t.Error("the slot of the run is kept")
			}
			clear(run.data) // the socket fills it again
			if got := int(d.drops.NoRoom); got != v.dropped {
				t.Errorf("%d datagrams found no slot, %d counted", v.dropped, got)
			}
			if got := q.recvCQ.Len(); got != v.shown {
				t.Errorf("%d messages are delivered, want %d", got, v.shown)
			}
			if p := q.peers[0]; v.first > 0 && v.room && (p.reorderBuffer == nil || p.reorderBuffer[1] == nil || p.reorderBuffer[1].n == 0 || p.reorderBuffer[1].part) {
				t.Error("an early datagram has no slot of its own")
			}
		})
	}
}
