package regcache

import "testing"

// A count belongs to memory, and the table does not keep memory alive.
func TestCountExpires(t *testing.T) {
	u := NewUses(UsesConfig{Frequent: func(int) uint32 { return 3 }})
	for range 5 {
		u.Note(0x10000, 500)
	}
	u.Generation(2)
	if n := u.Note(0x10000, 500); n != 6 {
		t.Errorf("two generations later the count is %d, want 6", n)
	}
	u.Generation(5)
	if n := u.Note(0x10000, 500); n != 1 {
		t.Errorf("three generations without a use later the count is %d, want 1: it may be other memory", n)
	}
	if s := u.Stats(); s.Outlived != 1 || s.Frequent != 0 || s.Buffers != 1 {
		t.Errorf("%+v", s)
	}
	for range 3 {
		u.Note(0x10000, 500)
	}
	u.Generation(1 << 16) // the stored generation is 0
	u.Generation(1<<16 + 6)
	if n := u.Note(0x10000, 500); n > 5 {
		t.Errorf("the count is %d", n)
	}
}

func TestForgetRange(t *testing.T) {
	u := NewUses(UsesConfig{Frequent: func(int) uint32 { return 2 }})
	for i := range uint64(100) {
		for range 3 {
			u.Note(0x7f00_0000_0000+i*1000, 1000)
		}
	}
	u.ForgetRange(0x7f00_0000_0000+20_000, 0x7f00_0000_0000+30_000)
	if s := u.Stats(); s.Buffers != 90 || s.Frequent != 90 {
		t.Errorf("%+v, want 90 buffers, all frequently used", s)
	}
	if n := u.Note(0x7f00_0000_0000+20_000, 1000); n != 1 {
		t.Errorf("a forgotten buffer was used %d times", n)
	}
	if n := u.Note(0x7f00_0000_0000+30_000, 1000); n != 4 {
		t.Errorf("the buffer behind the range was used %d times, want 4", n)
	}
}
