package regcache

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

const (
	read  = rdma.RemoteRead
	write = rdma.RemoteWrite
)

// still is a configuration in which no generation passes during a test.
var still = Config{Generation: time.Hour}

func TestHit(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 1<<16)
	first := use(t, c, d, mem, read)
	second := use(t, c, d, mem, read)
	if first != second {
		t.Errorf("the second use got %+v, the first %+v", second, first)
	}
	wantStats(t, c, d, Stats{Hits: 1, Misses: 1})
	use(t, c, d, make([]byte, 1<<16), read)
	wantStats(t, c, d, Stats{Hits: 1, Misses: 2})
}

func TestHitPartOfRegion(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 100_000)
	use(t, c, d, mem, read|write)
	for _, p := range [][2]int{{0, 1}, {99_999, 100_000}, {1, 100_000}, {0, 99_999}, {40_000, 60_000}, {4096, 8192}} {
		use(t, c, d, mem[p[0]:p[1]], read)
	}
	wantStats(t, c, d, Stats{Hits: 6, Misses: 1})
}

func TestAdjacentMemoryMisses(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 100_000)
	use(t, c, d, mem[1000:2000], read)
	use(t, c, d, mem[2000:3000], read)
	use(t, c, d, mem[:1000], read)
	wantStats(t, c, d, Stats{Misses: 3})
}

func TestWidenRights(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 5000)
	use(t, c, d, mem, read)
	use(t, c, d, mem, write)
	use(t, c, d, mem, read)
	use(t, c, d, mem, read|write)
	wantStats(t, c, d, Stats{Hits: 2, Misses: 2, Widened: 1, Retired: 1})
}

func TestOverlapUnion(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 4000)
	use(t, c, d, mem[0:1500], read)
	use(t, c, d, mem[2000:3000], read)
	use(t, c, d, mem[1000:2500], write)
	use(t, c, d, mem[0:3000], read|write)
	wantStats(t, c, d, Stats{Hits: 1, Misses: 3, Widened: 1, Retired: 2})
}

func TestSlidingWindow(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 1<<20)
	registered := 0
	d.refuse = func(mem []byte, _ rdma.Access) error { registered += len(mem); return nil }
	const size = 8192
	for at := 0; at+size <= len(mem); at += size - 8 {
		use(t, c, d, mem[at:at+size], read)
	}
	if registered > 3*len(mem) {
		t.Errorf("%d bytes were registered in order to send %d", registered, len(mem))
	}
}

func TestUnionRefused(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 4000)
	use(t, c, d, mem[:2000], read)
	d.refuse = func(mem []byte, acc rdma.Access) error {
		if len(mem) > 2000 || acc != write {
			return errors.New("a part of it is unmapped")
		}
		return nil
	}
	use(t, c, d, mem[1000:3000], write)
	wantStats(t, c, d, Stats{Misses: 2, Retired: 1, Failed: 1})
}

func TestReplacedRegionInUseStaysRegistered(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 4000)
	old := get(t, c, d, mem[:2000], read)
	use(t, c, d, mem[1000:3000], write)
	if err := d.check(old, mem[:2000], read); err != nil {
		t.Errorf("the region that is in use: %v", err)
	}
	put(t, c, old)
	if d.check(old, mem[:2000], read) == nil {
		t.Error("the region that was replaced is still registered after its last use")
	}
	wantStats(t, c, d, Stats{Misses: 2, Widened: 1, Retired: 1})
}

func TestLimits(t *testing.T) {
	for _, limit := range []Config{{Bytes: 10 * 1000}, {Entries: 10}} {
		limit.Generation = time.Hour
		d := newTestDevice()
		c := New(d, limit)
		for range 100 {
			use(t, c, d, make([]byte, 1000), read)
			if d.locked > 10*1000 {
				t.Fatalf("with %+v, %d bytes are registered", limit, d.locked)
			}
		}
		wantStats(t, c, d, Stats{Misses: 100, Evicted: 90})
	}
}

