package soft

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Fuzz tests of everything that parses outside input: addresses, unsealed datagrams,
// and, in a device with work of all kinds in flight, datagrams that a faulty peer has
// sealed. FuzzHeader is in wire_test.go; FuzzSegments, which goes deeper into one RD
// conversation, is in hostile_linux_test.go.

// FuzzAddress checks that an accepted address is formatted the same.
func FuzzAddress(f *testing.F) {
	f.Add("10.0.0.1:4711/1/0123456789ab/0")
	f.Add("[fe80::1]:65535/ffff/1/4294967295")
	f.Add("10.0.0.1:4711,10.1.0.1:4712/1/0123456789ab/0")
	f.Fuzz(func(t *testing.T, text string) {
		a, _, err := parseAddress(rdma.Addr(text))
		if err != nil {
			return
		}
		again, _, err := parseAddress(rdma.Addr(a.String()))
		if err != nil || again != a {
			t.Errorf("%q is %+v, written %q, which is %+v: %v", text, a, a.String(), again, err)
		}
	})
}

// FuzzSealed checks that a datagram that was not sealed with the key is never accepted.
func FuzzSealed(f *testing.F) {
	for _, encrypt := range []bool{false, true} {
		k, err := newKeyring([]byte("another key"), encrypt)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(sealed(k, "hello"))
		f.Add(sealed(k, ""))
	}
	plain, encrypts := testKeyring(f, "the key"), encryptingKeyring(f, "the key")
	f.Fuzz(func(t *testing.T, d []byte) {
		for _, k := range []*keyring{plain, encrypts} {
			if content, err := k.check(bytes.Clone(d)); err == nil {
				t.Errorf("%x is accepted as %x", d, content)
			}
			if n := len(d) - sealLen; n >= 0 { // the same with the right CRC
				mended := bytes.Clone(d)
				binary.LittleEndian.PutUint32(mended[n:], crc32c.Checksum(mended[:n]))
				if content, err := k.check(mended); err == nil {
					t.Errorf("%x is accepted as %x", mended, content)
				}
			}
		}
	})
}

// victim is a device with an RD and a UD queue pair that have work in flight to a
// simulated peer, and memory of which only a part is registered.
type victim struct {
	*Device
	pairs    [2]*pair
	peerKeys *keyring
	arena    []byte
	mr       rdma.MR
	ids      map[uint64]int // completions of each request
}

const (
	arenaSize            = 400
	regionAt, regionSize = 100, 50
	sinkAt, sinkSize     = 250, 60
)

