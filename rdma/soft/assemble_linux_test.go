package soft

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"net/netip"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Packets of runs, as they arrive: together, alone, from strangers, and spoiled.

// runWriter makes runs of a simulated peer for a device under test.
type runWriter struct {
	d     *Device
	q     *pair
	keys  *keyring
	token uint32
}

func newRunWriter(t testing.TB) *runWriter {
	d, q := newTestPair(t, rdma.RD)
	w := &runWriter{d: d, q: q, keys: testKeyring(t, "the key of the test")}
	w.token = w.keys.token(w.keys.incarnation, 1, d.keys.incarnation, q.number)
	return w
}

// message returns the packets of a message of n bytes, which is segment number.
func (w *runWriter) message(number uint32, n, each int) [][]byte {
	segment := make([]byte, ddp.UntaggedLen+n)
	(&ddp.Header{Op: ddp.Send, Last: true, QN: ddp.QueueSend, MSN: 1 + number}).Put(segment)
	for i := range n {
		segment[ddp.UntaggedLen+i] = byte(i*7 + int(number))
	}
	h := header{kind: kindSegment, to: w.q.number, from: 1, toIncarnation: w.d.keys.incarnation, number: reliable.Number(100 * number), sequence: reliable.Sequence(number)}
	w.keys.stampHeader(&h)
	l := packet{data: append(h.append(make([]byte, tagLen)), segment...), crcs: make([]uint32, reliable.MaxRun)}
	packets := (len(l.data) + each - 1) / each
	l.index = runIndex{packets: uint8(packets), count: uint8(packets), each: uint16(each), token: w.token, number: h.number, sequence: h.sequence}
	l.index.pad = w.keys.pad(&l.index)
	l.sum()
	w.keys.tagRun(&l)
	all, ends := l.appendPackets(nil, nil)
	var list [][]byte
	for i, at := 0, 0; i < len(ends); i++ {
		list = append(list, all[at:ends[i]:ends[i]])
		at = ends[i]
	}
	return list
}

// arrive passes datagrams to the device, coalesced if each is not 0.
func (w *runWriter) arrive(each int, datagrams ...[]byte) {
	s := w.d.incoming.store.take()
	s.n, s.each, s.from = 0, each, rawOf(w.d.net.first.local)
	for _, b := range datagrams {
		s.n += copy(s.data[s.n:], b)
	}
	if !w.d.takeIn(s) {
		w.d.incoming.store.giveBack(s)
	}
}

// meet makes the peer known, as its first datagram does.
func (w *runWriter) meet() {
	h := header{kind: kindAck, hasAck: true, to: w.q.number, from: 1, toIncarnation: w.d.keys.incarnation}
	w.keys.stampHeader(&h)
	w.arrive(0, w.keys.seal(h.append(nil)))
}

func (w *runWriter) check(t *testing.T, lengths ...int) {
	t.Helper()
	if got := w.q.recvCQ.Len(); got != len(lengths) {
		t.Fatalf("%d messages are delivered, want %d; %+v", got, len(lengths), w.d.drops)
	}
	var delivered [][]byte
	w.q.recvCQ.EachUnpolled(func(c *rdma.Completion, _ *loan) { delivered = append(delivered, c.Data.Bytes()) })
	for number, n := range lengths {
		got := delivered[number]
		if len(got) != n {
			t.Fatalf("message %d has %d bytes, want %d", number, len(got), n)
		}
		for i, c := range got {
			if c != byte(i*7+number) {
				t.Fatalf("byte %d of message %d is wrong", i, number)
			}
		}
	}
	if w.d.incoming.partials != 0 {
		t.Errorf("%d slots of incomplete segments are left", w.d.incoming.partials)
	}
}

// forge gives a packet that is not the first of its run the CRC for a change that was made
// to it, as somebody can who has seen the original.
func forge(b, original []byte) {
	table, field := crc32.MakeTable(crc32.Castagnoli), binary.LittleEndian.Uint32(original[crcAt:])
	for _, p := range [][]byte{b, original} {
		summed := p[indexLen:]
		if p[1]&flagEncrypted != 0 {
			summed = summed[:serialLen]
		}
		field ^= crc32.Checksum(p[:crcAt], table) ^ crc32.Checksum(summed, table)
	}
	binary.LittleEndian.PutUint32(b[crcAt:], field)
}

