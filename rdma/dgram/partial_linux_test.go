package dgram

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestFrontAlone changes bytes of a datagram whose checksum covers its front alone. All
// headers are in that, and nobody can add the flag on the way.
func TestFrontAlone(t *testing.T) {
	ours, kin := testKeyring(t, "ours"), testKeyring(t, "ours")
	long := strings.Repeat("x", 5000)
	whole := sealed(kin, long)
	kin.flags = flagPartial
	partial := sealed(kin, long)
	if content, err := ours.check(bytes.Clone(partial)); err != nil || string(content[headerLen:]) != long {
		t.Fatalf("a datagram with such a checksum is refused: %v", err)
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
			t.Errorf("%s: byte %d is changed, and the answer is %v instead of %v", c.name, c.at, err, c.want)
		}
	}
	for _, flags := range []byte{0, flagPartial} {
		for _, more := range []int{0, 20, 64, 100} { // the user's head makes the front longer than what is covered
			kin.flags = flags
			h := header{kind: kindSegment}
			kin.stampHeader(&h)
			front := append(h.append(nil), bytes.Repeat([]byte{'h'}, 18+more)...)
			body := bytes.Repeat([]byte{'o'}, gatherAbove)
			var seal [sealLen]byte
			kin.sealGathered(front, body, &seal)
			if _, err := ours.check(bytes.Join([][]byte{front, body, seal[:]}, nil)); err != nil {
				t.Errorf("gathered behind %d bytes, flags %#x: %v", len(front), flags, err)
			}
		}
	}
	if longestHeader+18 > coveredLen {
		t.Errorf("headers of %d bytes are not covered by %d", longestHeader+18, coveredLen)
	}
}

// TestFrontAloneMeetsOthers has a device that sums all and one that does not talk, over
// both kinds of queue pair, with bytes that are copied and some that are gathered.
func TestFrontAloneMeetsOthers(t *testing.T) {
	for name, kind := range map[string]rdma.Transport{"RD": rdma.RD, "UD": rdma.UD} {
		t.Run(name, func(t *testing.T) {
			a, b := newStationOf(t, Config{NoCRC: true}, kind), newStationOf(t, Config{}, kind)
			for _, ends := range [][2]*testNode{{a, b}, {b, a}} {
				to := ends[0].resolve(t, ends[1])
				for _, size := range []int{0, 100, gatherAbove - 1, gatherAbove, 20_000} {
					text := bytes.Repeat([]byte{'y'}, size)
					wr := rdma.SendWR{Op: rdma.OpSend, Peer: to, Body: rdma.MemOf(text)}
					if n, err := ends[0].qp.PostSend([]rdma.SendWR{wr}); n != 1 {
						t.Fatal(err)
					}
					if c, ok := ends[1].poll(testTimeout); !ok || !bytes.Equal(c.Data.Bytes(), text) {
						t.Errorf("of %d bytes %d come, or others", size, c.Data.Len())
					}
					if c, ok := ends[0].poll(testTimeout); !ok || c.Status != rdma.StatusOK {
						t.Errorf("the send of %d bytes ends with %+v", size, c)
					}
				}
			}
		})
	}
}
