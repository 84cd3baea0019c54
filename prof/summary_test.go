package prof

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

func TestSpread(t *testing.T) {
	ranks := []*Counters{{Rank: 0}, {Rank: 1}, {Rank: 2}, {Rank: 3}}
	ranks[1].Add(MessagesSent, 5)
	ranks[2].Add(MessagesSent, 5)
	ranks[3].Add(MessagesSent, 2)
	ranks[3].Add("datagrams.sent", 1)
	s := whole(ranks)
	for name, want := range map[Name]Spread{
		MessagesSent:     {Sum: 12, Min: 0, Max: 5, MaxAt: 1},
		"datagrams.sent": {Sum: 1, Min: 0, Max: 1, MaxAt: 3},
		BytesSent:        {},
	} {
		if got := s.Values[name]; got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if m := s.Mean(MessagesSent); m != 3 {
		t.Errorf("the mean of 0, 5, 5 and 2 is 3, not %v", m)
	}
}

func TestMemoryTotal(t *testing.T) {
	var c Counters
	c.Add("memory.receive", 10)
	c.Add("memory.of-a-new-device", 5)
	c.Add(MemoryRegistered, 1000)
	c.Add(MemoryKernel, 2000)
	c.Add(MessagesSent, 7)
	if got := c.Of(MemoryTotal); got != 15 {
		t.Errorf("the memory of the rank is 15 bytes, not %d", got)
	}
}

// The order and grouping of merges do not matter, and encoding preserves a summary.
func TestMergeInAnyOrder(t *testing.T) {
	want := whole(job())
	if want.Ranks != 4 || len(want.Pairs) != 12 || len(want.Sizes) != 3 {
		t.Fatalf("the summary of four ranks: %+v", want)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		var parts []*Summary
		for _, c := range job() {
			parts = append(parts, Summarize(c))
		}
		for len(parts) > 1 {
			rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			sent, err := Unpack(parts[1].Pack())
			if err != nil {
				t.Fatal(err)
			}
			parts[0].Merge(sent)
			parts = append(parts[:1], parts[2:]...)
		}
		if !reflect.DeepEqual(parts[0], want) {
			t.Fatalf("in another order: %s\nwant: %s", parts[0].EncodeFile(), want.EncodeFile())
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, b := range []string{"", "{", `{"ranks": "four"}`, "[]"} {
		if s, err := Decode([]byte(b)); err == nil {
			t.Errorf("Decode accepts %q: %+v", b, s)
		}
	}
}

func TestUnpackErrors(t *testing.T) {
	whole := whole(job()).Pack()
	for n := range whole {
		if s, err := Unpack(whole[:n]); err == nil {
			t.Errorf("Unpack accepts the first %d of %d bytes: %+v", n, len(whole), s)
		}
		long := bytes.Clone(whole)
		copy(long[n:], "\xff\xff\xff\xff\xff\xff\xff\xff\x7f")
		Unpack(long) // a length of 2^62 must not be allocated
	}
	if _, err := Unpack(append(whole, 0)); err == nil {
		t.Error("Unpack accepts a byte too many")
	}
}
