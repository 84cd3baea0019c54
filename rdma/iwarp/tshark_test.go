package iwarp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma/internal/capture"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// tshark dissects the output of our encoder. It must find every frame, accept every CRC,
// and read the same numbers in every header.

// script is a connection on which our encoder produces both sides.
type script struct {
	t        *testing.T
	out      [2]framer
	segments []capture.Segment   // of TCP
	fields   []map[string]uint64 // the expected fields of each DDP segment
	msn      [2][4]uint32
}

// begin negotiates, so that the frames match the terms.
func begin(t *testing.T, client, server preferences) *script {
	t.Helper()
	req := client.request([]byte("hello"))
	rep, agreed, err := server.answer(&req, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t}
	for side, frame := range []startup{req, rep} {
		b, err := frame.append(nil)
		if err != nil {
			t.Fatal(err)
		}
		s.segments = append(s.segments, capture.Segment{From: capture.Side(side), Data: b})
	}
	s.out[capture.Client] = framer{crc: agreed.crc, markers: agreed.markersIn}
	s.out[capture.Server] = framer{crc: agreed.crc, markers: agreed.markersOut}
	return s
}

// frame returns the FPDU of one DDP segment; it counts the untagged message that it ends.
func (s *script) frame(from capture.Side, h ddp.Header, payload []byte) []byte {
	if !h.Op.Tagged() {
		h.MSN = s.msn[from][h.QN] + 1
		if h.Last {
			s.msn[from][h.QN]++
		}
	}
	var bytes [ddp.UntaggedLen]byte
	n := h.Put(bytes[:])
	s.fields = append(s.fields, fieldsOf(h, payload))
	return s.out[from].append(nil, bytes[:n], payload)
}

// addSegment sends one DDP segment as one TCP segment.
func (s *script) addSegment(from capture.Side, h ddp.Header, payload []byte) {
	s.segments = append(s.segments, capture.Segment{From: from, Data: s.frame(from, h, payload)})
}

// fieldsOf returns the expected fields of a segment, by the dissector's names.
func fieldsOf(h ddp.Header, payload []byte) map[string]uint64 {
	fields := map[string]uint64{"iwarp_ddp.dv": 1, "iwarp_rdma.version": 1, "iwarp_rdma.opcode": uint64(h.Op), "iwarp_ddp.last_flag": 0}
	if h.Last {
		fields["iwarp_ddp.last_flag"] = 1
	}
	if h.Op.Tagged() {
		fields["iwarp_ddp.tagged_flag"] = 1
		fields["iwarp_ddp.stag"] = uint64(h.Tag)
		fields["iwarp_ddp.tagged_offset"] = h.TO
		return fields
	}
	fields["iwarp_ddp.tagged_flag"] = 0
	fields["iwarp_ddp.qn"] = uint64(h.QN)
	fields["iwarp_ddp.msn"] = uint64(h.MSN)
	fields["iwarp_ddp.mo"] = uint64(h.MO)
	if h.Op.Invalidates() {
		fields["iwarp_rdma.inval_stag"] = uint64(h.Tag)
	}
	var read ddp.ReadRequest
	var atomic ddp.AtomicRequest
	var answer ddp.AtomicResponse
	switch {
	case h.Op == ddp.ReadRequestOp && read.Decode(payload):
		fields["iwarp_rdma.sinkstag"] = uint64(read.Sink)
		fields["iwarp_rdma.sinkto"] = read.SinkTO
		fields["iwarp_rdma.rdmardsz"] = uint64(read.Size)
		fields["iwarp_rdma.srcstag"] = uint64(read.Source)
		fields["iwarp_rdma.srcto"] = read.SourceTO
	case h.Op == ddp.AtomicRequestOp && atomic.Decode(payload):
		kind := "add"
		if atomic.Code == ddp.CompareSwap {
			kind = "swap"
		}
		fields["iwarp_rdma.atomic.opcode"] = uint64(atomic.Code)
		fields["iwarp_rdma.atomic.request_identifier"] = uint64(atomic.ID)
		fields["iwarp_rdma.atomic.remote_stag"] = uint64(atomic.Target)
		fields["iwarp_rdma.atomic.remote_tagged_offset"] = atomic.TO
		fields["iwarp_rdma.atomic."+kind+"_data"] = atomic.Data
		fields["iwarp_rdma.atomic."+kind+"_mask"] = atomic.Mask
		fields["iwarp_rdma.atomic.compare_data"] = atomic.Compare
		fields["iwarp_rdma.atomic.compare_mask"] = atomic.CompareMask
	case h.Op == ddp.AtomicResponseOp && answer.Decode(payload):
		fields["iwarp_rdma.atomic.original_request_identifier"] = uint64(answer.ID)
		fields["iwarp_rdma.atomic.original_remote_data_value"] = answer.Original
	}
	return fields
}

