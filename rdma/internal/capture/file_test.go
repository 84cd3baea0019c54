package capture

import (
	"bytes"
	"encoding/binary"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestFileRoundTrip(t *testing.T) {
	frames := []Frame{
		{At: time.Unix(1, 2000), Data: []byte{1, 2, 3}},
		{At: time.Unix(1, 3000), Data: []byte{}},
		{At: time.Unix(2, 999_999_000), Data: bytes.Repeat([]byte{7}, 1514)},
	}
	var file bytes.Buffer
	if err := Write(&file, frames); err != nil {
		t.Fatal(err)
	}
	got, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, frames) {
		t.Errorf("read %v, written %v", got, frames)
	}
}

func TestReadByteOrders(t *testing.T) {
	for _, c := range []struct {
		name  string
		order binary.AppendByteOrder
		magic uint32
		want  time.Time
	}{
		{"little-endian, microseconds", binary.LittleEndian, magicMicro, time.Unix(5, 6000)},
		{"big-endian, microseconds", binary.BigEndian, magicMicro, time.Unix(5, 6000)},
		{"little-endian, nanoseconds", binary.LittleEndian, magicNano, time.Unix(5, 6)},
		{"big-endian, nanoseconds", binary.BigEndian, magicNano, time.Unix(5, 6)},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := c.order.AppendUint32(nil, c.magic)
			for _, word := range []uint32{0, 0, 0, maxFrame, linkEthernet, 5, 6, 1, 1} {
				file = c.order.AppendUint32(file, word)
			}
			got, err := Read(bytes.NewReader(append(file, 0xee)))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || !got[0].At.Equal(c.want) || !bytes.Equal(got[0].Data, []byte{0xee}) {
				t.Errorf("read %v, want one frame of %v", got, c.want)
			}
		})
	}
}

func TestReadRejectsOtherFiles(t *testing.T) {
	var whole bytes.Buffer
	if err := Write(&whole, []Frame{{At: time.Unix(1, 0), Data: []byte("frame")}}); err != nil {
		t.Fatal(err)
	}
	with := func(at int, b byte) []byte {
		changed := bytes.Clone(whole.Bytes())
		changed[at] = b
		return changed
	}
	for _, c := range []struct {
		name, want string
		file       []byte
	}{
		{"empty", "no file head", nil},
		{"another format", "no pcap file", bytes.Repeat([]byte{'x'}, 100)},
		{"another link", "only Ethernet", with(20, 113)},
		{"cut frame", "larger snapshot", with(fileHead+12, 99)},
		{"ends in a frame", "unexpected EOF", whole.Bytes()[:whole.Len()-1]},
		{"ends before the data", "unexpected EOF", whole.Bytes()[:fileHead+frameHead]},
		{"ends in a head", "unexpected EOF", whole.Bytes()[:fileHead+3]},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(c.file))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A recording may come from anywhere: no input may crash the reader.
func FuzzRead(f *testing.F) {
	var file bytes.Buffer
	if err := WriteTCP(&file, []Segment{{Client, []byte("to")}, {Server, []byte("fro")}}); err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		frames, err := Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		conversations, err := Conversations(frames)
		if err != nil {
			return
		}
		total := 0
		for i := range conversations {
			total += len(conversations[i].Bytes(Client)) + len(conversations[i].Bytes(Server))
		}
		if total > len(b) {
			t.Errorf("%d bytes were extracted from a file of %d", total, len(b))
		}
		_ = Write(io.Discard, frames)
	})
}
