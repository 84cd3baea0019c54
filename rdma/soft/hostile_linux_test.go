package soft

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// A device against a faulty peer that has the key, and the memory cost of peers.

// newTestPair returns a device with a queue pair whose datagrams the test injects.
func newTestPair(t testing.TB, kind rdma.Transport) (*Device, *pair) {
	t.Helper()
	d := openTest(t, Config{NoThread: true}) // the test makes progress itself
	cq, err := d.NewCQ(64)
	if err != nil {
		t.Fatal(err)
	}
	srq, err := d.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	qp, err := d.NewQP(rdma.QPConfig{Type: kind, SendCQ: cq, RecvCQ: cq, SRQ: srq})
	if err != nil {
		t.Fatal(err)
	}
	return d, qp.(*pair)
}

// FuzzSegments injects validly sealed datagrams with arbitrary contents. The input is
// split into the segments of one conversation. Nothing may be written outside the
// registered region.
func FuzzSegments(f *testing.F) {
	const start, size = 100, 50
	write := func(tag ddp.Tag, to uint64, n int) []byte {
		b := make([]byte, ddp.TaggedLen+n)
		(&ddp.Header{Op: ddp.Write, Last: true, Tag: tag, TO: to}).Put(b)
		return b
	}
	f.Add(write(1, start, size), uint8(64), true)
	f.Add(write(1, start-1, size+9), uint8(73), true)
	send := make([]byte, ddp.UntaggedLen+10)
	(&ddp.Header{Op: ddp.Send, Last: true, QN: ddp.QueueSend, MSN: 1}).Put(send)
	f.Add(send, uint8(28), false)
	request := make([]byte, ddp.UntaggedLen+ddp.ReadRequestLen)
	(&ddp.Header{Op: ddp.ReadRequestOp, Last: true, QN: ddp.QueueRequest, MSN: 1}).Put(request)
	f.Add(request, uint8(46), true)
	f.Fuzz(func(t *testing.T, input []byte, piece uint8, tagged bool) {
		d, q := newTestPair(t, rdma.RD)
		arena := bytes.Repeat([]byte{0x5A}, 200)
		mr, err := d.Register(arena[start:start+size], rdma.RemoteWrite|rdma.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		peerKeys := testKeyring(t, "the key of the test")
		for number := uint32(0); len(input) > 0 && number < 50; number++ {
			segment := bytes.Clone(input[:min(len(input), max(int(piece), 1))])
			input = input[len(segment):]
			if tagged && len(segment) >= ddp.TaggedLen && segment[0]&0x80 != 0 {
				// Use addresses near the region and its real tag: others would be
				// refused at once.
				h := ddp.Header{Op: ddp.Opcode(segment[1] & 15), Last: segment[0]&0x40 != 0, Tag: ddp.Tag(mr.RKey), TO: mr.Base - start + uint64(segment[13])}
				if h.Op.Tagged() {
					h.Put(segment)
				}
			}
			h := header{kind: kindSegment, to: q.number, from: 1, toIncarnation: d.keys.incarnation, number: reliable.Number(number), sequence: reliable.Sequence(number)}
			peerKeys.stampHeader(&h)
			s := d.incoming.store.take()
			s.n = copy(s.data, peerKeys.seal(append(h.append(nil), segment...)))
			s.from = rawOf(d.net.first.local)
			d.arrive(s)
		}
		d.service()
		for i, c := range arena {
			if c != 0x5A && (i < start || i >= start+size) {
				t.Fatalf("byte %d was written; the region is [%d, %d)", i, start, start+size)
			}
		}
	})
}

// TestIdlePeersAreSmallInMemory measures the heap use of ten thousand idle peers, so that what other tests have left behind does not matter.
func TestIdlePeersAreSmallInMemory(t *testing.T) {
	d, q := newTestPair(t, rdma.RD)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const peers = 10000
	at := rawOf(d.net.first.local)
	before := heap()
	for i := range peers {
		q.peer(d.peers.id(incarnation(1+i), 1, uint32(i), &at))
	}
	each := int(heap()-before) / peers
	t.Logf("%d bytes each", each)
	if each > 512 {
		t.Errorf("an idle peer costs %d bytes of heap", each)
	}
	runtime.KeepAlive(d)
}
