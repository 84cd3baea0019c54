package iwarp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

func TestStartupFramesAsSiwSendsThem(t *testing.T) {
	for _, c := range []struct {
		name string
		s    startup
		want string
	}{
		{"a peer-to-peer request", startup{crc: true, revision: 2, enhanced: true, p2p: true, ready: readyWrite | readyRead, ird: 1, ord: 1},
			hex.EncodeToString([]byte(requestKey)) + "50020004" + "8001c001"},
		{"its reply", startup{reply: true, crc: true, revision: 2, enhanced: true, p2p: true, ready: readyWrite, ird: 1, ord: 1},
			hex.EncodeToString([]byte(replyKey)) + "50020004" + "80018001"},
		{"a rejection of markers", startup{reply: true, crc: true, reject: true, revision: 1},
			hex.EncodeToString([]byte(replyKey)) + "60010000"},
		{"a plain request with markers and private data", startup{markers: true, crc: true, revision: 1, private: []byte{1, 2, 3}},
			hex.EncodeToString([]byte(requestKey)) + "c0010003" + "010203"},
	} {
		got, err := c.s.append(nil)
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("%s is %x, %v; expected %s", c.name, got, err, c.want)
			continue
		}
		for cut := range got {
			if _, n, err := parseStartup(got[:cut], c.s.reply); n != 0 || err != nil {
				t.Fatalf("%s: its first %d bytes are parsed as %d bytes, %v", c.name, cut, n, err)
			}
		}
		back, n, err := parseStartup(append(got, 0xAA), c.s.reply)
		if c.s.private == nil {
			c.s.private = []byte{}
		}
		if n != len(got) || err != nil || !reflect.DeepEqual(back, c.s) {
			t.Errorf("%s is parsed as %+v (%d bytes, %v), expected %+v", c.name, back, n, err, c.s)
		}
	}
}

func TestInvalidStartupFrames(t *testing.T) {
	frame := func(key, rest string) []byte {
		b, err := hex.DecodeString(rest)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte(key), b...)
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		reply bool
	}{
		{"another protocol", []byte("GET / HTTP/1.1\r\n"), false},
		{"another protocol, one byte", []byte("G"), false},
		{"a request where a reply is due", frame(requestKey, "40010000"), true},
		{"a reply where a request is due", frame(replyKey, "40010000"), false},
		{"revision 0", frame(requestKey, "40000000"), false},
		{"revision 3", frame(requestKey, "40030000"), false},
		{"513 bytes of private data", frame(requestKey, "40010201"), false},
		{"enhanced without depths", frame(requestKey, "50020003aabbcc"), false},
	} {
		_, n, err := parseStartup(c.bytes, c.reply)
		var fault *mpaError
		if n != 0 || !errors.As(err, &fault) || fault.fault != ddp.FaultMPAFrame {
			t.Errorf("%s: %d bytes are accepted, %v", c.name, n, err)
		}
	}
	s := startup{revision: 2, enhanced: true, private: make([]byte, startupPrivateMax-enhancedLen+1)}
	if _, err := s.append(nil); err == nil {
		t.Error("private data that is too long is sent")
	}
}

