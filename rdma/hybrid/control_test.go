package hybrid

import (
	"bytes"
	"math/bits"
	"testing"
)

func TestNotice(t *testing.T) {
	for _, n := range []notice{
		{kind: offer, epoch: 7, data: "10.0.0.1:1/1/ab", control: "10.0.0.1:1/2/ab", connection: "10.0.0.1:9/0123456789abcdef"},
		{kind: accept, epoch: 1 << 31, connection: "[::1]:9/0123456789abcdef"},
		{kind: moved, epoch: 3, path: byConnection, count: 1<<64 - 1},
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
	f.Add((&notice{kind: seen, path: byConnection, epoch: 1, count: 2}).append(nil))
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

// TestKeyHoldsBothTags checks that the tags can be extracted, and that each bit of a key
// is significant for both.
func TestKeyHoldsBothTags(t *testing.T) {
	for _, tags := range [][paths]uint32{{1, 1}, {0xFFFFFFFF, 1}, {0x01234567, 0x89ABCDEF}, {256, 0x80000000}} {
		key := joinKey(tags)
		if got := splitKey(key); got != tags {
			t.Errorf("the tags %x are extracted as %x", tags, got)
		}
		for bit := range 64 {
			wrong := splitKey(key ^ 1<<bit)
			if wrong[0] == tags[0] || wrong[1] == tags[1] {
				t.Errorf("with bit %d flipped, the key %x still holds one of its tags: %x of %x", bit, key, wrong, tags)
			}
		}
		if bits.OnesCount64(key) < 8 {
			t.Errorf("the tags %x make the key %x, which can be guessed", tags, key)
		}
	}
}
