package iwarp

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/muster-mpi/muster/rdma/internal/crc32c"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// sendSegment returns a DDP segment of a Send with a body of zeros, as in the figures
// of RFC 5044.
func sendSegment(msn uint32, zeros int) []byte {
	b := make([]byte, 18+zeros)
	b[0], b[1] = 0x41, 0x43
	binary.BigEndian.PutUint32(b[10:], msn)
	return b
}

// someBytes returns a segment whose bytes encode their position.
func someBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

func TestRFC5044GoldenFrames(t *testing.T) {
	if got := crc32c.Checksum([]byte("123456789")); got != 0xE3069283 {
		t.Fatalf("CRC32C of the check string is %08x, expected e3069283", got)
	}
	f := framer{crc: true, markers: true}
	figure5 := f.append(nil, sendSegment(1, 24))
	want, _ := hex.DecodeString("00000000" + "002a" + "4143" + "00000000" + "00000000" + "00000001" + "00000000" +
		"000000000000000000000000000000000000000000000000" + "52239983")
	if !bytes.Equal(figure5, want) {
		t.Errorf("figure 5 is\n%x, expected\n%x", figure5, want)
	}
	f = framer{crc: true, markers: true}
	first := f.append(nil, someBytes(482))
	if len(first) != 492 {
		t.Fatalf("the first FPDU of figure 6 has %d bytes, expected 492", len(first))
	}
	figure6 := f.append(nil, sendSegment(2, 24))
	if marker := figure6[20:24]; !bytes.Equal(marker, []byte{0, 0, 0, 0x14}) {
		t.Errorf("the marker in figure 6 is %x, expected 00000014", marker)
	}
	if crc := figure6[len(figure6)-4:]; !bytes.Equal(crc, []byte{0x84, 0x92, 0x58, 0x98}) {
		t.Errorf("the CRC of figure 6 is %x, expected 84925898", crc)
	}
	// The first frame of siw on a peer-to-peer connection.
	f = framer{crc: true}
	ready, _ := hex.DecodeString("c14000000001" + "0000000000000000")
	if got := hex.EncodeToString(f.append(nil, ready)); got != "000ec140000000010000000000000000ebd34c5f" {
		t.Errorf("an empty Write is framed as %s", got)
	}
}

// TestFramesSurviveAnySegmentation frames segments of many sizes and feeds the stream to
// the deframer in pieces.
func TestFramesSurviveAnySegmentation(t *testing.T) {
	sizes := []int{0, 1, 2, 3, 4, 5, 18, 46, 127, 480, 486, 490, 498, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511, 512, 513,
		1000, 1442, 4093, 500, 500, 502, 502, segmentMarkedMax, 0, 0, 7}
	for _, piece := range []int{1, 3, 4, 511, 512, 513, 1448, 1 << 20} {
		for _, crc := range []bool{false, true} {
			for _, markers := range []bool{false, true} {
				t.Run(fmt.Sprintf("pieces of %d, crc %v, markers %v", piece, crc, markers), func(t *testing.T) {
					f := framer{crc: crc, markers: markers}
					var stream []byte
					for _, n := range sizes {
						s := someBytes(n)
						stream = f.append(stream, s[:n/3], s[n/3:])
					}
					if markers {
						checkMarkers(t, stream, sizes)
					}
					d := deframer{crc: crc, markers: markers}
					var buf []byte
					done, need := 0, 0
					for len(stream) > 0 || len(buf) > 0 {
						k := min(piece, len(stream))
						buf, stream = append(buf, stream[:k]...), stream[k:]
						for len(buf) >= need {
							segment, n, more, err := d.next(buf)
							if err != nil {
								t.Fatalf("FPDU %d of %d bytes: %v", done, sizes[done], err)
							}
							if need = more; n == 0 {
								if more <= len(buf) {
									t.Fatalf("with %d bytes the deframer needs %d", len(buf), more)
								}
								break
							}
							if !bytes.Equal(segment, someBytes(sizes[done])) {
								t.Fatalf("FPDU %d has %d bytes, unlike the %d that were framed", done, len(segment), sizes[done])
							}
							buf, need = buf[n:], 0
							if done++; done == len(sizes) {
								break
							}
						}
						if done == len(sizes) {
							break
						}
					}
					if done != len(sizes) || len(buf)+len(stream) != 0 {
						t.Errorf("%d of %d FPDUs arrived and %d bytes are left", done, len(sizes), len(buf)+len(stream))
					}
				})
			}
		}
	}
}

// checkMarkers follows the pointers: each must point to the beginning of an FPDU.
func checkMarkers(t *testing.T, stream []byte, sizes []int) {
	t.Helper()
	begins := map[int]bool{}
	at := 0
	for _, n := range sizes {
		if at%markerSpacing == 0 {
			at += markerLen
		}
		begins[at] = true
		for left := fpduSize(n); left > 0; left, at = left-1, at+1 {
			if at%markerSpacing == 0 {
				at += markerLen
			}
		}
	}
	for at := 0; at < len(stream); at += markerSpacing {
		pointer := int(binary.BigEndian.Uint32(stream[at:]))
		begin := at - pointer
		if pointer == 0 {
			begin = at + markerLen
		}
		if !begins[begin] {
			t.Fatalf("the marker at %d contains %d, and no FPDU begins at %d", at, pointer, begin)
		}
	}
}

