package iwarp

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma/internal/capture"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// A Terminate is the most important message for finding the cause of errors between two
// different implementations, and soft-iWARP is no reference for it: it has the bits in the
// wrong order. tshark must read the layer, the type, the code and the headers of the
// faulty segment.
func TestTsharkReadsTerminate(t *testing.T) {
	segment := func(h ddp.Header, payload []byte) []byte {
		b := make([]byte, ddp.UntaggedLen)
		return append(b[:h.Put(b)], payload...)
	}
	var ask [ddp.ReadRequestLen]byte
	(&ddp.ReadRequest{Sink: 1, SinkTO: 2, Size: 3, Source: 4, SourceTO: 5}).Put(ask[:])
	read := segment(ddp.Header{Op: ddp.ReadRequestOp, Last: true, QN: ddp.QueueRequest, MSN: 1}, ask[:])
	write := segment(ddp.Header{Op: ddp.Write, Last: true, Tag: 0xdeadbeef, TO: 0x1000}, someBytes(64))
	send := segment(ddp.Header{Op: ddp.Send, Last: true, MSN: 9}, someBytes(5))

	for _, c := range []struct {
		fault        ddp.Fault
		to           []byte // the faulty segment
		etype, ecode string // the dissector has names for each layer
		header, rest int    // bytes of it that are shown: of DDP, of RDMAP
	}{
		{ddp.FaultSourceTag, read, "etype_rdma", "errcode_rdma", ddp.UntaggedLen, ddp.ReadRequestLen},
		{ddp.FaultSourceAccess, read, "etype_rdma", "errcode_rdma", ddp.UntaggedLen, ddp.ReadRequestLen},
		{ddp.FaultOpcode, send, "etype_rdma", "errcode_rdma", ddp.UntaggedLen, 0},
		{ddp.FaultTag, write, "etype_ddp", "errcode_ddp_tagged", ddp.TaggedLen, 0},
		{ddp.FaultTagBounds, write, "etype_ddp", "errcode_ddp_tagged", ddp.TaggedLen, 0},
		{ddp.FaultNoBuffer, send, "etype_ddp", "errcode_ddp_untagged", ddp.UntaggedLen, 0},
		{ddp.FaultTooLong, send, "etype_ddp", "errcode_ddp_untagged", ddp.UntaggedLen, 0},
		{ddp.FaultMPACRC, send, "etype_llp", "errcode_llp", 0, 0},
	} {
		t.Run(strings.ReplaceAll(c.fault.String(), " ", "_"), func(t *testing.T) {
			w := preferences{crc: true, ird: 1, ord: 1}
			s := begin(t, w, w)
			s.addSegment(capture.Client, ddp.Header{Op: ddp.Send, Last: true}, nil)
			end := ddp.TerminateFor(c.fault, c.to, len(c.to))
			payload := make([]byte, end.Len())
			end.Put(payload)
			s.addSegment(capture.Server, ddp.Header{Op: ddp.TerminateOp, QN: ddp.QueueTerminate, Last: true}, payload)

			want := s.fields[1]
			want["iwarp_rdma.term_layer"] = uint64(c.fault.Layer())
			want["iwarp_rdma.term_"+c.etype] = uint64(c.fault.Type())
			want["iwarp_rdma.term_"+c.ecode] = uint64(c.fault.Code())
			for bit, on := range map[string]bool{"term_hdrct_m": c.header > 0, "hdrct_d": c.header > 0, "hdrct_r": c.rest > 0} {
				want["iwarp_rdma."+bit] = 0
				if on {
					want["iwarp_rdma."+bit] = 1
				}
			}
			got := s.dissect().Headers[1]
			if c.header > 0 {
				same(t, got, "iwarp_rdma.term_ddp_seg_len", []byte{0, byte(len(c.to))})
			}
			header := c.header
			if c.rest > 0 {
				// If a read request follows, the dissector gives the DDP header 14 bytes,
				// although a read request is untagged and has 18 (RFC 5041 section 4.3).
				// So it splits at another offset; the bytes are the same.
				header = ddp.TaggedLen
			}
			same(t, got, "iwarp_rdma.term_ddp_h", c.to[:header])
			same(t, got, "iwarp_rdma.term_rdma_h", c.to[header:header+c.rest])
		})
	}
}

// same compares a field that tshark shows as bytes; an empty field is not shown.
func same(t *testing.T, got capture.Header, field string, want []byte) {
	t.Helper()
	shown := strings.ReplaceAll(fmt.Sprintf("% x", want), " ", ":")
	if got[field] != shown {
		t.Errorf("tshark reads %s as %q, written was %q", field, got[field], shown)
	}
}