func TestRunArrivals(t *testing.T) {
	const each, wire = 1000, 1000 + indexLen
	concat := func(lists ...[][]byte) (all [][]byte) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for _, n := range []int{2000, 8 << 10, 3000 - 70, 2000 - 69, maxSend} {
		w := newRunWriter(t)
		w.meet()
		w.arrive(wire, w.message(0, n, each)...)
		w.check(t, n)
		if n < maxSend/2 {
			w.arrive(wire, w.message(1, n, each)...)
			w.check(t, n, n)
		}
	}
	t.Run("alone-in-any-order", func(t *testing.T) {
		w := newRunWriter(t)
		w.meet()
		first, second := w.message(0, 5000, each), w.message(1, 4000, each)
		for i := range second {
			w.arrive(0, second[len(second)-1-i])
		}
		for _, i := range []int{3, 1, 5, 0, 4, 1, 2} {
			w.arrive(0, first[i])
		}
		w.check(t, 5000, 4000)
	})
	t.Run("in-parts", func(t *testing.T) {
		w := newRunWriter(t)
		w.meet()
		first, second := w.message(0, 5000, each), w.message(1, 4000, each)
		w.arrive(wire, concat(first[1:4])...)
		w.arrive(0, first[0])
		w.arrive(wire, first[4:]...)
		w.arrive(wire, concat(second[:2], second[2:])...)
		w.check(t, 5000, 4000)
	})
	t.Run("several-together", func(t *testing.T) {
		w := newRunWriter(t)
		w.meet()
		full := 3*each - untaggedOverhead
		w.arrive(wire, concat(w.message(0, full, each), w.message(1, 5000, each))...)
		w.check(t, full, 5000)
	})
	t.Run("strangers", func(t *testing.T) {
		w := newRunWriter(t)
		w.meet()
		free := len(w.d.incoming.store.free) + w.d.incoming.store.makeable()
		for i, b := range w.message(0, 5000, each) {
			original := bytes.Clone(b)
			if b[4+i%4] ^= 1; i > 0 {
				forge(b, original)
				w.arrive(0, b)
			}
		}
		if got := len(w.d.incoming.store.free) + w.d.incoming.store.makeable(); got != free || w.d.drops.Strangers == 0 {
			t.Errorf("packets with a wrong token take %d slots; %+v", free-got, w.d.drops)
		}
		w.check(t)
	})
	t.Run("forged-numbers", func(t *testing.T) {
		w := newRunWriter(t)
		w.meet()
		list := w.message(0, 5000, each)
		for at := 8; at < 16; at++ { // packet number and data sequence
			forged := bytes.Clone(list[2])
			forged[at]++
			forge(forged, list[2])
			w.arrive(0, forged)
		}
		if w.d.drops.Corrupt != 8 || w.d.incoming.partials != 0 {
			t.Errorf("packets with forged numbers leave %d incomplete segments: %+v", w.d.incoming.partials, w.d.drops)
		}
		w.check(t)
		w.arrive(wire, list...)
		w.check(t, 5000)
	})
	t.Run("spoiled", func(t *testing.T) {
		w := newRunWriter(t)
		w.meet()
		list := w.message(0, 5000, each)
		forged := bytes.Clone(list[2])
		forged[500]++
		forge(forged, list[2])
		w.arrive(0, forged)
		for i, b := range list {
			if i != 2 {
				w.arrive(0, b)
			}
		}
		if w.d.drops.Strangers != 1 {
			t.Errorf("a spoiled segment is counted as %+v", w.d.drops)
		}
		w.check(t)
		for i := range list { // the peer sends it again
			w.arrive(0, list[i])
		}
		w.check(t, 5000)
	})
	t.Run("replaced", func(t *testing.T) {
		w := newRunWriter(t)
		w.meet()
		list := w.message(0, 5000, each)
		w.arrive(0, list[1])
		w.arrive(wire, list...)
		w.check(t, 5000)
	})
	t.Run("given-up", func(t *testing.T) {
		w := newRunWriter(t)
		w.meet()
		w.arrive(0, w.message(0, 5000, each)[0])
		if w.d.incoming.partials != 1 {
			t.Fatalf("%d incomplete segments are kept, want 1", w.d.incoming.partials)
		}
		w.d.clock.now += partialTimeout
		w.q.service()
		w.check(t)
	})
}

// TestSpoiledRunIsRepaired changes one packet of a message between two devices, and sends
// one that was received before.
func TestSpoiledRunIsRepaired(t *testing.T) {
	for _, encrypt := range []bool{false, true} {
		c := Config{Datagram: ethernetDatagram, Encrypt: encrypt}
		a, b := newTestNode(t, c), newTestNode(t, c)
		if !a.net.first.runs() {
			t.Skip("this kernel has no UDP_SEGMENT")
		}
		to := a.resolve(t, b)
		text := bytes.Repeat([]byte("secret"), 4000)
		spoiled, readable := 0, 0
		var recorded []byte
		a.mu.Lock()
		a.outgoing.disturb = byPacket(a, func(o *outbox) {
			for i := range o.packets[:o.n] {
				d := o.packets[i].data
				if bytes.Contains(d, []byte("secret")) {
					readable++
				}
				if isRun(d) && d[2] == 2 {
					recorded = bytes.Clone(d)
				}
				if isRun(d) && d[2] == 1 && spoiled == 0 {
					original := bytes.Clone(d)
					d[len(d)/2]++
					forge(d, original)
					spoiled++
				}
			}
		})
		a.mu.Unlock()
		for id, n := range []int{10, len(text)} { // a peer that is not known gets no run
			if n, err := a.qp.PostSend([]rdma.SendWR{{ID: uint64(id), Op: rdma.OpSend, Peer: to, Body: rdma.MemOf(text[:n])}}); n != 1 {
				t.Fatal(err)
			}
			pollBoth(t, a, b, func(onA bool, c *rdma.Completion) bool { return onA && c.Op == rdma.OpSend && c.ID == uint64(id) })
		}
		b.mu.Lock()
		if spoiled != 1 || b.drops.Strangers != 1 || recorded == nil {
			t.Errorf("encrypted %v: %d packets were spoiled: %+v", encrypt, spoiled, b.drops)
		}
		if (readable == 0) != encrypt {
			t.Errorf("encrypted %v: %d packets are readable", encrypt, readable)
		}
		if encrypt {
			p := b.qp.(*pair).peers[0]
			p.serials += maxLate + 1
			if b.arriveLone(recorded); b.drops.Replayed != 1 {
				t.Errorf("a replayed packet is not recognized: %+v", b.drops)
			}
		}
		b.mu.Unlock()
	}
}