// dissect compares tshark's dissection with what was sent.
func (s *script) dissect() *capture.Dissection {
	t := s.t
	t.Helper()
	path := filepath.Join(t.TempDir(), "speech.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(capture.WriteTCP(f, s.segments), f.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v, err := capture.Dissect(ctx, path)
	if errors.Is(err, capture.ErrNoTshark) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Err(); err != nil {
		t.Error(err)
	}
	if v.FPDUs != len(s.fields) || len(v.Headers) != len(s.fields) {
		t.Fatalf("tshark sees %d FPDUs with %d headers, %d were sent", v.FPDUs, len(v.Headers), len(s.fields))
	}
	for i, want := range s.fields {
		for name, value := range want {
			if got, ok := v.Headers[i].Number(name); !ok || got != value {
				t.Errorf("segment %d: tshark reads %s as %q, sent was %d (%#[4]x)", i, name, v.Headers[i][name], value)
			}
		}
	}
	return v
}

// everyOperation sends each kind of message once. Lengths differ, so that all lengths of
// padding occur.
func (s *script) everyOperation() {
	const (
		tag  = 0xdeadbeef
		base = 0x7fff_1234_5678_9abc
	)
	line := []byte("the quick brown fox jumps over the lazy dog")
	s.addSegment(capture.Client, ddp.Header{Op: ddp.Send}, line[:20])
	s.addSegment(capture.Client, ddp.Header{Op: ddp.Send, Last: true, MO: 20}, line[20:])
	s.addSegment(capture.Client, ddp.Header{Op: ddp.Send, Last: true}, nil)
	s.addSegment(capture.Client, ddp.Header{Op: ddp.SendInvalidate, Last: true, Tag: 0x01020304}, line[:1])
	s.addSegment(capture.Client, ddp.Header{Op: ddp.SendSolicited, Last: true}, line[:2])
	s.addSegment(capture.Client, ddp.Header{Op: ddp.SendSolicitedInvalidate, Last: true, Tag: tag}, line[:3])
	s.addSegment(capture.Client, ddp.Header{Op: ddp.Write, Tag: tag, TO: base}, line[:7])
	s.addSegment(capture.Client, ddp.Header{Op: ddp.Write, Last: true, Tag: tag, TO: base + 7}, line[7:])
	s.addSegment(capture.Client, ddp.Header{Op: ddp.Write, Last: true, Tag: 0, TO: 0}, nil)
	s.addSegment(capture.Client, ddp.Header{Op: ddp.Immediate, Last: true}, line[:ddp.ImmediateLen])
	s.addSegment(capture.Client, ddp.Header{Op: ddp.ImmediateSolicited, Last: true}, line[:ddp.ImmediateLen])

	var b [ddp.ControlMax]byte
	read := ddp.ReadRequest{Sink: 0x11121314, SinkTO: base, Size: 33, Source: 0x21222324, SourceTO: 1 << 63}
	s.addSegment(capture.Client, ddp.Header{Op: ddp.ReadRequestOp, QN: ddp.QueueRequest, Last: true}, slices.Clone(b[:read.Put(b[:])]))
	s.addSegment(capture.Server, ddp.Header{Op: ddp.ReadResponse, Tag: read.Sink, TO: read.SinkTO}, line[:30])
	s.addSegment(capture.Server, ddp.Header{Op: ddp.ReadResponse, Last: true, Tag: read.Sink, TO: read.SinkTO + 30}, line[30:33])

	add := ddp.AtomicRequest{Code: ddp.FetchAdd, ID: 7, Target: tag, TO: base, Data: 5, Mask: 1 << 31, CompareMask: 1<<64 - 1}
	swap := ddp.AtomicRequest{Code: ddp.CompareSwap, ID: 8, Target: tag, TO: base, Data: 6, Mask: 0xff, Compare: 41, CompareMask: 0xffff}
	for _, a := range []ddp.AtomicRequest{add, swap} {
		s.addSegment(capture.Client, ddp.Header{Op: ddp.AtomicRequestOp, QN: ddp.QueueRequest, Last: true}, slices.Clone(b[:a.Put(b[:])]))
		answer := ddp.AtomicResponse{ID: a.ID, Original: 1<<40 + uint64(a.ID)}
		s.addSegment(capture.Server, ddp.Header{Op: ddp.AtomicResponseOp, QN: ddp.QueueAtomic, Last: true}, slices.Clone(b[:answer.Put(b[:])]))
	}
}

func TestTsharkReadsEveryOperation(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("markers=%v/plain=%v", markers, plain), func(t *testing.T) {
				w := preferences{markers: markers, crc: true, plain: plain, ird: 4, ord: 4}
				s := begin(t, w, w)
				s.everyOperation()
				v := s.dissect()
				if v.GoodCRC != v.FPDUs {
					t.Errorf("tshark accepts %d of %d checksums", v.GoodCRC, v.FPDUs)
				}
				if (v.Markers > 0) != markers {
					t.Errorf("tshark sees %d markers", v.Markers)
				}
			})
		}
	}
}

