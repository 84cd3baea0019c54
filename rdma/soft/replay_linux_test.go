package soft

import (
	"bytes"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// Replays: recorded datagrams that are sent again when their 32-bit numbers have
// wrapped. The 48-bit serial number reveals them.

// recorder makes the datagrams of a simulated peer.
type recorder struct {
	t    *testing.T
	d    *Device
	q    *pair
	keys *keyring
	mr   rdma.MR
}

func newRecorder(t *testing.T, kind rdma.Transport, mem []byte) *recorder {
	d, q := newTestPair(t, kind)
	mr, err := d.Register(mem, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	return &recorder{t, d, q, testKeyring(t, "the key of the test"), mr}
}

// write returns a datagram that writes a value to the first byte of the memory.
func (r *recorder) write(h header, value byte) []byte {
	h.to, h.from, h.toIncarnation = r.q.number, 1, r.d.keys.incarnation
	if !r.keys.stampHeader(&h) {
		r.t.Fatal("the serial numbers are used up")
	}
	b := appendDDP(h.append(make([]byte, 0, 200)), &ddp.Header{Op: ddp.Write, Last: true, Tag: ddp.Tag(r.mr.RKey), TO: r.mr.Base})
	return r.keys.seal(append(b, value))
}

func (r *recorder) arrive(datagram []byte) {
	s := r.d.incoming.store.take()
	s.n = copy(s.data, datagram)
	s.from = rawOf(r.d.net.first.local)
	r.d.arrive(s)
}

func TestReplayAfterWrap(t *testing.T) {
	mem := make([]byte, 1)
	r := newRecorder(t, rdma.RD, mem)
	first := uint32(1<<32 - 3)
	at := rawOf(r.d.net.first.local)
	p := r.q.peer(r.d.peers.id(r.keys.incarnation, 1, 0, &at))
	p.StartAt(reliable.Sequence(first))
	recorded := make([][]byte, 6)
	for i := range recorded {
		recorded[i] = r.write(header{kind: kindSegment, number: reliable.Number(first + uint32(i)), sequence: reliable.Sequence(first + uint32(i))}, byte(i+1))
		if r.arrive(bytes.Clone(recorded[i])); mem[0] != byte(i+1) {
			t.Fatalf("datagram %d of six around the wrap is not accepted: %+v", i, r.d.drops)
		}
	}
	for i := range recorded { // right away they are duplicates
		if r.arrive(bytes.Clone(recorded[i])); mem[0] != 6 {
			t.Fatalf("datagram %d is accepted again", i)
		}
	}
	// 2^32 datagrams later the same sequence numbers are due again.
	p.StartAt(reliable.Sequence(first))
	r.keys.serial += 1 << 32
	if r.arrive(r.write(header{kind: kindSegment, number: reliable.Number(first), sequence: reliable.Sequence(first)}, 77)); mem[0] != 77 {
		t.Fatalf("a new datagram is rejected after 2^32: %+v", r.d.drops)
	}
	if r.arrive(bytes.Clone(recorded[1])); mem[0] != 77 || r.d.drops.Replayed != 1 {
		t.Errorf("a replay from before the wrap is accepted: memory has %d, %+v", mem[0], r.d.drops)
	}
	if r.arrive(r.write(header{kind: kindSegment, number: reliable.Number(first + 1), sequence: reliable.Sequence(first + 1)}, 78)); mem[0] != 78 {
		t.Errorf("the real datagram after the replay is rejected: %+v", r.d.drops)
	}
}

// TestReplayOnUD: a UD message may arrive twice, but not after the numbers above it
// have wrapped.
func TestReplayOnUD(t *testing.T) {
	mem := make([]byte, 1)
	r := newRecorder(t, rdma.UD, mem)
	piece := header{kind: kindRecord, record: recordHeader{number: 5, total: 1, cut: 1}}
	old := r.write(piece, 1)
	r.arrive(bytes.Clone(old))
	r.keys.serial += 1 << 32
	piece.record.number = 1<<31 + 4 // the furthest number still ahead of 5
	if r.arrive(r.write(piece, 2)); mem[0] != 2 {
		t.Fatalf("a new write-record is rejected: %+v", r.d.drops)
	}
	piece.record.number = 1<<32 - 1
	r.arrive(r.write(piece, 3))
	if r.arrive(bytes.Clone(old)); mem[0] != 3 || r.d.drops.Replayed != 1 {
		t.Errorf("a replayed write-record is written: memory has %d, %+v", mem[0], r.d.drops)
	}
}

// TestNoncesBeyond32Bits: the nonce consists of the incarnation and a 48-bit serial
// number. It does not repeat at 2^32, and a device that has used all numbers sends
// nothing more.
func TestNoncesBeyond32Bits(t *testing.T) {
	k := testKeyring(t, "ours")
	seen := map[string]bool{}
	for _, start := range []uint64{0, 1<<32 - 2, 2<<32 - 2} {
		k.serial = start
		for range 4 {
			var h header
			if !k.stampHeader(&h) {
				t.Fatal("no serial number is left")
			}
			nonce := string(nonceOf(h.append(nil)))
			if seen[nonce] {
				t.Fatalf("serial number %#x has a nonce that was used before", h.serial)
			}
			seen[nonce] = true
		}
	}
	if k.serial = lastSerial; k.stampHeader(&header{}) {
		t.Error("a serial number is given out twice")
	}
}