func newVictim(t testing.TB) *victim {
	t.Helper()
	v := &victim{arena: bytes.Repeat([]byte{0x5A}, arenaSize), peerKeys: testKeyring(t, "the key of the test"), ids: map[uint64]int{}}
	v.Device = openTest(t, Config{NoThread: true, Datagram: minDatagram})
	cq, err := v.NewCQ(64)
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []rdma.Transport{rdma.RD, rdma.UD} {
		qp, err := v.NewQP(rdma.QPConfig{Type: kind, SendCQ: cq, RecvCQ: cq})
		if err != nil {
			t.Fatal(err)
		}
		v.pairs[i] = qp.(*pair)
		for range 3 {
			if _, err := qp.PostRecv([]rdma.RecvWR{{Body: rdma.MemOf(make([]byte, 1000))}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if v.mr, err = v.Register(v.arena[regionAt:regionAt+regionSize], rdma.RemoteWrite|rdma.RemoteRead); err != nil {
		t.Fatal(err)
	}
	at := rawOf(v.net.first.local)
	peer := v.peers.id(v.peerKeys.incarnation, 1, 0, &at)
	body := make([]byte, 2000) // several datagrams
	v.post(t, 0, rdma.SendWR{ID: 1, Op: rdma.OpSend, Peer: peer, Body: rdma.MemOf(body)})
	v.post(t, 0, rdma.SendWR{ID: 2, Op: rdma.OpWrite, Peer: peer, Body: rdma.MemOf(body), RKey: 1})
	v.post(t, 0, rdma.SendWR{ID: 3, Op: rdma.OpRead, Peer: peer, Body: rdma.MemOf(v.arena[sinkAt : sinkAt+sinkSize]), RKey: 1})
	v.post(t, 1, rdma.SendWR{ID: 4, Op: rdma.OpSend, Peer: peer, Body: rdma.MemOf(body[:10])})
	v.post(t, 1, rdma.SendWR{ID: 5, Op: rdma.OpWriteRecord, Peer: peer, Body: rdma.MemOf(body), RKey: 1})
	return v
}

func (v *victim) post(t testing.TB, pair int, wr rdma.SendWR) {
	t.Helper()
	if n, err := v.pairs[pair].PostSend([]rdma.SendWR{wr}); n != 1 {
		t.Fatal(err)
	}
}

// FuzzDatagrams injects any number of datagrams of any kind. The first byte of each
// piece of the input selects what is corrected in the rest, so that it passes the first
// checks.
func FuzzDatagrams(f *testing.F) {
	const (
		forUD       = 1 << iota // else for RD
		realTag                 // a tagged segment names the region
		realSink                // or the sink of the Read
		timePasses              // before it
		nothingMade             // the header is left as it is
	)
	add := func(what byte, h header, segment []byte) []byte {
		b := append([]byte{what, 0, 0}, append(h.append(nil), segment...)...)
		binary.BigEndian.PutUint16(b[1:], uint16(len(b)-3))
		return b
	}
	segmentOf := func(h ddp.Header, payload int) []byte {
		b := make([]byte, h.Len()+payload)
		h.Put(b)
		return b
	}
	tagged := func(op ddp.Opcode, n int) []byte { return segmentOf(ddp.Header{Op: op, Last: true, TO: regionAt}, n) }
	send := segmentOf(ddp.Header{Op: ddp.Send, Last: true, MSN: 1}, 10)
	seen := reliable.Ack{Next: 3, End: 6, Span: 6, Words: 1, Missing: [reliable.MaxWords]uint64{2}}
	f.Add(add(0, header{kind: kindSegment}, send))
	f.Add(add(0, header{kind: kindAck, hasAck: true, ack: seen}, nil))
	f.Add(add(realTag, header{kind: kindSegment, hasAck: true, ack: seen}, tagged(ddp.Write, 20)))
	f.Add(append(add(realSink, header{kind: kindSegment}, tagged(ddp.ReadResponse, 30)), add(realSink, header{kind: kindSegment, number: 1, sequence: 1}, tagged(ddp.ReadResponse, 30))...))
	f.Add(add(0, header{kind: kindSegment}, appendTerminate(make([]byte, 0, 100), 1, ddp.FaultTag, nil)))
	f.Add(add(forUD, header{kind: kindUnreliable}, send))
	f.Add(add(forUD, header{kind: kindError}, appendTerminate(make([]byte, 0, 100), 1, ddp.FaultTag, nil)))
	piece := add(forUD|realTag, header{kind: kindRecord, record: recordHeader{number: 1, total: 30, cut: 20, id: 1}}, segmentOf(ddp.Header{Op: ddp.Write, TO: regionAt}, 20))
	rest := add(forUD|realTag, header{kind: kindRecord, record: recordHeader{number: 1, total: 30, cut: 20, index: 1, id: 1}}, segmentOf(ddp.Header{Op: ddp.Write, Last: true, TO: regionAt + 20}, 10))
	f.Add(piece)
	f.Add(append(bytes.Clone(piece), rest...))
	f.Add(append(bytes.Clone(piece), add(forUD|timePasses, header{kind: kindUnreliable}, send)...))
	f.Fuzz(func(t *testing.T, input []byte) {
		v := newVictim(t)
		for n := 0; len(input) > 3 && n < 40; n++ {
			what, size := input[0], min(int(binary.BigEndian.Uint16(input[1:])), len(input)-3, 2000)
			content := bytes.Clone(input[3 : 3+size])
			input = input[3+size:]
			if what&timePasses != 0 {
				v.clock.now += 2 * recordSilent
			}
			if len(content) >= headerLen && what&nothingMade == 0 {
				v.correct(content, what&forUD != 0, what&realTag != 0, what&realSink != 0)
			}
			if len(content) < headerLen {
				continue // too short to be sealed
			}
			v.mu.Lock()
			s := v.incoming.store.take()
			s.n = copy(s.data, v.peerKeys.seal(content))
			s.from = rawOf(v.net.first.local)
			if !v.arrive(s) {
				v.incoming.store.giveBack(s)
			}
			v.service()
			v.flush()
			v.mu.Unlock()
			v.collect(t)
		}
		for i, c := range v.arena {
			inside := i >= regionAt && i < regionAt+regionSize || i >= sinkAt && i < sinkAt+sinkSize
			if c != 0x5A && !inside {
				t.Fatalf("byte %d was written", i)
			}
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// correct turns a header into one of the simulated peer for this device, and a tagged
// segment into one that names existing memory.
func (v *victim) correct(content []byte, ud, region, sink bool) {
	to := v.pairs[0].number
	if ud {
		to = v.pairs[1].number
	}
	content[0] = version<<4 | content[0]&15
	content[1] &^= flagEncrypted
	binary.BigEndian.PutUint16(content[2:], to)
	binary.BigEndian.PutUint16(content[4:], 1)
	var good header
	good.toIncarnation = v.keys.incarnation
	v.peerKeys.stampHeader(&good)
	copy(content[6:24], good.append(nil)[6:])
	var h header
	segment, err := h.parse(content)
	if err != nil || len(segment) < ddp.TaggedLen || segment[0]&0x80 == 0 {
		return
	}
	near := binary.BigEndian.Uint64(segment[6:]) % arenaSize
	switch peer := v.pairs[0].peers[0]; {
	case region:
		binary.BigEndian.PutUint32(segment[2:], uint32(v.mr.RKey))
		binary.BigEndian.PutUint64(segment[6:], v.mr.Base-regionAt+near)
	case sink && peer != nil && peer.requests != nil:
		binary.BigEndian.PutUint32(segment[2:], uint32(peer.requests.oldest().tag))
	}
}

// collect takes completions and checks that no request completes twice.
func (v *victim) collect(t *testing.T) {
	t.Helper()
	cq := v.pairs[0].recvCQ
	for cq.Len() > 0 {
		var one [1]rdma.Completion
		cq.Take(one[:])
		c := one[0]
		switch c.Op {
		case rdma.OpRecv, rdma.OpLowWater, rdma.OpRefused:
		case rdma.OpRecord:
			if at := c.Data.Addr() - rdma.MemOf(v.arena).Addr(); c.Data.Len() > 0 && (at < regionAt || at+uint64(c.Data.Len()) > regionAt+regionSize) {
				t.Fatalf("a record names bytes outside the region: %+v", c)
			}
		default:
			if v.ids[c.ID]++; v.ids[c.ID] > 1 || c.ID == 0 || c.ID > 5 {
				t.Fatalf("request %d completes as %+v, completion %d", c.ID, c, v.ids[c.ID])
			}
		}
	}
}