func TestLeastRecentlyUsedEvicted(t *testing.T) {
	d := newTestDevice()
	c := New(d, Config{Entries: 4, Generation: time.Hour})
	frequent := make([]byte, 1000)
	use(t, c, d, frequent, read)
	for range 50 {
		use(t, c, d, make([]byte, 1000), read)
		use(t, c, d, frequent, read)
	}
	if s := c.Stats(); s.Hits != 50 || s.Misses != 51 {
		t.Errorf("%d hits and %d misses, want 50 and 51: a frequently used buffer was evicted", s.Hits, s.Misses)
	}
}

func TestRegionInUseNotEvicted(t *testing.T) {
	d := newTestDevice()
	c := New(d, Config{Entries: 3, Bytes: 3000, Generation: time.Hour})
	var mems [8][]byte
	var mrs [8]rdma.MR
	for i := range mems {
		mems[i] = make([]byte, 1000)
		mrs[i] = get(t, c, d, mems[i], read)
	}
	for i := range mems {
		if err := d.check(mrs[i], mems[i], read); err != nil {
			t.Errorf("region %d of 8 in use, with a limit of 3: %v", i, err)
		}
	}
	for i := range mems {
		put(t, c, mrs[i])
	}
	wantStats(t, c, d, Stats{Misses: 8, Evicted: 5})
	if len(d.live) != 3 {
		t.Errorf("%d regions left after the last release, want 3", len(d.live))
	}
}

func TestRegionWithTwoUses(t *testing.T) {
	d := newTestDevice()
	c := New(d, Config{Bytes: -1})
	mem := make([]byte, 1000)
	a, b := get(t, c, d, mem, read), get(t, c, d, mem, read)
	put(t, c, a)
	if err := d.check(b, mem, read); err != nil {
		t.Error(err)
	}
	put(t, c, b)
	wantStats(t, c, d, Stats{Misses: 2, Passing: 2})

	c = New(d, still)
	a, b = get(t, c, d, mem, read), get(t, c, d, mem, read)
	c.Flush()
	put(t, c, a)
	if err := d.check(b, mem, read); err != nil {
		t.Error(err)
	}
	put(t, c, b)
	wantStats(t, c, d, Stats{Hits: 1, Misses: 1, Dropped: 1})
}

func TestUncachedRegistrations(t *testing.T) {
	mem := make([]byte, 5000)
	for _, x := range []struct {
		what string
		cfg  Config
		mem  []byte
		acc  rdma.Access
	}{
		{"caching disabled", Config{Bytes: -1}, mem, read},
		{"larger than the limit", Config{Bytes: 4999}, mem, read},
		{"cooperative: the cursor belongs to one copy", Config{}, mem, read | rdma.Cooperative},
		{"no bytes", Config{}, mem[:0], read},
	} {
		t.Run(x.what, func(t *testing.T) {
			d := newTestDevice()
			c := New(d, x.cfg)
			a := get(t, c, d, x.mem, x.acc)
			b := get(t, c, d, x.mem, x.acc)
			if a.RKey == b.RKey {
				t.Error("two uses share a registration")
			}
			put(t, c, a)
			put(t, c, b)
			wantStats(t, c, d, Stats{Misses: 2, Passing: 2})
			if len(d.live) != 0 {
				t.Errorf("%d regions stay registered", len(d.live))
			}
		})
	}
}

func TestEvictWhenDeviceRefuses(t *testing.T) {
	d := newTestDevice()
	d.maxLocked = 1_000_000
	c := New(d, still)
	for range 10 {
		use(t, c, d, make([]byte, 100_000), read)
	}
	held := make([]byte, 100_000)
	mr := get(t, c, d, held, read)
	use(t, c, d, make([]byte, 500_000), read)
	if err := d.check(mr, held, read); err != nil {
		t.Errorf("the region in use: %v", err)
	}
	if s := c.Stats(); s.Retried != 2 || s.Failed != 2 || s.Evicted != 8 {
		t.Errorf("%d refusals, %d retries, %d evictions; want 2, 2 and 8", s.Failed, s.Retried, s.Evicted)
	}
	_, err := c.Get(make([]byte, 950_000), read)
	if !errors.Is(err, errLocked) || !strings.Contains(err.Error(), "950000 bytes") {
		t.Errorf("a registration that does not fit returns %v, want the device's error with the size", err)
	}
	put(t, c, mr)
	use(t, c, d, held, read)
}

