package rail

import (
	"bytes"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func headers() []header {
	return []header{
		{kind: kindHello, epoch: 3, ack: 7, number: 9, incarnation: 0x0123456789abcdef, name: 77},
		{kind: kindMessage, epoch: 255, ack: 65535, number: 1<<32 - 1, again: true},
		{kind: kindData, number: 5, request: 6, key: 1 << 63, address: 1 << 47, total: 1 << 40, offset: 1 << 39, last: true},
		{kind: kindRequest, number: 5, request: 6, key: 7, address: 8, total: 9},
		{kind: kindResult, number: 5, request: 6, offset: 1 << 33},
		{kind: kindAnswer, number: 5, request: 6, status: rdma.StatusRemoteAccess},
		{kind: kindAck, epoch: 1, ack: 2},
	}
}

func TestHeaders(t *testing.T) {
	for _, h := range headers() {
		var b [rdma.HeadMax]byte
		n := h.put(&b)
		var got header
		rest, ok := got.parse(append(b[:n:n], "text"...))
		if !ok || got != h || string(rest) != "text" {
			t.Errorf("%+v becomes %+v before %q", h, got, rest)
		}
		for short := range n {
			if _, ok := new(header).parse(b[:short]); ok {
				t.Errorf("%d of %d bytes of %+v are accepted as a header", short, n, h)
			}
		}
	}
}

// FuzzHeader checks that an accepted header is encoded the same.
func FuzzHeader(f *testing.F) {
	for _, h := range headers() {
		var b [rdma.HeadMax]byte
		f.Add(b[:h.put(&b)])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var h, again header
		if _, ok := h.parse(text); !ok {
			return
		}
		var b [rdma.HeadMax]byte
		n := h.put(&b)
		if _, ok := again.parse(b[:n]); !ok || again != h {
			t.Errorf("%x is read as %+v, and that as %+v", text, h, again)
		}
	})
}

func TestAddresses(t *testing.T) {
	a := address{incarnation: 0xfeed, name: 12, rails: []railAddress{{"10.1.0.0/24", "10.1.0.2:4711/1/ab"}, {"", "odd;address=with%all"}}}
	got, err := parseAddress(a.text())
	if err != nil || got.incarnation != a.incarnation || got.name != a.name || len(got.rails) != 2 || got.rails[0] != a.rails[0] || got.rails[1] != a.rails[1] {
		t.Errorf("%s is read as %+v, %v", a.text(), got, err)
	}
	for _, text := range []rdma.Addr{"", "rail", "rail;1;2", "rail;xyz;1;=a", "rail;1;-1;=a", "rail;1;1;a", "rail;1;1;n=", "iwarp;1;1;=a"} {
		if _, err := parseAddress(text); err == nil {
			t.Errorf("%q is accepted as an address", text)
		}
	}
}

func TestRailsMatchByNetwork(t *testing.T) {
	for _, v := range []struct{ ours, theirs, want string }{
		{"AB", "AB", "01"},
		{"AB", "BA", "10"},
		{"AB", "B", "00"}, // the second matches, the first may try
		{"A", "BA", "1"},
		{"--", "--", "01"},
		{"AX", "YA", "10"},
		{"AA", "AA", "01"},
		{"ABC", "A", "000"},
	} {
		var ours []Rail
		var theirs []railAddress
		net := func(c rune) string { return string(bytes.TrimPrefix([]byte(string(c)), []byte("-"))) }
		for _, c := range v.ours {
			ours = append(ours, Rail{Network: net(c)})
		}
		for _, c := range v.theirs {
			theirs = append(theirs, railAddress{network: net(c)})
		}
		got := ""
		for _, j := range match(ours, theirs) {
			got += string(rune('0' + j))
		}
		if got != v.want {
			t.Errorf("rails on %s and %s match as %s, expected %s", v.ours, v.theirs, got, v.want)
		}
	}
}
