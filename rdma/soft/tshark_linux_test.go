package soft_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/capture"
	"github.com/muster-mpi/muster/rdma/soft"
)

// TestTsharkReadsDatagrams records two devices on loopback and lets tshark parse the
// recording. testdata/soft.lua parses the header in front and computes the CRC on its
// own; tshark's iWARP dissector, which is independent of this package, parses the DDP
// segment.
func TestTsharkReadsDatagrams(t *testing.T) {
	const (
		size   = 5000 // of the longest message
		sealed = 20   // CRC and authentication tag, at the end of a datagram
	)
	for i, v := range []struct {
		name     string
		kind     rdma.Transport
		number   uint64 // of the kind, on the wire
		segments int    // of DDP: a short message, a solicited one, a long one
	}{
		{"UD", rdma.UD, 1, 3},
		{"RD", rdma.RD, 2, 2 + 4}, // 5000 bytes are cut to fit 1472
	} {
		t.Run(v.name, func(t *testing.T) {
			pid := os.Getpid()
			host := netip.AddrFrom4([4]byte{127, byte(110 + i), byte(pid >> 8), byte(pid)}) // unique to this process
			r, err := capture.Record("lo", host)
			if errors.Is(err, capture.ErrNoRights) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			talk(t, host, v.kind, size)
			frames, err := r.Stop()
			if err != nil {
				t.Fatal(err)
			}
			report := analyze(t, frames)

			if len(report.Datagrams) == 0 || len(report.Malformed) > 0 {
				t.Fatalf("tshark sees %d datagrams in %d frames; malformed are %v", len(report.Datagrams), len(frames), report.Malformed)
			}
			carrying := 0
			for n, d := range report.Datagrams {
				if d["muster_dgram.crc_good"] != "1" {
					t.Errorf("datagram %d: the CRC is wrong: %v", n, d)
				}
				if kind, _ := d.Number("muster_dgram.kind"); kind == v.number {
					carrying++
				}
			}
			if carrying < v.segments || carrying != len(report.Headers) {
				t.Fatalf("tshark sees %d datagrams of kind %d with %d DDP headers, want at least %d", carrying, v.number, len(report.Headers), v.segments)
			}
			if codes := report.Opcodes(); !slices.Contains(codes, 3) || !slices.Contains(codes, 5) {
				t.Errorf("opcodes %v, want a Send (3) and one with a solicited event (5)", codes)
			}
			// A message is complete: its last segment is marked and begins where the
			// others end.
			var longest uint64
			for _, h := range report.Headers {
				mo, _ := h.Number("iwarp_ddp.mo")
				last, _ := h.Number("iwarp_ddp.last_flag")
				if v.kind == rdma.UD && (mo != 0 || last != 1) {
					t.Errorf("a UD message is one segment, this is %v", h)
				}
				longest = max(longest, mo)
			}
			if v.kind == rdma.RD && (longest == 0 || longest >= size) {
				t.Errorf("the highest offset of a message of %d bytes is %d", size, longest)
			}

			// A check that accepts everything would prove nothing.
			damaged := frames[0].Data
			damaged[len(damaged)-sealed-1] ^= 1
			if got := analyze(t, frames).Datagrams[0]["muster_dgram.crc_good"]; got != "0" {
				t.Errorf("one bit of the first datagram is wrong, and tshark reports crc_good %q", got)
			}
		})
	}
}

// analyze returns tshark's report on the recording.
func analyze(t *testing.T, frames []capture.Frame) *capture.Dissection {
	t.Helper()
	path := filepath.Join(t.TempDir(), "talk.pcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(capture.Write(f, frames), f.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	report, err := capture.Dissect(ctx, path, filepath.Join("testdata", "soft.lua"))
	if errors.Is(err, capture.ErrNoTshark) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// talk sends three messages from one device to another.
func talk(t *testing.T, host netip.Addr, kind rdma.Transport, size int) {
	t.Helper()
	var cqs [2]rdma.CQ
	var qps [2]rdma.QP
	var devices [2]rdma.Device
	for i := range devices {
		d, err := soft.Open(soft.Config{Bind: netip.AddrPortFrom(host, 0), JobKey: []byte("of the job"), Datagram: 1472, NoRuns: true})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		devices[i] = d
		if cqs[i], err = d.NewCQ(100); err != nil {
			t.Fatal(err)
		}
		if qps[i], err = d.NewQP(rdma.QPConfig{Type: kind, SendCQ: cqs[i], RecvCQ: cqs[i]}); err != nil {
			t.Fatal(err)
		}
	}
	const messages = 3
	for i := range messages {
		if _, err := qps[1].PostRecv([]rdma.RecvWR{{ID: uint64(i), Body: rdma.MemOf(make([]byte, size))}}); err != nil {
			t.Fatal(err)
		}
	}
	peer, err := devices[0].Resolve(qps[1].Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, wr := range []rdma.SendWR{
		{Op: rdma.OpSend, Peer: peer, Body: rdma.MemOf([]byte("a short message"))},
		{Op: rdma.OpSend, Peer: peer, Body: rdma.MemOf([]byte("a message to wake up for")), Flags: rdma.Solicited},
		{Op: rdma.OpSend, Peer: peer, Body: rdma.MemOf(make([]byte, size))},
	} {
		if n, err := qps[0].PostSend([]rdma.SendWR{wr}); n != 1 || err != nil {
			t.Fatalf("%d accepted, %v", n, err)
		}
	}
	sent, came := 0, 0
	var out [10]rdma.Completion
	for limit := time.Now().Add(20 * time.Second); sent < messages || came < messages; {
		for _, c := range out[:cqs[0].Poll(out[:])] {
			sent++
			if err := c.Status.Err(); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range out[:cqs[1].Poll(out[:])] {
			came++
			if err := c.Status.Err(); err != nil {
				t.Fatal(err)
			}
		}
		if time.Now().After(limit) {
			t.Fatalf("%d of %d messages are sent and %d have arrived", sent, messages, came)
		}
	}
}
