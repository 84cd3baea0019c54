package bytesize

import (
	"slices"
	"testing"
)

func TestParse(t *testing.T) {
	for s, want := range map[string]int64{"0": 0, "8": 8, "64K": 64 << 10, "64k": 64 << 10, "4M": 4 << 20, "1GiB": 1 << 30, "2KB": 2048, "-1": -1} {
		if n, err := Parse(s); err != nil || n != want {
			t.Errorf("%q is %d (%v), want %d", s, n, err, want)
		}
	}
	for _, s := range []string{"", "K", "8X", "1.5K", "-1K", "99999999999G", "8 K K"} {
		if n, err := Parse(s); err == nil {
			t.Errorf("%q is %d, want an error", s, n)
		}
	}
}

func TestParseList(t *testing.T) {
	if got, err := ParseList("1:16"); err != nil || !slices.Equal(got, []int64{1, 2, 4, 8, 16}) {
		t.Errorf("1:16 is %v (%v)", got, err)
	}
	if got, err := ParseList("1K:5K"); err != nil || !slices.Equal(got, []int64{1024, 2048, 4096}) {
		t.Errorf("1K:5K is %v (%v)", got, err)
	}
	for _, s := range []string{"4:1", "0:4", "1:x", ":"} {
		if got, err := ParseList(s); err == nil {
			t.Errorf("%q is %v, want an error", s, got)
		}
	}
}