// Several markers fall into one FPDU, at different offsets in each.
func TestTsharkFollowsMarkersThroughLongFrames(t *testing.T) {
	w := preferences{markers: true, crc: true, ird: 1, ord: 1}
	s := begin(t, w, w)
	for i, n := range []int{1300, 1, 1441, 700, 3, 1024} {
		s.addSegment(capture.Client, ddp.Header{Op: ddp.Send, Last: true}, someBytes(n))
		s.addSegment(capture.Server, ddp.Header{Op: ddp.Write, Last: true, Tag: ddp.Tag(i), TO: 1}, someBytes(n))
	}
	var sent [2]int
	for _, segment := range s.segments[2:] { // after the startup
		sent[segment.From] += len(segment.Data)
	}
	markers := 0
	for _, n := range sent {
		markers += (n + markerSpacing - 1) / markerSpacing
	}
	if v := s.dissect(); v.GoodCRC != 12 || v.Markers != markers {
		t.Errorf("tshark sees %d good checksums and %d markers, want 12 and %d", v.GoodCRC, v.Markers, markers)
	}
}

// Without markers a frame may begin anywhere in the TCP segments.
func TestTsharkFindsFramesInAnySegmentation(t *testing.T) {
	s := begin(t, preferences{crc: true, ird: 1, ord: 1}, preferences{crc: true, ird: 1, ord: 1})
	var stream []byte
	for n := range 40 {
		stream = append(stream, s.frame(capture.Client, ddp.Header{Op: ddp.Send, Last: true}, someBytes(n*37))...)
	}
	for piece := range slices.Chunk(stream, 1448) {
		s.segments = append(s.segments, capture.Segment{From: capture.Client, Data: piece})
	}
	if v := s.dissect(); v.GoodCRC != 40 {
		t.Errorf("tshark sees %d good checksums, want 40", v.GoodCRC)
	}
}

// Peer-to-peer: the initiator's first message is empty and permits the responder to send.
func TestTsharkReadsPeerToPeer(t *testing.T) {
	w := preferences{crc: true, p2p: true, ready: readyWrite, ird: 16, ord: 16}
	s := begin(t, w, w)
	s.addSegment(capture.Client, ddp.Header{Op: ddp.Write, Last: true}, nil)
	s.addSegment(capture.Server, ddp.Header{Op: ddp.Send, Last: true}, []byte("the responder sends"))
	if v := s.dissect(); v.GoodCRC != 2 {
		t.Errorf("tshark sees %d good checksums, want 2", v.GoodCRC)
	}
}

// If neither side requests the CRC, the field is present and ignored.
func TestTsharkReadsFramesWithoutCRC(t *testing.T) {
	s := begin(t, preferences{ird: 1, ord: 1}, preferences{ird: 1, ord: 1})
	s.everyOperation()
	v := s.dissect()
	if v.GoodCRC+v.BadCRC != 0 {
		t.Errorf("tshark checks %d checksums although none were negotiated", v.GoodCRC+v.BadCRC)
	}
}
