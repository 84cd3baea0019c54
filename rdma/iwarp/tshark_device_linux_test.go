//go:build !muster_portable

package iwarp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/capture"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// tshark checks the device itself: two devices communicate over loopback, a recorder
// captures the traffic, and tshark dissects the recording. Every byte is the device's.
// Only the TCP segments are cut again, one for each frame, because tshark fails on frames
// with markers that are cut differently.
func TestTsharkReadsTheDevice(t *testing.T) {
	for i, v := range []struct {
		name string
		cfg  Config
	}{
		{"crc", Config{}},
		{"bare", Config{NoCRC: true}},
		{"ethernet", Config{Segment: segmentFor(1448, false)}},
		{"markers", Config{Markers: true, Segment: segmentFor(1448, true)}},
	} {
		t.Run(v.name, func(t *testing.T) {
			pid := os.Getpid()
			host := netip.AddrFrom4([4]byte{127, byte(100 + i), byte(pid >> 8), byte(pid)}) // not used by other processes
			r, err := capture.Record("lo", host)
			if errors.Is(err, capture.ErrNoRights) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			v.cfg.Address = host.String()
			v.cfg.Key = []byte("of the job")
			sendEverything(t, v.cfg)
			frames, err := r.Stop()
			if err != nil {
				t.Fatal(err)
			}
			s := recordedScript(t, frames, v.cfg.Markers)
			result := s.dissect()
			if want := len(s.fields); v.cfg.NoCRC && result.GoodCRC != 0 || !v.cfg.NoCRC && result.GoodCRC != want {
				t.Errorf("tshark accepts %d of %d checksums", result.GoodCRC, want)
			}
			if (result.Markers > 0) != v.cfg.Markers {
				t.Errorf("tshark sees %d markers", result.Markers)
			}
			seen := result.Opcodes()
			for _, op := range []ddp.Opcode{ddp.Write, ddp.ReadRequestOp, ddp.ReadResponse, ddp.Send, ddp.SendSolicited, ddp.TerminateOp} {
				if !slices.Contains(seen, int(op)) {
					t.Errorf("tshark sees no %v among %v", op, seen)
				}
			}
			end := result.Headers[len(result.Headers)-1]
			if layer, _ := end.Number("iwarp_rdma.term_layer"); layer != 1 {
				t.Errorf("the last segment is %v, want a Terminate of DDP", end)
			}
		})
	}
}

// deviceEnd is a device with one queue pair.
type deviceEnd struct {
	cq   rdma.CQ
	qp   rdma.QP
	dev  rdma.Device
	done map[rdma.Op][]rdma.Completion
}

