package regcache

// Random use of a cache, compared with a device that tracks registrations and a list of
// uses. At any time: a result of Get is registered and stays so until Put; a range that a
// cached region covers is a hit; the limits hold as soon as nothing in use prevents it; the
// counters agree.

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

type heldUse struct {
	mem []byte
	mr  rdma.MR
	acc rdma.Access
}

type model struct {
	t     testing.TB
	d     *testDevice
	c     *Cache
	arena []byte
	held  []heldUse
	rnd   *rand.Rand
}

const (
	modelBytes   = 1 << 15
	modelEntries = 24
)

func newModel(t testing.TB, seed uint64) *model {
	m := &model{t: t, d: newTestDevice(), rnd: rand.New(rand.NewPCG(seed, 1)), arena: make([]byte, 1<<16)}
	m.c = New(m.d, Config{Bytes: modelBytes, Entries: modelEntries, Generation: time.Hour})
	return m
}

// step performs one action, selected by the three numbers.
func (m *model) step(what, at, size uint16) {
	lo := int(at)
	hi := min(lo+1+int(size)>>(what>>8&7), len(m.arena))
	mem := m.arena[lo:hi]
	acc := rdma.Access(1 + what>>11%3)
	switch what & 15 {
	default:
		m.get(mem, acc)
	case 2, 3, 4, 5, 6, 7, 8, 9:
		if len(m.held) > 0 {
			m.put(int(at) % len(m.held))
		}
	case 10:
		m.drop(mem)
	case 11:
		m.c.gens.n.Add(1)
		m.c.Age()
	case 12:
		if what>>4&15 == 0 {
			m.c.Flush()
		}
	case 13:
		m.get(mem[:0], acc)
	case 14:
		m.d.maxLocked = m.d.locked + int64(size)
		m.refusedGet(mem, acc)
		m.d.maxLocked = 0
	}
	m.check()
}

func (m *model) get(mem []byte, acc rdma.Access) {
	before := m.c.Stats()
	covered := m.covered(mem, acc)
	mr := get(m.t, m.c, m.d, mem, acc)
	if after := m.c.Stats(); covered && after.Hits != before.Hits+1 {
		m.t.Fatalf("a region in the index covers %d bytes with rights %03b, but there was no hit", len(mem), acc)
	} else if !covered && after.Misses != before.Misses+1 {
		m.t.Fatalf("no region in the index covers %d bytes with rights %03b, but there was no miss", len(mem), acc)
	}
	m.held = append(m.held, heldUse{mem, mr, acc})
}

// refusedGet is a Get that the device may refuse.
func (m *model) refusedGet(mem []byte, acc rdma.Access) {
	mr, err := m.c.Get(mem, acc)
	if err != nil {
		return
	}
	if err := m.d.check(mr, mem, acc); err != nil {
		m.t.Fatal(err)
	}
	m.held = append(m.held, heldUse{mem, mr, acc})
}

// covered computes from the queue whether the index must find a region.
func (m *model) covered(mem []byte, acc rdma.Access) bool {
	lo := rdma.MemOf(mem).Addr()
	for r := m.c.queue.first; r != nil; r = r.next {
		if len(mem) > 0 && r.lo <= lo && lo+uint64(len(mem)) <= r.hi && acc&^r.acc == 0 {
			return true
		}
	}
	return false
}

func (m *model) put(i int) {
	put(m.t, m.c, m.held[i].mr)
	m.held = append(m.held[:i], m.held[i+1:]...)
}

func (m *model) drop(mem []byte) {
	err := m.c.Drop(mem)
	lo, hi := rdma.MemOf(mem).Addr(), rdma.MemOf(mem).Addr()+uint64(len(mem))
	inUse := map[uint64]bool{}
	for _, h := range m.held {
		inUse[h.mr.RKey] = true
	}
	busy := false
	for _, r := range m.d.live {
		if r.lo < hi && lo < r.hi {
			busy = true
			if !inUse[r.mr.RKey] {
				m.t.Fatal("dropped memory is still registered without a user")
			}
		}
	}
	if busy != (err != nil) {
		m.t.Fatalf("Drop returns %v; memory in use: %v", err, busy)
	}
}

func (m *model) check() {
	users := map[uint64]bool{}
	for _, h := range m.held {
		if err := m.d.check(h.mr, h.mem, h.acc); err != nil {
			m.t.Fatalf("a region in use: %v", err)
		}
		users[h.mr.RKey] = true
	}
	s := m.c.Stats()
	if s.Bytes != m.d.locked || s.Entries != len(m.d.live) || s.Held != len(users) {
		m.t.Fatalf("%+v, but the device has %d bytes in %d regions, %d of them in use", s, m.d.locked, len(m.d.live), len(users))
	}
	idle, bytes := 0, int64(0)
	for r := m.c.queue.first; r != nil; r = r.next {
		bytes += int64(r.hi - r.lo)
		if r.refs == 0 {
			idle++
		}
	}
	if idle != m.c.idle || bytes != m.c.bytes {
		m.t.Fatalf("%d regions and %d bytes are counted, the queue has %d and %d", m.c.idle, m.c.bytes, idle, bytes)
	}
	if idle > 0 && (bytes > modelBytes || m.c.queue.n > modelEntries) {
		m.t.Fatalf("%d bytes in %d regions, %d of them unused: the limits are %d and %d", bytes, m.c.queue.n, idle, modelBytes, modelEntries)
	}
}

func (m *model) finish() {
	for len(m.held) > 0 {
		m.put(0)
		m.check()
	}
	if err := m.c.Close(); err != nil {
		m.t.Fatal(err)
	}
	if len(m.d.live) != 0 {
		m.t.Fatalf("%d regions are left", len(m.d.live))
	}
}

func TestModel(t *testing.T) {
	steps := 30_000
	if testing.Short() {
		steps = 3000
	}
	for seed := range uint64(4) {
		m := newModel(t, seed)
		for range steps {
			m.step(uint16(m.rnd.Uint32()), uint16(m.rnd.Uint32()), uint16(m.rnd.Uint32()))
		}
		m.finish()
		if s := m.c.Stats(); s.Hits == 0 || s.Evicted == 0 || s.Aged == 0 || s.Retired == 0 || s.Widened == 0 || s.Retried == 0 || s.Passing == 0 {
			t.Errorf("seed %d does not cover everything: %+v", seed, s)
		}
	}
}

func FuzzCache(f *testing.F) {
	f.Add([]byte("some requests that overlap and some that do not, and a few that are given back"))
	f.Fuzz(func(t *testing.T, script []byte) {
		m := newModel(t, 0)
		for ; len(script) >= 6; script = script[6:] {
			word := func(i int) uint16 { return uint16(script[i])<<8 | uint16(script[i+1]) }
			m.step(word(0), word(2), word(4))
		}
		m.finish()
	})
}