func TestFix(t *testing.T) {
	d := newTestDevice()
	c := New(d, Config{Bytes: 5000, Entries: 2, Generation: time.Hour})
	fixed := make([]byte, 100_000)
	use(t, c, d, fixed[:2000], read)
	if err := c.Fix(fixed, read|write); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		use(t, c, d, make([]byte, 2000), read)
		use(t, c, d, fixed[500:90_000], write)
	}
	c.Flush()
	use(t, c, d, fixed, read)
	if s := c.Stats(); s.Hits != 21 || s.Passing != 0 {
		t.Errorf("%d hits, %d registered for one use; want 21 and 0", s.Hits, s.Passing)
	}
	if err := c.Fix(fixed[5:10], read); err == nil {
		t.Error("memory was fixed twice")
	}
	mr := get(t, c, d, fixed[:10], read)
	if err := c.Drop(fixed); !errors.Is(err, ErrInUse) {
		t.Errorf("Drop of memory in use returns %v, want ErrInUse", err)
	}
	put(t, c, mr)
	if err := c.Drop(fixed); err != nil {
		t.Errorf("Drop after the last use: %v", err)
	}
	if len(d.live) != 0 {
		t.Errorf("%d regions are left", len(d.live))
	}
}

func TestDrop(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 100_000)
	for at := 0; at < 100_000; at += 1000 {
		use(t, c, d, mem[at:at+1000], read)
	}
	if err := c.Drop(mem[20_500:30_500]); err != nil {
		t.Fatal(err)
	}
	for _, r := range d.live {
		lo := rdma.MemOf(mem).Addr()
		if r.lo < lo+30_500 && lo+20_500 < r.hi {
			t.Errorf("bytes %d to %d are still registered", r.lo-lo, r.hi-lo)
		}
	}
	wantStats(t, c, d, Stats{Misses: 100, Dropped: 11})
}

func TestDeregisterFails(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 1000)
	use(t, c, d, mem, read)
	d.stuck = true
	c.Flush()
	wantStats(t, c, d, Stats{Misses: 1, Dropped: 1, Stuck: 1})
	if len(c.stuck) != 1 || &c.stuck[0].mem.Bytes()[0] != &mem[0] {
		t.Error("the memory is not kept")
	}
	d.stuck = false
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if len(d.live) != 0 {
		t.Error("Close did not retry")
	}
}

func TestPutTwice(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mr := use(t, c, d, make([]byte, 1000), read)
	if err := c.Put(mr); err == nil || !strings.Contains(err.Error(), "released before") {
		t.Errorf("the second Put returns %v", err)
	}
}

func TestClose(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 10_000)
	use(t, c, d, mem[:1000], read)
	get(t, c, d, mem[1000:2000], read)
	get(t, c, d, mem[2000:3000], read|rdma.Cooperative)
	if err := c.Fix(mem[5000:], read); err != nil {
		t.Fatal(err)
	}
	get(t, c, d, mem[6000:7000], read)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if len(d.live) != 0 {
		t.Errorf("%d regions are left", len(d.live))
	}
	if _, err := c.Get(mem, read); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("Get after Close returns %v", err)
	}
	if err := c.Fix(mem, read); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("Fix after Close returns %v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("the second Close returns %v", err)
	}
}

func TestHitNoAllocation(t *testing.T) {
	d := newTestDevice()
	c := New(d, still)
	mem := make([]byte, 1<<20)
	use(t, c, d, mem, read)
	if n := testing.AllocsPerRun(1000, func() {
		mr, err := c.Get(mem[100:5000], read)
		if err != nil || c.Put(mr) != nil {
			t.Fatal("a hit failed")
		}
	}); n != 0 {
		t.Errorf("%v allocations per hit", n)
	}
}