// sendEverything executes each operation of the device, then a forbidden one.
func sendEverything(t *testing.T, cfg Config) {
	t.Helper()
	a, b := openEnd(t, cfg), openEnd(t, cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	connected := make(chan error, 1)
	go func() { connected <- b.qp.Connect(ctx, a.qp.Addr()) }()
	if err := errors.Join(a.qp.Connect(ctx, b.qp.Addr()), <-connected); err != nil {
		t.Fatal(err)
	}

	const size = 5000
	target := make([]byte, size)
	mr, err := b.dev.Register(target, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	short, long, back := []byte("a short message"), someBytes(size), make([]byte, size)
	for i := range 3 {
		if _, err := b.qp.PostRecv([]rdma.RecvWR{{ID: uint64(i), Body: rdma.MemOf(make([]byte, size))}}); err != nil {
			t.Fatal(err)
		}
	}
	a.post(t, rdma.SendWR{Op: rdma.OpSend, Body: rdma.MemOf(short)})
	a.post(t, rdma.SendWR{Op: rdma.OpSend, Body: rdma.MemOf(short), Flags: rdma.Solicited})
	a.post(t, rdma.SendWR{Op: rdma.OpWrite, Body: rdma.MemOf(long), Remote: mr.Base, RKey: mr.RKey})
	a.post(t, rdma.SendWR{Op: rdma.OpSend, Body: rdma.MemOf(long)})
	until(t, "the messages", func() bool { return len(b.done[rdma.OpRecv]) == 3 && len(a.done[rdma.OpWrite]) == 1 }, a, b)
	if !bytes.Equal(target, long) {
		t.Error("the Write has not arrived before the Send after it")
	}
	a.post(t, rdma.SendWR{Op: rdma.OpRead, Body: rdma.MemOf(back), Remote: mr.Base, RKey: mr.RKey})
	until(t, "the Read", func() bool { return len(a.done[rdma.OpRead]) == 1 }, a, b)
	if !bytes.Equal(back, long) {
		t.Error("the Read returned the wrong data")
	}
	a.post(t, rdma.SendWR{Op: rdma.OpWrite, Body: rdma.MemOf(short), Remote: mr.Base, RKey: mr.RKey ^ 1})
	until(t, "the refusal", func() bool { return len(a.done[rdma.OpWrite]) == 2 }, a, b)
	if got := a.done[rdma.OpWrite][1].Status; got == rdma.StatusOK {
		t.Error("a Write with a wrong key succeeds")
	}
	if err := errors.Join(a.qp.Close(), b.qp.Close()); err != nil {
		t.Error(err)
	}
}

func openEnd(t *testing.T, cfg Config) *deviceEnd {
	t.Helper()
	e := &deviceEnd{dev: open(t, cfg), done: map[rdma.Op][]rdma.Completion{}}
	var err error
	if e.cq, err = e.dev.NewCQ(100); err != nil {
		t.Fatal(err)
	}
	if e.qp, err = e.dev.NewQP(rdma.QPConfig{Type: rdma.RC, SendCQ: e.cq, RecvCQ: e.cq}); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *deviceEnd) post(t *testing.T, wr rdma.SendWR) {
	t.Helper()
	if n, err := e.qp.PostSend([]rdma.SendWR{wr}); n != 1 || err != nil {
		t.Fatalf("%v: %d accepted, %v", wr.Op, n, err)
	}
}

// until polls until a condition holds.
func until(t *testing.T, what string, so func() bool, ends ...*deviceEnd) {
	t.Helper()
	var out [10]rdma.Completion
	for limit := time.Now().Add(20 * time.Second); !so(); {
		for _, e := range ends {
			for _, c := range out[:e.cq.Poll(out[:])] {
				e.done[c.Op] = append(e.done[c.Op], c)
			}
		}
		if time.Now().After(limit) {
			for _, e := range ends {
				t.Logf("done are %v", e.done)
			}
			t.Fatalf("%s did not arrive", what)
		}
	}
}

// recordedScript returns the one conversation of a recording, cut into its frames.
func recordedScript(t *testing.T, frames []capture.Frame, markers bool) *script {
	t.Helper()
	conversations, err := capture.Conversations(frames)
	if err != nil {
		t.Fatal(err)
	}
	if len(conversations) != 1 {
		t.Fatalf("%d conversations were recorded, want 1", len(conversations))
	}
	s := &script{t: t}
	var unread [2][]byte
	var begun [2]bool
	in := [2]deframer{{markers: markers}, {markers: markers}} // tshark checks the CRC
	for _, direction := range conversations[0].Segments {
		side := direction.From
		for unread[side] = append(unread[side], direction.Data...); ; {
			n, err := 0, error(nil)
			if !begun[side] {
				_, n, err = parseStartup(unread[side], side == capture.Server)
				begun[side] = n > 0
			} else {
				var segment []byte
				if segment, n, _, err = in[side].next(bytes.Clone(unread[side])); n > 0 {
					s.fields = append(s.fields, fieldsOfSegment(t, segment))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			s.segments = append(s.segments, capture.Segment{From: side, Data: bytes.Clone(unread[side][:n])})
			unread[side] = unread[side][n:]
		}
	}
	if n := len(unread[0]) + len(unread[1]); n > 0 {
		t.Errorf("%d bytes at the end are not a frame", n)
	}
	return s
}

func fieldsOfSegment(t *testing.T, segment []byte) map[string]uint64 {
	t.Helper()
	var h ddp.Header
	k, fault := h.Decode(segment, len(segment))
	if fault != ddp.NoFault {
		t.Fatal(fmt.Errorf("the device sends % x: %w", segment[:min(len(segment), ddp.UntaggedLen)], fault.Err()))
	}
	return fieldsOf(h, segment[k:])
}
