package iwarp

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma/internal/capture"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// We replace a kernel: rping's client runs on our protocol, receives what the recorded
// server sent, and uses the tags and addresses of the recorded client. Everything that it
// sends must then equal what the kernel sent, byte for byte: the request, the Sends, the
// responses to the server's Reads, cut into the same frames.
func TestReplaceSiw(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.file, func(t *testing.T) {
			talk := recording(t, rec.file)
			offers := offersOf(t, rec.file)
			line := &recordedLine{talk: talk}
			p := newRpingPeer(line)
			p.table = ddp.NewTable(offers.tags, 1)
			p.base = offers.base
			if rec.file == "client_p2p" {
				p.emss = 1456 // soft-iWARP without time stamps
			}
			w := preferences{crc: true, p2p: rec.p2p, ready: readyWrite | readyRead, ird: 1, ord: 1}
			if err := p.dial(w, 0); err != nil {
				t.Fatal(err)
			}
			if err := p.client(4, int(rec.size)); err != nil {
				t.Fatal(err)
			}
			want := talk.Bytes(capture.Client)
			if !bytes.Equal(line.sent, want) {
				at := 0
				for at < min(len(line.sent), len(want)) && line.sent[at] == want[at] {
					at++
				}
				t.Errorf("we send %d bytes, the kernel %d; they differ from byte %d on: % x, % x", len(line.sent), len(want), at,
					line.sent[at:min(at+16, len(line.sent))], want[at:min(at+16, len(want))])
			}
		})
	}
}

// offered holds the buffers that the recorded client offered.
type offered struct {
	tags  *bytes.Buffer // in the form in which a table draws them
	bases []uint64
}

func (o *offered) base() uint64 {
	next := o.bases[0]
	o.bases = o.bases[1:]
	return next
}

// offersOf finds the Sends of the client in a recording.
func offersOf(t *testing.T, file string) *offered {
	t.Helper()
	b := recording(t, file).Bytes(capture.Client) // a copy: deframing may modify it
	_, n, err := parseStartup(b, false)
	if err != nil {
		t.Fatal(err)
	}
	o := &offered{tags: &bytes.Buffer{}}
	in := deframer{crc: true}
	for b = b[n:]; len(b) > 0; b = b[n:] {
		var segment []byte
		if segment, n, _, err = in.next(b); err != nil || n == 0 {
			t.Fatalf("%d bytes are left: %v", len(b), err)
		}
		var h ddp.Header
		k, fault := h.Decode(segment, len(segment))
		if fault != ddp.NoFault {
			t.Fatal(fault)
		}
		if h.Op == ddp.Send {
			o.bases = append(o.bases, binary.BigEndian.Uint64(segment[k:]))
			o.tags.Write(segment[k+8 : k+12])
		}
	}
	return o
}

// recordedLine is a connection on which the server repeats its recording, whatever it
// receives.
type recordedLine struct {
	net.Conn // not used
	talk     *capture.Conversation
	next     int
	sent     []byte
}

// Read returns one segment of the server at a time.
func (l *recordedLine) Read(b []byte) (int, error) {
	for l.next < len(l.talk.Segments) {
		s := l.talk.Segments[l.next]
		l.next++
		if s.From == capture.Server {
			return copy(b, s.Data), nil
		}
	}
	return 0, io.EOF
}

func (l *recordedLine) Write(b []byte) (int, error) {
	l.sent = append(l.sent, b...)
	return len(b), nil
}

func (l *recordedLine) SetDeadline(time.Time) error { return nil }
