package udrel

import (
	"bytes"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// FuzzHeader parses arbitrary packets, and encodes and parses the result again.
func FuzzHeader(f *testing.F) {
	for _, k := range []kind{kindSend, kindWrite, kindRead, kindResponse, kindAck, kindClose} {
		var head [rdma.HeadMax]byte
		h := header{kind: k, flags: flagLast, number: 7, want: 9, left: 11, held: 13, target: target{1 << 40, 2, 30}, history: receiveHistory{1, 1 << 63}}
		f.Add(head[:h.put(&head)])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again header
		if !h.parse(b) {
			return
		}
		var head [rdma.HeadMax]byte
		n := h.put(&head)
		packet := append(append([]byte{}, head[:n]...), h.contents...)
		if !again.parse(packet) {
			t.Fatalf("%+v is encoded as %x, which does not parse", h, head[:n])
		}
		if !bytes.Equal(h.contents, again.contents) {
			t.Fatalf("contents %x become %x", h.contents, again.contents)
		}
		h.contents, again.contents = nil, nil
		if h.kind != again.kind || h.number != again.number || h.want != again.want || h.target != again.target || h.history != again.history {
			t.Fatalf("%+v becomes %+v", h, again)
		}
	})
}

// FuzzSender lets a peer send arbitrary acks at any time. The counts must stay correct,
// and every message must end once.
func FuzzSender(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 1, 1, 2, 40, 3, 3})
	f.Add([]byte{0, 0, 0, 1, 5, 2, 4, 255, 3, 200, 1, 1, 1, 4, 4})
	f.Fuzz(func(t *testing.T, script []byte) {
		var s sender
		var h windowPool
		var messagePool messagePool
		now, taken, ended := time.Duration(0), 0, 0
		for i := 0; i+1 < len(script); i += 2 {
			arg := script[i+1]
			switch script[i] % 5 {
			case 0:
				m := messagePool.take(0)
				m.kind, m.room, m.sending, m.body = kindSend, 100, true, rdma.MemOf(make([]byte, int(arg)*4))
				s.push(m)
				taken++
			case 1:
				for range arg % 32 {
					n, f := s.next(now, &h)
					if f == nil {
						break
					}
					if arg&64 != 0 {
						s.undoSend(n)
						break
					}
				}
			case 2:
				seen := receiveHistory{uint64(arg) * 0x0101_0011_0301_0101, uint64(arg)}
				for m := s.acknowledge(now, s.first+psn(arg%16), &seen, &h); m != nil; m = m.following {
					ended++
				}
			case 3:
				now += time.Duration(arg) * time.Millisecond
				s.expire(now)
			case 4:
				s.measure(time.Duration(arg) * time.Microsecond)
			}
			checkSender(t, &s)
		}
		for m := s.abandon(&h); m != nil; m = m.following {
			ended++
		}
		checkSender(t, &s)
		if taken != ended || s.sendWindow != nil || len(h.free) != h.made {
			t.Fatalf("%d messages were queued and %d have ended; %d of %d send windows were returned", taken, ended, len(h.free), h.made)
		}
	})
}

func checkSender(t *testing.T, s *sender) {
	t.Helper()
	var inFlight, waiting int
	for n := s.first; n != s.number; n++ {
		switch f := &s.sendWindow[n%window]; f.packetState {
		case stateInFlight:
			inFlight++
		case statePending:
			waiting++
			if n.before(s.scan) {
				t.Fatalf("packet %d is pending before %d, where the search begins", n, s.scan)
			}
		case stateNone:
			t.Fatalf("packet %d of %d to %d has no state", n, s.first, s.number)
		}
	}
	if inFlight != int(s.inFlight) || waiting != int(s.waiting) || s.number-s.first > window {
		t.Fatalf("%d packets are in flight and %d pending, of %d; counted are %d and %d", inFlight, waiting, s.number-s.first, s.inFlight, s.waiting)
	}
}
