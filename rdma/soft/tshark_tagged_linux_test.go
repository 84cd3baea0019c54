package soft_test

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/capture"
	"github.com/muster-mpi/muster/rdma/soft"
)

// The tagged model over datagrams, error messages and encryption, checked by tshark as
// in tshark_linux_test.go: each conversation is recorded on loopback, and every address
// in the DDP headers must be the correct target.

const (
	opcodeWrite        = 0
	opcodeReadRequest  = 1
	opcodeReadResponse = 2
	opcodeTerminate    = 7
)

// testEnd is one end of a recorded conversation.
type testEnd struct {
	dev rdma.Device
	cq  rdma.CQ
	qp  rdma.QP
}

// exchange records two devices while the first posts the requests that prepare returns
// for the region of the second. It ends with the completion for which done returns
// true.
func exchange(t *testing.T, lane byte, c soft.Config, kind rdma.Transport, region int,
	prepare func(to rdma.PeerID, mr rdma.MR) []rdma.SendWR, done func(first bool, c *rdma.Completion) bool) (*capture.Dissection, rdma.MR) {
	t.Helper()
	pid := os.Getpid()
	host := netip.AddrFrom4([4]byte{127, lane, byte(pid >> 8), byte(pid)}) // unique to this process
	r, err := capture.Record("lo", host)
	if errors.Is(err, capture.ErrNoRights) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Bind, c.JobKey, c.Datagram = netip.AddrPortFrom(host, 0), []byte("of the job"), 1472
	c.NoRuns = true // otherwise the capture shows runs, not datagrams
	var ends [2]testEnd
	for i := range ends {
		s := &ends[i]
		if s.dev, err = soft.Open(c); err != nil {
			t.Fatal(err)
		}
		defer s.dev.Close()
		if s.cq, err = s.dev.NewCQ(100); err != nil {
			t.Fatal(err)
		}
		if s.qp, err = s.dev.NewQP(rdma.QPConfig{Type: kind, SendCQ: s.cq, RecvCQ: s.cq}); err != nil {
			t.Fatal(err)
		}
	}
	mr, err := ends[1].dev.Register(make([]byte, region), rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	to, err := ends[0].dev.Resolve(ends[1].qp.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := ends[0].qp.PostSend(prepare(to, mr)); err != nil {
		t.Fatalf("%d accepted, %v", n, err)
	}
	var out [10]rdma.Completion
	over := false
	for limit := time.Now().Add(20 * time.Second); !over; {
		for i := range ends {
			for _, c := range out[:ends[i].cq.Poll(out[:])] {
				over = over || done(i == 0, &c)
			}
		}
		if time.Now().After(limit) {
			t.Fatal("the conversation does not end")
		}
	}
	frames, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	report := analyze(t, frames)
	if len(report.Datagrams) == 0 || len(report.Malformed) > 0 {
		t.Fatalf("tshark sees %d datagrams in %d frames; malformed are %v", len(report.Datagrams), len(frames), report.Malformed)
	}
	for n, d := range report.Datagrams {
		if d["muster_dgram.crc_good"] != "1" {
			t.Errorf("datagram %d: the CRC is wrong: %v", n, d)
		}
	}
	return report, mr
}

// addresses returns the addresses of all segments with an opcode, sorted, and the tags
// they name.
func addresses(v *capture.Dissection, opcode uint64) (list, tags []uint64) {
	for _, h := range v.Headers {
		if code, _ := h.Number("iwarp_rdma.opcode"); code == opcode {
			at, _ := h.Number("iwarp_ddp.tagged_offset")
			tag, _ := h.Number("iwarp_ddp.stag")
			list, tags = append(list, at), append(tags, tag)
		}
	}
	slices.Sort(list)
	slices.Sort(tags)
	return slices.Compact(list), slices.Compact(tags)
}

func TestTsharkReadsWritesAndReadsOverRD(t *testing.T) {
	const size = 5000
	ended := 0
	v, mr := exchange(t, 112, soft.Config{}, rdma.RD, 2*size,
		func(to rdma.PeerID, mr rdma.MR) []rdma.SendWR {
			return []rdma.SendWR{
				{ID: 1, Op: rdma.OpWrite, Peer: to, Body: rdma.MemOf(make([]byte, size)), Remote: mr.Base + 100, RKey: mr.RKey},
				{ID: 2, Op: rdma.OpRead, Peer: to, Body: rdma.MemOf(make([]byte, size)), Remote: mr.Base + size, RKey: mr.RKey},
			}
		},
		func(first bool, c *rdma.Completion) bool {
			if c.Status != rdma.StatusOK {
				t.Fatalf("a request completes with %v", c.Status)
			}
			ended++
			return ended == 2
		})
	codes := v.Opcodes()
	for _, want := range []int{opcodeWrite, opcodeReadRequest, opcodeReadResponse} {
		if !slices.Contains(codes, want) {
			t.Errorf("opcodes %v, and %d is not among them", codes, want)
		}
	}
	at, tags := addresses(v, opcodeWrite)
	if len(at) < 4 || at[0] != mr.Base+100 || at[len(at)-1] >= mr.Base+100+size {
		t.Errorf("the Write of %d bytes goes to %#x; it begins at %#x", size, at, mr.Base+100)
	}
	if !slices.Equal(tags, []uint64{mr.RKey}) {
		t.Errorf("the Write names the tags %#x; the region has %#x", tags, mr.RKey)
	}
	at, tags = addresses(v, opcodeReadResponse)
	// A zero-length Read confirms a Write. Its response names no tag.
	if len(at) < 4 || at[0] != 0 || at[len(at)-1] >= size || len(tags) != 2 || slices.Contains(tags, mr.RKey) {
		t.Errorf("the responses go to %#x at %#x; they should go to the sink of the Read alone", tags, at)
	}
}

func TestTsharkReadsWriteRecords(t *testing.T) {
	const size = 5000
	v, mr := exchange(t, 113, soft.Config{}, rdma.UD, size,
		func(to rdma.PeerID, mr rdma.MR) []rdma.SendWR {
			return []rdma.SendWR{{ID: 0x0102030405060708, Op: rdma.OpWriteRecord, Peer: to, Body: rdma.MemOf(make([]byte, size)), Remote: mr.Base, RKey: mr.RKey}}
		},
		func(first bool, c *rdma.Completion) bool { return !first })
	pieces := 0
	for i, d := range v.Datagrams {
		if kind, _ := d.Number("muster_dgram.kind"); kind != 4 {
			continue
		}
		pieces++
		index, _ := d.Number("muster_dgram.record_index")
		cut, _ := d.Number("muster_dgram.record_cut")
		at, _ := v.Headers[i].Number("iwarp_ddp.tagged_offset")
		last, _ := v.Headers[i].Number("iwarp_ddp.last_flag")
		if at != mr.Base+index*cut || (last == 1) != ((index+1)*cut >= size) {
			t.Errorf("piece %d of %d bytes goes to %#x and has the mark of the last %d; the region begins at %#x", index, cut, at, last, mr.Base)
		}
		if total, _ := d.Number("muster_dgram.record_total"); total != size || d["muster_dgram.record_id"] != "01:02:03:04:05:06:07:08" {
			t.Errorf("piece %d: %v", index, d)
		}
	}
	if pieces != 4 || len(v.Headers) != len(v.Datagrams) {
		t.Errorf("tshark sees %d pieces and %d DDP headers in %d datagrams; %d bytes make 4", pieces, len(v.Headers), len(v.Datagrams), size)
	}
}

func TestTsharkReadsErrorMessages(t *testing.T) {
	v, _ := exchange(t, 114, soft.Config{}, rdma.UD, 10,
		func(to rdma.PeerID, mr rdma.MR) []rdma.SendWR {
			return []rdma.SendWR{{ID: 1, Op: rdma.OpWriteRecord, Peer: to, Body: rdma.MemOf(make([]byte, 11)), Remote: mr.Base, RKey: mr.RKey}}
		},
		func(first bool, c *rdma.Completion) bool { return first && c.Op == rdma.OpRefused })
	for i, d := range v.Datagrams {
		if kind, _ := d.Number("muster_dgram.kind"); kind != 5 {
			continue
		}
		h := v.Headers[i]
		code, _ := h.Number("iwarp_rdma.opcode")
		queue, _ := h.Number("iwarp_ddp.qn")
		number, _ := h.Number("iwarp_ddp.msn")
		layer, _ := h.Number("iwarp_rdma.term_layer")
		if code != opcodeTerminate || queue != 2 || number != 1 || layer != 1 {
			t.Errorf("the error message is %v; it should be a Terminate of DDP on queue 2 for message 1", h)
		}
		return
	}
	t.Error("tshark sees no error message")
}

// TestTsharkEncrypted checks that tshark can read only the header and the CRC.
func TestTsharkEncrypted(t *testing.T) {
	v, _ := exchange(t, 115, soft.Config{Encrypt: true}, rdma.RD, 5000,
		func(to rdma.PeerID, mr rdma.MR) []rdma.SendWR {
			return []rdma.SendWR{{ID: 1, Op: rdma.OpWrite, Peer: to, Body: rdma.MemOf(make([]byte, 5000)), Remote: mr.Base, RKey: mr.RKey}}
		},
		func(first bool, c *rdma.Completion) bool { return true })
	if len(v.Headers) > 0 || len(v.Datagrams) < 5 {
		t.Errorf("tshark sees %d datagrams and %d DDP headers in them", len(v.Datagrams), len(v.Headers))
	}
	for _, d := range v.Datagrams {
		if set, _ := d.Number("muster_dgram.encrypted"); set != 1 {
			t.Errorf("this is not encrypted: %v", d)
		}
	}
}
