package dgram

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// TestRunsOfAReadAreReceivedInPlace reads a megabyte in Ethernet datagrams.
func TestRunsOfAReadAreReceivedInPlace(t *testing.T) {
	for _, paths := range []int{1, 2} {
		t.Run(fmt.Sprint(paths), func(t *testing.T) {
			c := Config{Datagram: ethernetDatagram, Paths: pathsConfig(0, paths).Paths}
			a, b := newTestNode(t, c), newTestNode(t, c)
			if !a.runs() || !a.socket.joins || !a.socket.peeks() {
				t.Skip("this kernel has no UDP_SEGMENT, UDP_GRO or SO_PEEK_OFF")
			}
			source, sink := make([]byte, 1<<20), make([]byte, 1<<20)
			for i := range source {
				source[i] = byte(i ^ i>>8 ^ i>>16)
			}
			mr, err := b.Register(source, rdma.RemoteRead)
			if err != nil {
				t.Fatal(err)
			}
			to := a.resolve(t, b)
			for id := range uint64(3) { // the window grows
				clear(sink)
				if n, err := a.qp.PostSend([]rdma.SendWR{{ID: id, Op: rdma.OpRead, Peer: to, Body: rdma.MemOf(sink), Remote: mr.Base, RKey: mr.RKey}}); n != 1 {
					t.Fatal(err)
				}
				pollBoth(t, a, b, func(onA bool, c *rdma.Completion) bool { return onA && c.ID == id && c.Status == rdma.StatusOK })
				if !bytes.Equal(source, sink) {
					t.Fatal("the bytes read are wrong")
				}
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.inPlace.count == 0 {
				t.Error("no run was received in place")
			}
			if a.inPlace.reads != 0 || a.drops != (Drops{}) {
				t.Errorf("%d reads are expected at the end, drops %+v", a.inPlace.reads, a.drops)
			}
		})
	}
}

// TestCorruptRunInPlace sends the response to a Read from a bare socket, with a byte changed
// in transit: the other packets of the run are used, and one more completes the Read.
func TestCorruptRunInPlace(t *testing.T) {
	const size, each, at = 50_000, ethernetDatagram - indexLen, 20_000
	a := newTestNode(t, Config{Datagram: ethernetDatagram})
	from, err := openSocket(netip.MustParseAddrPort("127.0.0.1:0"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	if from.allowRuns(ethernetDatagram); !from.runs() || !a.socket.joins || !a.socket.peeks() {
		t.Skip("this kernel has no UDP_SEGMENT, UDP_GRO or SO_PEEK_OFF")
	}
	keys, sink := testKeyring(t, "the key of the test"), make([]byte, size)
	there := address{at: rawOf(from.local), incarnation: keys.incarnation, pair: 1}
	to, err := a.Resolve(rdma.Addr(there.String()))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := a.qp.PostSend([]rdma.SendWR{{ID: 7, Op: rdma.OpRead, Peer: to, Body: rdma.MemOf(sink), RKey: 1}}); n != 1 {
		t.Fatal(err)
	}
	q := a.qp.(*pair)
	a.mu.Lock()
	q.learnToken(q.peers[to])
	tag := q.peers[to].requests.oldest().tag
	a.socket.bulk = bulkBatch
	a.mu.Unlock()

	h := header{kind: kindSegment, to: q.number, from: 1, toIncarnation: a.keys.incarnation}
	keys.stampHeader(&h)
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i * 31 >> 3)
	}
	want := bytes.Clone(body)
	l := packet{data: make([]byte, tagLen, 256), body: body, to: rawOf(a.socket.local), crcs: make([]uint32, reliable.MaxRun)}
	l.data = appendDDP(h.append(l.data), &ddp.Header{Op: ddp.ReadResponse, Last: true, Tag: tag})
	packets := uint8((len(l.data) + size + each - 1) / each)
	l.index = runIndex{packets: packets, count: packets, each: each, token: keys.token(keys.incarnation, 1, a.keys.incarnation, q.number)}
	l.index.pad = keys.pad(&l.index)
	l.sum()
	keys.tagRun(&l)
	body[at]++
	if n, _ := from.send([]packet{l}); n != 1 {
		t.Fatal("the run is not accepted")
	}
	var out [1]rdma.Completion
	for limit := time.Now().Add(testTimeout); ; {
		if a.cq.Poll(out[:]) > 0 {
			t.Fatalf("a corrupt response completes the Read: %+v", out[0])
		}
		if a.Drops().Corrupt == 1 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the corrupt packet is not found: %+v", a.Drops())
		}
	}
	body[at]--
	l.index.position, l.index.count = uint8((len(l.data)+at)/each), 1
	l.index.number, l.index.flags = reliable.Number(packets), flagLone
	l.index.pad = keys.pad(&l.index)
	l.sum()
	if n, _ := from.send([]packet{l}); n != 1 {
		t.Fatal("the packet is not accepted")
	}
	for limit := time.Now().Add(testTimeout); a.cq.Poll(out[:]) == 0; {
		if time.Now().After(limit) {
			t.Fatalf("the Read does not complete: %+v", a.Drops())
		}
	}
	if out[0].ID != 7 || out[0].Status != rdma.StatusOK || !bytes.Equal(sink, want) {
		t.Errorf("completed with %+v, bytes correct: %v", out[0], bytes.Equal(sink, want))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.partials != 0 || a.traffic.received != uint64(packets) {
		t.Errorf("%d incomplete segments, %d of %d packets received", a.partials, a.traffic.received, packets)
	}
}
