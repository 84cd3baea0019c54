package regcache

// A hazard specific to Go: registered memory is collected, its pages return to the system,
// and a new buffer gets the same address with other pages. A registration that still exists
// refers to the old pages.
//
// The device here pins pages as an adapter does: vmsplice puts references to them into a
// pipe. Reading the pipe later returns the current content of the pages, whether or not they
// still belong to the address.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
	"weak"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// pageDevice registers pages.
type pageDevice struct {
	pipes   map[uint64]*pagePipe // by RKey
	nextKey uint64
}

type pagePipe struct {
	fds  [2]int
	base uint64
	size int
}

func newPipe(size int) (fds [2]int, err error) {
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return fds, err
	}
	if _, err := unix.FcntlInt(uintptr(fds[1]), unix.F_SETPIPE_SZ, size); err != nil {
		closePipe(fds)
		return fds, fmt.Errorf("a pipe for %d bytes: %w", size, err)
	}
	return fds, nil
}

func closePipe(fds [2]int) {
	_ = unix.Close(fds[0])
	_ = unix.Close(fds[1])
}

func (d *pageDevice) Register(mem []byte, _ rdma.Access) (rdma.MR, error) {
	fds, err := newPipe(len(mem))
	if err != nil {
		return rdma.MR{}, err
	}
	iov := unix.Iovec{Base: &mem[0]}
	iov.SetLen(len(mem))
	if n, err := unix.Vmsplice(fds[1], []unix.Iovec{iov}, unix.SPLICE_F_NONBLOCK); err != nil || n != len(mem) {
		closePipe(fds)
		return rdma.MR{}, fmt.Errorf("pin %d bytes: %d pinned, %w", len(mem), n, err)
	}
	d.nextKey++
	base := rdma.MemOf(mem).Addr()
	d.pipes[d.nextKey] = &pagePipe{fds, base, len(mem)}
	return rdma.MR{Base: base, Len: uint64(len(mem)), RKey: d.nextKey}, nil
}

func (d *pageDevice) Deregister(mr rdma.MR) error {
	p := d.pipes[mr.RKey]
	if p == nil {
		return fmt.Errorf("key %d is not registered", mr.RKey)
	}
	closePipe(p.fds)
	delete(d.pipes, mr.RKey)
	return nil
}

// read simulates a peer's read through the adapter.
func (d *pageDevice) read(mr rdma.MR) ([]byte, error) {
	p := d.pipes[mr.RKey]
	if p == nil {
		return nil, fmt.Errorf("key %d is not registered", mr.RKey)
	}
	fds, err := newPipe(p.size)
	if err != nil {
		return nil, err
	}
	defer closePipe(fds)
	if n, err := unix.Tee(p.fds[0], fds[1], p.size, unix.SPLICE_F_NONBLOCK); err != nil || int(n) != p.size {
		return nil, fmt.Errorf("tee %d bytes: %d copied, %w", p.size, n, err)
	}
	all := make([]byte, p.size)
	for at := 0; at < len(all); {
		n, err := unix.Read(fds[0], all[at:])
		if err != nil || n == 0 {
			return nil, fmt.Errorf("read byte %d of %d: %w", at, len(all), err)
		}
		at += n
	}
	return all[mr.Base-p.base:][:mr.Len], nil
}

// registry provides registrations.
type registry interface {
	Get(mem []byte, acc rdma.Access) (rdma.MR, error)
	Put(mr rdma.MR) error
}

// forgetful caches addresses without keeping the memory alive: the bug.
type forgetful struct {
	dev   Device
	known map[uint64]rdma.MR
}

func (f *forgetful) Get(mem []byte, acc rdma.Access) (rdma.MR, error) {
	addr := rdma.MemOf(mem).Addr()
	if mr, ok := f.known[addr]; ok && mr.Len == uint64(len(mem)) {
		return mr, nil
	}
	mr, err := f.dev.Register(mem, acc)
	f.known[addr] = mr
	return mr, err
}

func (f *forgetful) Put(rdma.MR) error { return nil }

// outcome counts the results of rounds of allocating, sending and dropping a buffer.
type outcome struct {
	wrong  int // a peer read other data than the buffer held
	reused int // a new buffer got the address of an old one
}

const bufferSize = 256 << 10

func fill(mem []byte, round uint64) {
	for at := 0; at < len(mem); at += 8 {
		binary.LittleEndian.PutUint64(mem[at:], round<<32|uint64(at)|1)
	}
}

