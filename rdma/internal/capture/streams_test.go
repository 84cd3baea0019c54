package capture

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// recorded returns the frames of a conversation as a recorder would have stored them.
func recorded(t *testing.T, segments ...Segment) []Frame {
	t.Helper()
	var file bytes.Buffer
	if err := WriteTCP(&file, segments); err != nil {
		t.Fatal(err)
	}
	frames, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

var talk = []Segment{
	{Client, []byte("question")},
	{Server, bytes.Repeat([]byte("a"), 200)}, // to just before the sequence numbers wrap
	{Server, bytes.Repeat([]byte("b"), 100)}, // across the wrap
	{Client, []byte("thanks")},
	{Server, []byte("!")},
}

// The frames of talk begin after the handshake.
const handshake = 3

func TestConversationRoundTrip(t *testing.T) {
	conversations, err := Conversations(recorded(t, talk...))
	if err != nil {
		t.Fatal(err)
	}
	if len(conversations) != 1 || !reflect.DeepEqual(conversations[0].Segments, talk) {
		t.Fatalf("read %v, written %v", conversations, talk)
	}
	if got := string(conversations[0].Bytes(Client)); got != "questionthanks" {
		t.Errorf("the client sent %q", got)
	}
	if got := len(conversations[0].Bytes(Server)); got != 301 {
		t.Errorf("the server sent %d bytes, not 301", got)
	}
	if conversations[0].Client.Port() != 40000 || conversations[0].Server.Port() != 7174 {
		t.Errorf("between %v and %v", conversations[0].Client, conversations[0].Server)
	}
}

func TestReassembly(t *testing.T) {
	whole := recorded(t, talk...)
	first, second := handshake+1, handshake+2 // of the server
	overlap := bytes.Clone(whole[second].Data)
	for _, c := range []struct {
		name   string
		frames []Frame
	}{
		{"a retransmitted segment", slices.Insert(slices.Clone(whole), second+1, whole[first])},
		{"an overtaken segment", slices.Concat(whole[:first], whole[second:second+1], whole[first:second], whole[second+1:])},
		{"overtaken and retransmitted", slices.Concat(whole[:first], whole[second:second+1], whole[second:second+1], whole[first:])},
		{"other protocols in between", slices.Insert(slices.Clone(whole), first, Frame{Data: make([]byte, 60)}, Frame{Data: []byte{1}}, Frame{Data: append(bytes.Repeat([]byte{0xff}, 12), 0x86, 0xdd)})},
		{"padding of the link", slices.Replace(slices.Clone(whole), first, second, Frame{Data: append(bytes.Clone(whole[first].Data), 0, 0, 0)})},
		{"the end retransmitted", append(slices.Clone(whole), Frame{Data: overlap})},
	} {
		t.Run(c.name, func(t *testing.T) {
			conversations, err := Conversations(c.frames)
			if err != nil {
				t.Fatal(err)
			}
			if len(conversations) != 1 {
				t.Fatalf("%d conversations", len(conversations))
			}
			want := &Conversation{Segments: talk}
			for _, side := range []Side{Client, Server} {
				if got := conversations[0].Bytes(side); !bytes.Equal(got, want.Bytes(side)) {
					t.Errorf("the %v sent %q", side, got)
				}
			}
		})
	}
}

func TestConnectionsAreKeptApart(t *testing.T) {
	refused := recorded(t)
	one, two := recorded(t, Segment{Client, []byte("one")}), recorded(t, Segment{Server, []byte("two")})
	conversations, err := Conversations(slices.Concat(refused, one, two)) // all with the same ports
	if err != nil {
		t.Fatal(err)
	}
	if len(conversations) != 2 {
		t.Fatalf("%d conversations, want 2", len(conversations))
	}
	if got := string(conversations[0].Bytes(Client)) + "," + string(conversations[1].Bytes(Server)); got != "one,two" {
		t.Errorf("said %q", got)
	}
}

func TestConversationsErrors(t *testing.T) {
	whole := recorded(t, talk...)
	changed := func(at int, b byte) []Frame {
		frame := bytes.Clone(whole[handshake].Data)
		frame[at] = b
		return []Frame{{Data: frame}}
	}
	for _, c := range []struct {
		name, want string
		frames     []Frame
	}{
		{"a gap", "from the server are missing", slices.Delete(slices.Clone(whole), handshake+1, handshake+2)},
		{"a fragment", "is a fragment", changed(etherHead+6, 0x20)},
		{"a short IPv4 header", "an IPv4 header of 4 bytes", changed(etherHead, 0x41)},
		{"a length beyond the frame", "does not fit", changed(etherHead+2, 0x40)},
		{"a TCP header beyond the packet", "a TCP header of 60 bytes", changed(etherHead+ipHead+12, 0xf0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Conversations(c.frames)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestWriteRejectsLongSegment(t *testing.T) {
	var file bytes.Buffer
	for _, n := range []int{maxPayload, maxPayload + 1} {
		err := WriteTCP(&file, []Segment{{Server, make([]byte, n)}})
		if refused := err != nil; refused != (n > maxPayload) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}
