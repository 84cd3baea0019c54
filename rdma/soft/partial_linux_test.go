package soft

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestPartialCRC changes bytes of a datagram whose checksum covers its front alone. All
// headers are in the front, and nobody can add the flag in transit.
func TestPartialCRC(t *testing.T) {
	ours, peerKeys := testKeyring(t, "ours"), testKeyring(t, "ours")
	long := strings.Repeat("x", 5000)
	whole := sealed(peerKeys, long)
	peerKeys.flags = flagPartial
	partial := sealed(peerKeys, long)
	if content, err := ours.check(bytes.Clone(partial)); err != nil || string(content[headerLen:]) != long {
		t.Fatalf("a datagram with a partial checksum is rejected: %v", err)
	}
	for _, c := range []struct {
		name string
		d    []byte
		at   int
		want error
	}{
		{"front", partial, coveredLen - 1, errCorrupt},
		{"bytes", partial, coveredLen, nil},
		{"bytes-of-a-whole-one", whole, coveredLen, errCorrupt},
		{"flag", whole, 1, errCorrupt},
	} {
		d := bytes.Clone(c.d)
		d[c.at] ^= flagPartial
		if _, err := ours.check(d); !errors.Is(err, c.want) {
			t.Errorf("%s: byte %d changed: got %v, want %v", c.name, c.at, err, c.want)
		}
	}
	for _, flags := range []byte{0, flagPartial} {
		for _, more := range []int{0, 20, 64, 100} { // with the user's head the front exceeds coveredLen
			peerKeys.flags = flags
			h := header{kind: kindSegment}
			peerKeys.stampHeader(&h)
			front := append(h.append(nil), bytes.Repeat([]byte{'h'}, 18+more)...)
			body := bytes.Repeat([]byte{'o'}, gatherAbove)
			var seal [sealLen]byte
			peerKeys.sealGathered(front, body, &seal)
			if _, err := ours.check(bytes.Join([][]byte{front, body, seal[:]}, nil)); err != nil {
				t.Errorf("gathered behind %d bytes, flags %#x: %v", len(front), flags, err)
			}
		}
	}
	if longestHeader+18 > coveredLen {
		t.Errorf("headers of %d bytes are not covered by %d", longestHeader+18, coveredLen)
	}
}

// TestPartialCRCInterop exchanges messages between devices with full and partial
// checksum, over both kinds of queue pair, with copied and gathered payloads.
func TestPartialCRCInterop(t *testing.T) {
	for name, kind := range map[string]rdma.Transport{"RD": rdma.RD, "UD": rdma.UD} {
		t.Run(name, func(t *testing.T) {
			a, b := newTestNodeOf(t, Config{NoCRC: true}, kind), newTestNodeOf(t, Config{}, kind)
			for _, ends := range [][2]*testNode{{a, b}, {b, a}} {
				to := ends[0].resolve(t, ends[1])
				for _, size := range []int{0, 100, gatherAbove - 1, gatherAbove, 20_000} {
					text := bytes.Repeat([]byte{'y'}, size)
					wr := rdma.SendWR{Op: rdma.OpSend, Peer: to, Body: rdma.MemOf(text)}
					if n, err := ends[0].qp.PostSend([]rdma.SendWR{wr}); n != 1 {
						t.Fatal(err)
					}
					if c, ok := ends[1].poll(testTimeout); !ok || !bytes.Equal(c.Data.Bytes(), text) {
						t.Errorf("sent %d bytes, received %d, or others", size, c.Data.Len())
					}
					if c, ok := ends[0].poll(testTimeout); !ok || c.Status != rdma.StatusOK {
						t.Errorf("the send of %d bytes completes with %+v", size, c)
					}
				}
			}
		})
	}
}
