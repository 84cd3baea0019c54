package udrel

import (
	"bytes"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// FuzzHeader parses arbitrary packets, and encodes and parses the result again.
func FuzzHeader(f *testing.F) {
	for _, k := range []kind{kindSend, kindWrite, kindRead, kindResponse, kindAck, kindClose} {
		for _, flags := range []uint8{flagLast, flagLast | flagAck} {
			var head [rdma.HeadMax]byte
			h := header{kind: k, flags: flags, sequence: 7, number: 9, target: target{1 << 40, 2, 30}}
			h.ack = reliable.Ack{Next: 3, End: 17, Span: 16, Held: 13, Words: 2, Missing: [reliable.MaxWords]uint64{1, 1 << 63}}
			f.Add(head[:h.put(&head)])
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again header
		if !h.parse(b) {
			return
		}
		if h.flags&flagAck == 0 {
			h.ack = reliable.Ack{}
		}
		if h.kind.numbered() && h.ack.Words > 2 {
			h.ack.Words = 2 // more do not fit beside all else
			h.ack.Missing = [reliable.MaxWords]uint64{h.ack.Missing[0], h.ack.Missing[1]}
		}
		var array [rdma.HeadMax]byte
		head := array[:h.put(&array)]
		if !again.parse(append(bytes.Clone(head), h.contents...)) {
			t.Fatalf("%+v is encoded as %x, which does not parse", h, head)
		}
		if !bytes.Equal(h.contents, again.contents) {
			t.Fatalf("contents %x become %x", h.contents, again.contents)
		}
		h.contents, again.contents = nil, nil
		if h.kind != again.kind || h.flags != again.flags || h.sequence != again.sequence || h.number != again.number || h.target != again.target || h.ack != again.ack {
			t.Fatalf("%+v becomes %+v", h, again)
		}
	})
}