func TestFlippedBits(t *testing.T) {
	for _, markers := range []bool{false, true} {
		f := framer{crc: true, markers: markers}
		good := f.append(nil, someBytes(700))
		for bit := range len(good) * 8 {
			bad := bytes.Clone(good)
			bad[bit/8] ^= 1 << (bit % 8)
			d := deframer{crc: true, markers: markers}
			_, n, need, err := d.next(bad)
			var fault *mpaError
			switch {
			case n != 0:
				t.Fatalf("markers %v: bit %d is flipped and the FPDU is accepted", markers, bit)
			case err == nil && need <= len(good):
				t.Fatalf("markers %v: bit %d is flipped, no error, and %d bytes are needed", markers, bit, need)
			case err != nil && (!errors.As(err, &fault) || fault.fault != ddp.FaultMPACRC):
				t.Fatalf("markers %v: bit %d is flipped: %v", markers, bit, err)
			case err != nil:
				if _, n, _, again := d.next(good); n != 0 || again != err {
					t.Fatalf("after an error the deframer accepts %d bytes and returns %v", n, again)
				}
			}
		}
	}
}

func TestWrongMarkerIsRefused(t *testing.T) {
	for _, at := range []int{0, 512} {
		f := framer{markers: true} // without CRC only the marker shows the fault
		stream := f.append(nil, someBytes(700))
		stream[at+3] ^= 8
		d := deframer{markers: true}
		var fault *mpaError
		if _, _, _, err := d.next(stream); !errors.As(err, &fault) || fault.fault != ddp.FaultMPAMarker {
			t.Errorf("a wrong marker at %d returns %v, expected: %v", at, err, ddp.FaultMPAMarker)
		}
	}
}

func TestSegmentsFitTCPSegment(t *testing.T) {
	for emss := 200; emss < 9100; emss++ {
		for _, markers := range []bool{false, true} {
			n := segmentFor(emss, markers)
			for pos := uint32(0); pos < markerSpacing; pos += 124 {
				d := deframer{markers: markers, pos: pos}
				if got := d.wireSize(n); got > emss {
					t.Fatalf("a segment of %d bytes, markers %v at %d, makes an FPDU of %d bytes for a TCP segment of %d", n, markers, pos, got, emss)
				}
			}
		}
	}
	for _, c := range []struct {
		emss    int
		markers bool
		want    int
	}{{1448, false, 1442}, {1460, false, 1454}, {1460, true, 1442}, {100, false, segmentMin}, {1 << 20, false, segmentMax}} {
		if got := segmentFor(c.emss, c.markers); got != c.want {
			t.Errorf("segmentFor(%d, %v) is %d, expected %d", c.emss, c.markers, got, c.want)
		}
	}
}

func TestFramingDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 2*fpduMax)
	segment := someBytes(3000)
	for _, markers := range []bool{false, true} {
		f, d := framer{crc: true, markers: markers}, deframer{crc: true, markers: markers}
		if got := testing.AllocsPerRun(100, func() {
			if _, n, _, err := d.next(f.append(buf[:0], segment[:18], segment[18:])); n == 0 || err != nil {
				t.Fatal(n, err)
			}
		}); got != 0 {
			t.Errorf("markers %v: framing and deframing make %v allocations", markers, got)
		}
	}
}

// FuzzDeframer feeds a stream to the deframer at once and in two pieces: it must not
// panic, and must find the same frames.
func FuzzDeframer(f *testing.F) {
	for _, markers := range []bool{false, true} {
		fr := framer{crc: true, markers: markers}
		f.Add(fr.append(fr.append(nil, someBytes(30)), someBytes(600)), true, markers, uint16(100))
		f.Add([]byte{0xff, 0xff, 0, 0, 0, 0}, false, markers, uint16(2))
	}
	f.Fuzz(func(t *testing.T, stream []byte, crc, markers bool, cut uint16) {
		whole := deframe(t, &deframer{crc: crc, markers: markers}, stream, len(stream))
		pieces := deframe(t, &deframer{crc: crc, markers: markers}, stream, min(int(cut), len(stream)))
		if whole != pieces {
			t.Fatalf("at once: %s; cut at %d: %s", whole, cut, pieces)
		}
	})
}

// deframe describes the frames of a stream.
func deframe(t *testing.T, d *deframer, stream []byte, cut int) (found string) {
	buf := bytes.Clone(stream[:cut])
	for rest := stream[cut:]; ; rest = nil {
		for {
			segment, n, need, err := d.next(buf)
			if err != nil {
				return found + err.Error()
			}
			if n == 0 {
				if need <= len(buf) || need > fpduMax {
					t.Fatalf("with %d bytes the deframer needs %d", len(buf), need)
				}
				break
			}
			found += fmt.Sprintf("%x ", crc32.ChecksumIEEE(segment))
			buf = buf[n:]
		}
		if rest == nil {
			return found + "end"
		}
		buf = append(bytes.Clone(buf), rest...)
	}
}