// TestBothSidesAgree negotiates between two sides with different preferences.
func TestBothSidesAgree(t *testing.T) {
	all := readySend | readyWrite | readyRead
	for _, c := range []struct {
		name     string
		a, b     preferences // initiator, responder
		at, bt   terms
		rejected ddp.Fault // the responder's reason
	}{
		{"the receiver requests markers",
			preferences{markers: true, ird: 4, ord: 4}, preferences{ird: 4, ord: 4},
			terms{markersIn: true, ird: 4, ord: 4}, terms{markersOut: true, ird: 4, ord: 4}, 0},
		{"the initiator alone requests a CRC",
			preferences{crc: true, ird: 1, ord: 1}, preferences{ird: 1, ord: 1}, terms{crc: true, ird: 1, ord: 1}, terms{crc: true, ird: 1, ord: 1}, 0},
		{"the responder alone requests a CRC",
			preferences{ird: 1, ord: 1}, preferences{crc: true, ird: 1, ord: 1}, terms{crc: true, ird: 1, ord: 1}, terms{crc: true, ird: 1, ord: 1}, 0},
		{"the shallower depth counts",
			preferences{ird: 3, ord: 9}, preferences{ird: 5, ord: 7}, terms{ird: 3, ord: 5}, terms{ird: 5, ord: 3}, 0},
		{"a depth that is left open",
			preferences{ird: depthOpen, ord: depthOpen}, preferences{ird: 5, ord: 7}, terms{ird: depthOpen, ord: 5}, terms{ird: 5, ord: 7}, 0},
		{"revision 1 has no depths",
			preferences{plain: true, ird: 3, ord: 9}, preferences{ird: 5, ord: 7}, terms{ird: 3, ord: 9}, terms{ird: 5, ord: 7}, 0},
		{"the first message of a peer-to-peer connection is of a kind that both have",
			preferences{p2p: true, ready: all, ird: 1, ord: 1}, preferences{ready: readyWrite | readyRead, ird: 1, ord: 1},
			terms{ready: readyWrite, ird: 1, ord: 1}, terms{ready: readyWrite, ird: 1, ord: 1}, 0},
		{"no kind is in both",
			preferences{p2p: true, ready: readySend, ird: 1, ord: 1}, preferences{ready: readyWrite, ird: 1, ord: 1}, terms{}, terms{}, ddp.FaultMPAReady},
	} {
		req := c.a.request([]byte("hello"))
		req = overTheWire(t, req)
		rep, bt, err := c.b.answer(&req, nil)
		if c.rejected != 0 {
			var fault *mpaError
			if !errors.As(err, &fault) || fault.fault != c.rejected || !rep.reject {
				t.Errorf("%s: the responder returns %v and replies %+v", c.name, err, rep)
			}
			rep = overTheWire(t, rep)
			if _, err := c.a.conclude(&rep); err == nil {
				t.Errorf("%s: the initiator does not notice", c.name)
			}
			continue
		}
		if err != nil || bt != c.bt {
			t.Errorf("%s: the responder has %+v, %v; expected %+v", c.name, bt, err, c.bt)
		}
		rep = overTheWire(t, rep)
		if at, err := c.a.conclude(&rep); err != nil || at != c.at {
			t.Errorf("%s: the initiator has %+v, %v; expected %+v", c.name, at, err, c.at)
		}
	}
}

func TestInvalidReplies(t *testing.T) {
	p2p := preferences{p2p: true, ready: readyWrite, ird: 2, ord: 2}
	for _, c := range []struct {
		name string
		w    preferences
		rep  startup
		code ddp.Fault
	}{
		{"a rejection", preferences{}, startup{reply: true, reject: true, revision: 2, enhanced: true}, ddp.FaultMPAFrame},
		{"an old reply to a new request", preferences{}, startup{reply: true, revision: 1}, ddp.FaultMPAFrame},
		{"a new reply to an old request", preferences{plain: true}, startup{reply: true, revision: 2, enhanced: true}, ddp.FaultMPAFrame},
		{"more Reads than we answer", preferences{ird: 2}, startup{reply: true, revision: 2, enhanced: true, ord: 3}, ddp.FaultMPADepth},
		{"client-server for peer-to-peer", p2p, startup{reply: true, revision: 2, enhanced: true}, ddp.FaultMPAReady},
		{"a first message that was not offered", p2p, startup{reply: true, revision: 2, enhanced: true, p2p: true, ready: readyRead}, ddp.FaultMPAReady},
	} {
		_, err := c.w.conclude(&c.rep)
		var fault *mpaError
		if !errors.As(err, &fault) || fault.fault != c.code {
			t.Errorf("%s: %v, expected: %v", c.name, err, c.code)
		}
	}
}

// overTheWire encodes a frame and parses it.
func overTheWire(t *testing.T, s startup) startup {
	t.Helper()
	b, err := s.append(nil)
	if err != nil {
		t.Fatal(err)
	}
	back, n, err := parseStartup(b, s.reply)
	if n != len(b) || err != nil {
		t.Fatalf("%x is parsed as %d bytes, %v", b, n, err)
	}
	return back
}

// FuzzStartup: a parsed frame is encoded to the same bytes, except for ignored bits.
func FuzzStartup(f *testing.F) {
	for _, s := range []startup{
		{crc: true, revision: 2, enhanced: true, p2p: true, ready: readyWrite, ird: 1, ord: 1, private: []byte("x")},
		{reply: true, reject: true, revision: 1},
	} {
		b, err := s.append(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, s.reply)
	}
	f.Fuzz(func(t *testing.T, b []byte, reply bool) {
		s, n, err := parseStartup(b, reply)
		if n == 0 || err != nil {
			return
		}
		again, err := s.append(nil)
		if err != nil {
			t.Fatalf("%+v was parsed and cannot be encoded: %v", s, err)
		}
		back, m, err := parseStartup(again, reply)
		if m != n || err != nil || !reflect.DeepEqual(back, s) || !bytes.Equal(back.private, s.private) {
			t.Fatalf("%+v is parsed as %+v, %d of %d bytes, %v", s, back, m, n, err)
		}
	})
}