// TestChangedMemoryIsRepaired changes the memory of a Write while a packet of it is lost. The
// tag of the segment then does not match, and the segment is sent again with a new one.
func TestChangedMemoryIsRepaired(t *testing.T) {
	a, b := newTestNode(t, Config{Datagram: ethernetDatagram}), newTestNode(t, Config{Datagram: ethernetDatagram})
	if !a.net.first.runs() {
		t.Skip("this kernel has no UDP_SEGMENT")
	}
	to := a.resolve(t, b)
	source, target := make([]byte, 20_000), make([]byte, 20_000)
	mr, err := b.Register(target, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	a.mu.Lock()
	a.outgoing.disturb = byPacket(a, func(o *outbox) {
		for i := range o.packets[:o.n] {
			if d := o.packets[i].data; isRun(d) && d[2] == 3 && lost == 0 {
				o.n--
				o.packets[i], o.packets[o.n] = o.packets[o.n], o.packets[i]
				for k := range source {
					source[k] = byte(1 + k%251)
				}
				lost++
				return
			}
		}
	})
	a.mu.Unlock()
	for id, wr := range []rdma.SendWR{{Op: rdma.OpSend, Body: rdma.MemOf(make([]byte, 10))}, {Op: rdma.OpWrite, Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}} {
		wr.ID, wr.Peer = uint64(id), to
		if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
			t.Fatal(err)
		}
		pollBoth(t, a, b, func(onA bool, c *rdma.Completion) bool { return onA && c.ID == uint64(id) })
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if lost != 1 || b.drops.Strangers != 1 || !bytes.Equal(source, target) {
		t.Errorf("%d packets were lost, drops %+v, bytes equal: %v", lost, b.drops, bytes.Equal(source, target))
	}
}

// FuzzRuns passes coalesced and lone packets with arbitrary contents and a valid token.
func FuzzRuns(f *testing.F) {
	w := newRunWriter(f)
	for _, b := range w.message(0, 3000, 1000) {
		f.Add(b[:64], uint16(0), true)
	}
	f.Add(bytes.Repeat([]byte{version<<4 | byte(kindRun), 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 9, 9}, 4), uint16(20), true)
	f.Fuzz(func(t *testing.T, b []byte, each uint16, mend bool) {
		w := newRunWriter(t)
		w.meet()
		step := int(each)
		if step == 0 {
			step = max(len(b), 1)
		}
		for at := 0; mend && at+indexLen <= len(b); at += step {
			b[at] = version<<4 | byte(kindRun)
			binary.BigEndian.PutUint32(b[at+4:], w.token)
		}
		w.arrive(int(each), b)
		if w.q.recvCQ.Len() > 0 {
			t.Error("a segment without a seal is delivered")
		}
		w.d.clock.now += partialTimeout
		w.q.service()
		if w.d.incoming.partials != 0 {
			t.Errorf("%d incomplete segments are kept for ever", w.d.incoming.partials)
		}
	})
}

// TestCorruptRunOfARead sends the response to a Read from a bare socket, with a byte changed
// in transit: the other packets of the run are used, and one more completes the Read.
func TestCorruptRunOfARead(t *testing.T) {
	const size, each, at = 50_000, ethernetDatagram - indexLen, 20_000
	a := newTestNode(t, Config{Datagram: ethernetDatagram})
	from, err := openSocket(netip.MustParseAddrPort("127.0.0.1:0"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	if from.allowRuns(ethernetDatagram); !from.runs() || !a.net.first.joins {
		t.Skip("this kernel has no UDP_SEGMENT or UDP_GRO")
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
	a.net.first.bulk = bulkBatch
	a.mu.Unlock()

	h := header{kind: kindSegment, to: q.number, from: 1, toIncarnation: a.keys.incarnation}
	keys.stampHeader(&h)
	body := make([]byte, size)
	for i := range body {
		body[i] = byte(i * 31 >> 3)
	}
	want := bytes.Clone(body)
	l := packet{data: make([]byte, tagLen, 256), body: body, to: rawOf(a.net.first.local), crcs: make([]uint32, reliable.MaxRun)}
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
	if a.incoming.partials != 0 || a.traffic.received != uint64(packets) {
		t.Errorf("%d incomplete segments, %d of %d packets received", a.incoming.partials, a.traffic.received, packets)
	}
}
