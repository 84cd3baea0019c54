package hybrid

import (
	"bytes"
	"testing"
)

func TestNotice(t *testing.T) {
	for _, n := range []notice{
		{kind: offer, epoch: 7, data: "10.0.0.1:1/1/ab", control: "10.0.0.1:1/2/ab", connection: "10.0.0.1:9/0123456789abcdef"},
		{kind: accept, epoch: 1 << 31, connection: "[::1]:9/0123456789abcdef"},
		{kind: moved, epoch: 3, count: 1<<64 - 1},
		{kind: ended, epoch: 3},
	} {
		text := n.append(nil)
		var got notice
		if err := got.parse(text); err != nil || got != n {
			t.Errorf("%+v is decoded as %+v, %v", n, got, err)
		}
		for i := range text { // no prefix is valid
			if err := got.parse(text[:i]); err == nil {
				t.Errorf("the first %d of %d bytes of %+v are decoded as a notice", i, len(text), n)
			}
		}
	}
}

// FuzzNotice decodes arbitrary bytes: a valid notice must be encoded to the same bytes.
func FuzzNotice(f *testing.F) {
	f.Add((&notice{kind: offer, data: "a", control: "b", connection: "c"}).append(nil))
	f.Add((&notice{kind: seen, epoch: 1, count: 2}).append(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		var n notice
		if n.parse(text) != nil {
			return
		}
		if again := n.append(nil); !bytes.Equal(again, text) {
			t.Fatalf("% x is decoded as %+v, which is % x", text, n, again)
		}
	})
}
