package regcache

// A device for tests. It stores addresses, not slices, so that it keeps no memory alive. Its
// remote addresses start from a base of its own, so that a wrong Base is detected.

import (
	"errors"
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

type testDevice struct {
	live      map[uint64]testRegion // by RKey
	nextKey   uint64
	locked    int64 // bytes registered
	maxLocked int64 // 0: no limit
	refuse    func(mem []byte, acc rdma.Access) error
	stuck     bool // Deregister fails
	registers int
}

type testRegion struct {
	lo, hi uint64
	mr     rdma.MR
	acc    rdma.Access
}

var errLocked = errors.New("no more memory can be locked")

func newTestDevice() *testDevice { return &testDevice{live: map[uint64]testRegion{}} }

func (d *testDevice) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	d.registers++
	if d.refuse != nil {
		if err := d.refuse(mem, acc); err != nil {
			return rdma.MR{}, err
		}
	}
	if d.maxLocked > 0 && d.locked+int64(len(mem)) > d.maxLocked {
		return rdma.MR{}, errLocked
	}
	d.nextKey++
	lo := rdma.MemOf(mem).Addr()
	mr := rdma.MR{Base: d.nextKey << 40, Len: uint64(len(mem)), RKey: d.nextKey, LKey: uint32(d.nextKey)}
	d.live[mr.RKey] = testRegion{lo, lo + uint64(len(mem)), mr, acc}
	d.locked += int64(len(mem))
	return mr, nil
}

func (d *testDevice) Deregister(mr rdma.MR) error {
	r, ok := d.live[mr.RKey]
	if !ok || r.mr != mr {
		return fmt.Errorf("deregister %+v, which is not registered", mr)
	}
	if d.stuck {
		return errors.New("the device is busy")
	}
	delete(d.live, mr.RKey)
	d.locked -= int64(mr.Len)
	return nil
}

// check returns an error if an MR is not valid for mem.
func (d *testDevice) check(mr rdma.MR, mem []byte, acc rdma.Access) error {
	r, ok := d.live[mr.RKey]
	lo := rdma.MemOf(mem).Addr()
	switch {
	case !ok:
		return fmt.Errorf("key %d is not registered", mr.RKey)
	case mr.LKey != r.mr.LKey:
		return fmt.Errorf("key %d has the local key %d of another region", mr.RKey, mr.LKey)
	case mr.Len != uint64(len(mem)):
		return fmt.Errorf("the registration is for %d bytes, want %d", mr.Len, len(mem))
	case lo < r.lo || lo+uint64(len(mem)) > r.hi:
		return fmt.Errorf("key %d is for other memory", mr.RKey)
	case mr.Base-r.mr.Base != lo-r.lo:
		return fmt.Errorf("a peer would access byte %d of the region, want byte %d", mr.Base-r.mr.Base, lo-r.lo)
	case acc&^r.acc != 0:
		return fmt.Errorf("key %d has the rights %03b, want %03b", mr.RKey, r.acc, acc)
	}
	return nil
}

// get calls Get, which must succeed and return a valid MR.
func get(t testing.TB, c *Cache, d *testDevice, mem []byte, acc rdma.Access) rdma.MR {
	t.Helper()
	mr, err := c.Get(mem, acc)
	if err != nil {
		t.Fatalf("Get of %d bytes: %v", len(mem), err)
	}
	if err := d.check(mr, mem, acc); err != nil {
		t.Fatalf("Get of %d bytes: %v", len(mem), err)
	}
	return mr
}

func put(t testing.TB, c *Cache, mr rdma.MR) {
	t.Helper()
	if err := c.Put(mr); err != nil {
		t.Fatal(err)
	}
}

// use calls Get and Put.
func use(t testing.TB, c *Cache, d *testDevice, mem []byte, acc rdma.Access) rdma.MR {
	t.Helper()
	mr := get(t, c, d, mem, acc)
	put(t, c, mr)
	return mr
}

// wantStats compares the counters with want, and Bytes and Entries with the device.
func wantStats(t testing.TB, c *Cache, d *testDevice, want Stats) {
	t.Helper()
	got := c.Stats()
	for _, n := range []struct {
		name      string
		got, want uint64
	}{
		{"hits", got.Hits, want.Hits}, {"misses", got.Misses, want.Misses}, {"passing", got.Passing, want.Passing},
		{"widened", got.Widened, want.Widened}, {"evicted", got.Evicted, want.Evicted}, {"retired", got.Retired, want.Retired},
		{"dropped", got.Dropped, want.Dropped}, {"failed", got.Failed, want.Failed}, {"retried", got.Retried, want.Retried},
		{"stuck", got.Stuck, want.Stuck}, {"held", uint64(got.Held), uint64(want.Held)}, {"aged", got.Aged, want.Aged},
	} {
		if n.got != n.want {
			t.Errorf("%s: %d, want %d", n.name, n.got, n.want)
		}
	}
	if got.Bytes != d.locked || got.Entries != len(d.live) {
		t.Errorf("the cache counts %d bytes in %d regions, the device %d in %d", got.Bytes, got.Entries, d.locked, len(d.live))
	}
}