// oneRound uses a new buffer twice, with other contents the second time, and returns its
// address.
func oneRound(t *testing.T, reg registry, dev *pageDevice, round uint64) (addr uint64, wrong bool) {
	t.Helper()
	mem := make([]byte, bufferSize)
	for use := range uint64(2) {
		fill(mem, 2*round+use)
		mr, err := reg.Get(mem, rdma.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		got, err := dev.read(mr)
		if err != nil {
			t.Fatal(err)
		}
		wrong = wrong || !bytes.Equal(got, mem)
		if err := reg.Put(mr); err != nil {
			t.Fatal(err)
		}
	}
	return rdma.MemOf(mem).Addr(), wrong
}

// rounds runs until enough is true, at most 200 rounds.
func rounds(t *testing.T, reg registry, dev *pageDevice, between func(), enough func(outcome) bool) (o outcome) {
	t.Helper()
	seen := map[uint64]bool{}
	for round := range uint64(200) {
		addr, wrong := oneRound(t, reg, dev, round)
		if seen[addr] {
			o.reused++
		}
		if wrong {
			o.wrong++
		}
		seen[addr] = true
		debug.FreeOSMemory() // collects, and returns free pages to the system
		between()
		if enough(o) {
			break
		}
	}
	return o
}

func newPageDevice(t *testing.T) *pageDevice {
	t.Helper()
	d := &pageDevice{pipes: map[uint64]*pagePipe{}}
	t.Cleanup(func() {
		for _, p := range d.pipes {
			closePipe(p.fds)
		}
	})
	mr, err := d.Register(make([]byte, bufferSize), rdma.RemoteRead)
	if err != nil {
		t.Skipf("this system does not support pages in a pipe: %v", err)
	}
	if err := d.Deregister(mr); err != nil {
		t.Fatal(err)
	}
	return d
}

// A cache that does not keep memory alive reads freed pages: the next test can detect it.
func TestUnpinnedCacheReadsFreedPages(t *testing.T) {
	dev := newPageDevice(t)
	naive := &forgetful{dev, map[uint64]rdma.MR{}}
	o := rounds(t, naive, dev, func() {}, func(o outcome) bool { return o.wrong > 0 })
	if o.wrong == 0 {
		t.Fatalf("no wrong read in 200 rounds (%d addresses were reused): the test below proves nothing", o.reused)
	}
	t.Logf("%d wrong reads after %d addresses were reused", o.wrong, o.reused)
}

func TestReusedAddressReadsNewPages(t *testing.T) {
	dev := newPageDevice(t)
	c := New(dev, Config{Generation: 1, Ages: 2})
	o := rounds(t, c, dev, func() { nextGeneration(t, c) }, func(o outcome) bool { return o.wrong > 0 || o.reused >= 20 })
	if o.wrong > 0 {
		t.Errorf("a peer read other data than the buffer held in %d of %d cases of a reused address", o.wrong, o.reused)
	}
	s := c.Stats()
	if o.reused < 20 || s.Aged < 20 || s.Hits == 0 {
		t.Errorf("%d reused addresses, %d regions evicted by age, %d hits: want at least 20, 20 and 1", o.reused, s.Aged, s.Hits)
	}
	if s.Entries > 10 {
		t.Errorf("%d unused buffers are kept", s.Entries)
	}
	if err := c.Close(); err != nil || len(dev.pipes) != 0 {
		t.Errorf("Close: %v, %d registrations left", err, len(dev.pipes))
	}
}

// The memory of a region must not be collected, or its address could be reused.
func TestRegionKeepsMemoryAlive(t *testing.T) {
	dev := newPageDevice(t)
	c := New(dev, Config{Generation: time.Hour})
	alive := func() weak.Pointer[[bufferSize]byte] {
		mem := new([bufferSize]byte)
		mr, err := c.Get(mem[:], rdma.RemoteRead)
		if err != nil || c.Put(mr) != nil {
			t.Fatal("register:", err)
		}
		return weak.Make(mem)
	}()
	for range 3 {
		runtime.GC()
	}
	if alive.Value() == nil {
		t.Fatal("the memory of a region in the cache was collected")
	}
	c.Flush()
	eventually(t, "the memory of an evicted region is collected", func() bool {
		runtime.GC()
		return alive.Value() == nil
	})
}

func TestGenerations(t *testing.T) {
	c := New(newTestDevice(), Config{Generation: 1})
	for range 3 {
		before := c.gens.now()
		eventually(t, "a collection is counted", func() bool { runtime.GC(); return c.gens.now() != before })
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	// On a busy machine a pending cleanup may run later, but there is only one.
	var counted uint32
	for range 3 {
		time.Sleep(10 * time.Millisecond) // for a pending cleanup
		before := c.gens.now()
		for range 3 {
			runtime.GC()
			time.Sleep(time.Millisecond) // for a cleanup, of which there must be none
		}
		if counted = c.gens.now() - before; counted == 0 {
			break
		}
	}
	if counted != 0 {
		t.Errorf("%d collections were counted after Close", counted)
	}
	runtime.KeepAlive(c)
	c = New(newTestDevice(), Config{Generation: 1})
	gens := weak.Make(c.gens)
	c = nil
	eventually(t, "an unreachable cache is collected", func() bool { runtime.GC(); return gens.Value() == nil })
}

func TestFrequentCollectionsKeepBuffers(t *testing.T) {
	d := newTestDevice()
	c := New(d, Config{Generation: time.Hour})
	mem := make([]byte, 1000)
	for range 10 {
		use(t, c, d, mem, read)
		runtime.GC()
		time.Sleep(time.Millisecond) // for the cleanup
	}
	wantStats(t, c, d, Stats{Hits: 9, Misses: 1})
}

// nextGeneration waits until the runtime has run the cleanup of the last collection.
func nextGeneration(t *testing.T, c *Cache) {
	t.Helper()
	before := c.aged
	eventually(t, "a collection is counted", func() bool { return c.gens.now() != before })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within ten seconds: %s", what)
		}
	}
}
