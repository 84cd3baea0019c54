package regcache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

func after(n uint32) func(int) uint32 { return func(int) uint32 { return n } }

// note checks the count that Note returns.
func note(t *testing.T, u *Uses, addr uint64, size int, want uint32) {
	t.Helper()
	if n := u.Note(addr, size); n != want {
		t.Fatalf("use of %d bytes at %#x: counted as number %d, want %d", size, addr, n, want)
	}
}

func TestThreshold(t *testing.T) {
	register, copying := rdma.Cost{Fixed: 20_000, PerByte: 0.1}, rdma.Cost{Fixed: 10, PerByte: 0.1}
	for _, x := range []struct {
		size int
		uses uint32
		pays bool
	}{
		{64, 0, false},    // the copy takes 16.4 ns, the look-up 50
		{1024, 323, true}, // 20102.4 / (112.4 − 50) = 322.2
		{8192, 27, true},  // 20819.2 / (829.2 − 50) = 26.7
	} {
		if uses, pays := Threshold(register, copying, 50, x.size); uses != x.uses || pays != x.pays {
			t.Errorf("%d bytes: %d uses, pays %v; want %d and %v", x.size, uses, pays, x.uses, x.pays)
		}
	}
}

func TestCountUses(t *testing.T) {
	u := NewUses(UsesConfig{Frequent: after(3)})
	for i := range uint32(5) {
		note(t, u, 0xc000010000, 1000, i+1)
		note(t, u, 0xc000020000, 1000, i+1)
	}
	note(t, u, 0xc000010000, 1010, 6) // the same size class
	note(t, u, 0xc000010000, 4000, 1) // a larger buffer at the same address
	if s := u.Stats(); s.Buffers != 3 || s.Frequent != 2 {
		t.Errorf("%+v, want 3 buffers, 2 of them frequently used", s)
	}
	u.Forget(0xc000010000, 1000)
	u.Forget(0xc000010000, 1000)
	u.Forget(0xc000999999, 1000)
	if s := u.Stats(); s.Buffers != 2 || s.Frequent != 1 || u.Len() != 2 {
		t.Errorf("%+v after Forget, want 2 buffers, 1 of them frequently used", s)
	}
	note(t, u, 0xc000010000, 1000, 1)
}

func TestTableGrowsToLimit(t *testing.T) {
	const limit = 1 << 14
	u := NewUses(UsesConfig{Frequent: after(2), Free: 256, Limit: limit})
	for i := range uint64(limit / 4) {
		note(t, u, 0xc000000000+i*4096, 1000, 1)
		note(t, u, 0xc000000000+i*4096, 1000, 2)
	}
	if s := u.Stats(); s.Buffers != limit/4 || s.Refused != 0 {
		t.Errorf("%+v; want all %d buffers in the table: each was used twice", s, limit/4)
	}
	for i := range uint64(10 * limit) {
		u.Note(0xd000000000+i*4096, 1000)
	}
	if room := len(u.buckets) * len(useBucket{}); room > limit || u.Len() > room {
		t.Errorf("%d buffers in a table for %d, whose limit is %d", u.Len(), room, limit)
	}
}

func TestTableStopsGrowing(t *testing.T) {
	u := NewUses(UsesConfig{Frequent: after(10), Free: 1 << 10})
	for i := range uint64(100_000) {
		u.Note(0xc000000000+i*4096, 1000)
	}
	if room := len(u.buckets) * len(useBucket{}); room != 1<<10 {
		t.Errorf("a table for %d buffers, of which none is used twice; want %d", room, 1<<10)
	}
	if s := u.Stats(); s.Displaced == 0 || s.Frequent != 0 {
		t.Errorf("%+v; want evicted buffers, and none frequently used", s)
	}
}

func TestFrequentBufferStays(t *testing.T) {
	u := NewUses(UsesConfig{Frequent: after(100), Free: 256, Limit: 256})
	const frequent = 0xc123456000
	last := uint32(0)
	for i := range uint64(50_000) {
		u.Note(0xc000000000+i*4096, 1000)
		if i%8 == 0 {
			last = u.Note(frequent, 1000)
		}
	}
	if last < 100 {
		t.Errorf("a buffer of every ninth use has the count %d of 6250", last)
	}
}

func TestTableFollowsChanges(t *testing.T) {
	u := NewUses(UsesConfig{Frequent: after(50), Free: 256, Limit: 256})
	for phase := range uint64(3) {
		for range 200 {
			for i := range uint64(100) {
				u.Note(0xc000000000+phase<<30+i*8192, 1000)
			}
		}
		frequent := 0
		for i := range uint64(100) {
			if u.Note(0xc000000000+phase<<30+i*8192, 1000) >= 50 {
				frequent++
			}
		}
		if frequent < 90 {
			t.Errorf("phase %d: %d of 100 buffers are frequently used", phase, frequent)
		}
	}
}

func TestTableDeterministic(t *testing.T) {
	run := func() string {
		u := NewUses(UsesConfig{Frequent: after(5), Free: 512, Limit: 2048})
		r := rand.New(rand.NewPCG(3, 4))
		for range 50_000 {
			addr, size := 0xc000000000+uint64(r.ExpFloat64()*1000)*64, 64<<r.IntN(4)
			if u.Note(addr, size); r.IntN(50) == 0 {
				u.Forget(addr, size)
			}
		}
		known, frequent := 0, 0
		for _, b := range u.buckets {
			for _, s := range b {
				if s.key != 0 {
					known++
				}
				if s.key != 0 && s.count >= uint32(s.limit) {
					frequent++
				}
			}
		}
		if s := u.Stats(); s.Buffers != known || s.Frequent != frequent {
			t.Fatalf("%+v; the table holds %d buffers, %d of them frequently used", s, known, frequent)
		}
		return fmt.Sprint(u.Stats(), u.buckets)
	}
	if a, b := run(), run(); a != b {
		t.Error("two runs of the same uses differ")
	}
}

func TestNoteNoAllocation(t *testing.T) {
	u := NewUses(UsesConfig{Frequent: after(100), Limit: 256})
	i := uint64(0)
	if n := testing.AllocsPerRun(10_000, func() {
		u.Note(0xc000000000+i%1000*4096, 1000)
		i++
	}); n != 0 {
		t.Errorf("%v allocations per use", n)
	}
}

func BenchmarkNote(b *testing.B) {
	for _, n := range []uint64{8, 1 << 20} {
		b.Run(fmt.Sprint(n, " buffers"), func(b *testing.B) {
			u := NewUses(UsesConfig{Frequent: after(2), Limit: 1 << 24})
			for i := range 2 * n {
				u.Note(0xc000000000+i%n*4096, 1000)
			}
			for i := range uint64(b.N) {
				u.Note(0xc000000000+i*7919%n*4096, 1000)
			}
		})
	}
}
