//go:build !muster_portable

package iwarp

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// An accepted peer that sends arbitrary data through a real socket: it must not crash this
// process, and must not reach a byte outside the registered memory.

const (
	fuzzTag  = 0x11223344 // placeholder in the input for the drawn tag
	fuzzBase = 0x1000
	fuzzSize = 20000
	fuzzEdge = 256 // guard bytes on both sides of the region
)

func FuzzPeer(f *testing.F) {
	segment := func(h ddp.Header, payload []byte) []byte {
		var head [ddp.UntaggedLen]byte
		b := append(head[:h.Put(head[:])], payload...)
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)
	}
	var ask [ddp.ReadRequestLen]byte
	(&ddp.ReadRequest{Sink: 5, Size: 9000, Source: fuzzTag, SourceTO: fuzzBase}).Put(ask[:])
	long := someBytes(6000) // read straight into its destination
	f.Add(bytes.Join([][]byte{
		segment(ddp.Header{Op: ddp.Write, Last: true, Tag: fuzzTag, TO: fuzzBase + 5}, someBytes(100)),
		segment(ddp.Header{Op: ddp.Write, Tag: fuzzTag, TO: fuzzBase}, long),
		segment(ddp.Header{Op: ddp.Write, Last: true, Tag: fuzzTag, TO: fuzzBase + fuzzSize - 6000}, long),
		segment(ddp.Header{Op: ddp.Send, Last: true, MSN: 1}, someBytes(30)),
		segment(ddp.Header{Op: ddp.ReadRequestOp, Last: true, QN: 1, MSN: 1}, ask[:]),
	}, nil), true, uint16(300))
	f.Add(segment(ddp.Header{Op: ddp.Write, Last: true, Tag: fuzzTag, TO: fuzzBase + fuzzSize - 5999}, long), true, uint16(1000))
	f.Add(segment(ddp.Header{Op: ddp.Send, MSN: 1, MO: 1 << 31}, long), true, uint16(40))
	f.Add(segment(ddp.Header{Op: ddp.TerminateOp, Last: true, QN: 2, MSN: 1}, []byte{0x11, 0, 0, 0}), false, uint16(1))
	f.Fuzz(func(t *testing.T, input []byte, frames bool, cut uint16) {
		fuzzPeer(t, input, frames, int(cut)+1)
	})
}

// fuzzPeer feeds the input to a queue pair in pieces: as it is, or as segments with a
// length prefix that are framed properly.
func fuzzPeer(t *testing.T, input []byte, frames bool, piece int) {
	opened, err := Open(Config{NoThread: true})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	e := &end{t: t, dev: opened}
	e.cq, e.qp = e.pair()
	d, q := opened.(*device), e.qp.(*queuePair)
	fence := bytes.Repeat([]byte{0xEE}, fuzzSize+2*fuzzEdge)
	tag, err := d.Table.Register(ddp.Region{Mem: rdma.MemOf(fence[fuzzEdge : fuzzEdge+fuzzSize : fuzzEdge+fuzzSize]), Base: fuzzBase,
		Access: rdma.RemoteRead | rdma.RemoteWrite, Domain: soft.Domain})
	if err != nil {
		t.Fatal(err)
	}
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(sockets[1])
	if err := q.attach(conn(sockets[0]), terms{crc: true, ird: 4, ord: 4}, false); err != nil {
		t.Fatal(err)
	}
	input = bytes.ReplaceAll(input, binary.BigEndian.AppendUint32(nil, fuzzTag), binary.BigEndian.AppendUint32(nil, uint32(tag)))
	stream := input
	if frames {
		stream = nil
		mpa := framer{crc: true}
		for len(input) >= fpduLength {
			n := min(int(binary.BigEndian.Uint16(input)), len(input)-fpduLength)
			stream = mpa.append(stream, input[fpduLength:fpduLength+n])
			input = input[fpduLength+n:]
		}
	}
	answers := make([]byte, 64<<10)
	for len(stream) > 0 && q.state == connected {
		n, err := unix.Write(sockets[1], stream[:min(piece, len(stream))])
		if err != nil && err != unix.EAGAIN {
			break // it has closed the connection
		}
		stream = stream[max(n, 0):]
		e.poll()
		_, _ = unix.Read(sockets[1], answers) // so that the answers do not fill the socket
	}
	e.poll()
	for _, edge := range [][]byte{fence[:fuzzEdge], fence[fuzzEdge+fuzzSize:]} {
		if !bytes.Equal(edge, bytes.Repeat([]byte{0xEE}, fuzzEdge)) {
			t.Fatal("a byte outside the region was changed")
		}
	}
	for _, c := range e.got {
		if c.Op == rdma.OpRecv && c.Len > maxSend {
			t.Fatalf("a message of %d bytes arrived, the limit is %d", c.Len, maxSend)
		}
	}
}
