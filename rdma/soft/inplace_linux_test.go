package soft

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Long Reads and Writes between two devices: the payload is received in place, and what
// was corrupted in transit is replaced there.

func TestLongAccessIsReceivedInPlace(t *testing.T) {
	const size = 400_000
	for _, v := range []struct {
		name    string
		op      rdma.Op
		c       Config
		spoil   int // index of the long datagram to corrupt
		inPlace bool
	}{
		{"read", rdma.OpRead, Config{NoCRC: true}, -1, true},
		{"read-summed", rdma.OpRead, Config{}, -1, true},
		{"read-spoilt", rdma.OpRead, Config{}, 2, true},
		{"read-encrypted", rdma.OpRead, Config{Encrypt: true}, -1, false},
		{"read-ethernet", rdma.OpRead, Config{Datagram: ethernetDatagram}, -1, false},
		{"read-jumbo", rdma.OpRead, Config{Datagram: 8972}, -1, false},
		{"write", rdma.OpWrite, Config{NoCRC: true}, -1, true},
		{"write-spoilt", rdma.OpWrite, Config{}, 3, true},
	} {
		t.Run(v.name, func(t *testing.T) {
			requests, responses := newTestNode(t, v.c), newTestNode(t, v.c)
			sends, receives := requests, responses
			if v.op == rdma.OpRead {
				sends, receives = responses, requests
			}
			longs := 0
			sends.outgoing.disturb = byPacket(sends, func(o *outbox) {
				for i := range o.packets[:o.n] {
					if l := &o.packets[i]; len(l.data) > inPlaceMin {
						if longs == v.spoil {
							l.data[len(l.data)/2] ^= 1
						}
						longs++
					}
				}
			})
			here, there := make([]byte, size), make([]byte, size)
			from, to := here, there
			if v.op == rdma.OpRead {
				from, to = there, here
			}
			for i := range from {
				from[i] = byte(i * 31 >> 3)
			}
			reg, err := responses.Register(there, rdma.RemoteRead|rdma.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = responses.Deregister(reg) }() // the test is over
			wr := rdma.SendWR{ID: 7, Op: v.op, Peer: requests.resolve(t, responses), Body: rdma.MemOf(here), Remote: reg.Base, RKey: reg.RKey}
			if n, err := requests.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
				t.Fatal(err)
			}
			var out [1]rdma.Completion
			for deadline := time.Now().Add(testTimeout); requests.cq.Poll(out[:]) == 0; {
				responses.cq.Poll(out[:])
				if time.Now().After(deadline) {
					t.Fatal("the request does not complete")
				}
			}
			if out[0].ID != 7 || out[0].Status != rdma.StatusOK || !bytes.Equal(from, to) {
				t.Errorf("completed with %+v, bytes correct: %v", out[0], bytes.Equal(from, to))
			}
			receives.mu.Lock()
			defer receives.mu.Unlock()
			if got := receives.inPlace.count > 0; got != v.inPlace {
				t.Errorf("%d datagrams were received in place", receives.inPlace.count)
			}
			if receives.inPlace.reads != 0 || receives.inPlace.midway {
				t.Errorf("the device still expects data: %d reads, midway %v", receives.inPlace.reads, receives.inPlace.midway)
			}
			if spoilt := receives.drops.Corrupt > 0; spoilt != (v.spoil >= 0) {
				t.Errorf("%d datagrams were dropped as corrupt", receives.drops.Corrupt)
			}
		})
	}
}

func TestReceivingInPlaceAllocatesNothing(t *testing.T) {
	a, b := newTestNode(t, Config{NoCRC: true}), newTestNode(t, Config{NoCRC: true})
	there := make([]byte, 1<<20)
	reg, err := b.Register(there, rdma.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Deregister(reg) }() // the test is over
	wrs := []rdma.SendWR{{ID: 7, Op: rdma.OpRead, Peer: a.resolve(t, b), Body: rdma.MemOf(make([]byte, 1<<20)), Remote: reg.Base, RKey: reg.RKey}}
	out := make([]rdma.Completion, 1)
	round := func() {
		if n, err := a.qp.PostSend(wrs); n != 1 {
			t.Fatal(err)
		}
		for a.cq.Poll(out) == 0 {
			b.cq.Poll(out)
		}
	}
	for range 5 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("a read of a megabyte allocates %v times", n)
	}
}

// TestForgedDatagramInPlace sends a datagram with the headers of a peer's next segment,
// but another address and an invalid tag. It must not change any byte of memory.
func TestForgedDatagramInPlace(t *testing.T) {
	const size = 300_000
	for _, c := range []Config{{NoCRC: true}, {}} {
		requests, responses := newTestNode(t, c), newTestNode(t, c)
		arena := bytes.Repeat([]byte{0x5A}, 2*size)
		reg, err := responses.Register(arena, rdma.RemoteWrite)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = responses.Deregister(reg) }() // the test is over
		longs := 0
		requests.outgoing.disturb = byPacket(requests, func(o *outbox) {
			for i := range o.packets[:o.n] {
				l := &o.packets[i]
				if len(l.data) <= inPlaceMin {
					continue
				}
				if longs++; longs != 3 {
					continue
				}
				var h header
				segment, err := h.parse(l.data[:len(l.data)-sealLen])
				if err != nil {
					t.Errorf("the datagram cannot be read: %v", err)
					return
				}
				at := len(l.data) - sealLen - len(segment)
				binary.BigEndian.PutUint64(l.data[at+6:], reg.Base+size) // beyond the write
				n := len(l.data) - sealLen
				binary.LittleEndian.PutUint32(l.data[n:], requests.keys.sum(l.data[:n])) // the CRC is no secret
			}
		})
		body := bytes.Repeat([]byte{7}, size)
		wr := rdma.SendWR{ID: 7, Op: rdma.OpWrite, Peer: requests.resolve(t, responses), Body: rdma.MemOf(body), Remote: reg.Base, RKey: reg.RKey}
		if n, err := requests.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
			t.Fatal(err)
		}
		var out [1]rdma.Completion
		for deadline := time.Now().Add(testTimeout); requests.cq.Poll(out[:]) == 0; {
			responses.cq.Poll(out[:])
			if time.Now().After(deadline) {
				t.Fatal("the request does not complete")
			}
		}
		if out[0].Status != rdma.StatusOK || !bytes.Equal(arena[:size], body) {
			t.Errorf("the write completes with %v, bytes correct: %v", out[0].Status, bytes.Equal(arena[:size], body))
		}
		for i, b := range arena[size:] {
			if b != 0x5A {
				t.Errorf("no CRC %v: the forged datagram wrote byte %d", c.NoCRC, size+i)
				break
			}
		}
		responses.mu.Lock()
		if d := &responses.drops; d.Strangers != 1 || responses.inPlace.count == 0 {
			t.Errorf("no CRC %v: %d datagrams in place, drops %+v, want one stranger", c.NoCRC, responses.inPlace.count, *d)
		}
		responses.mu.Unlock()
	}
}
