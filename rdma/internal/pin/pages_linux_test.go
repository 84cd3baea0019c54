package pin

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// lockedKB returns how much memory this process has locked, as the kernel reports it.
func lockedKB(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmLck:"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("/proc/self/status has no VmLck")
	return 0
}

func pages(t *testing.T, n int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, n*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return mem
}

func TestPageLockedUntilLastUnlock(t *testing.T) {
	if unix.Getpagesize() != 4096 {
		t.Skip("the test assumes pages of 4096 bytes")
	}
	mem := pages(t, 8)
	before := lockedKB(t)
	want := func(kb int) {
		t.Helper()
		if got := lockedKB(t) - before; got != kb {
			t.Errorf("%d KB are locked, want %d", got, kb)
		}
	}
	var p Pages
	hold := func(lo, hi int) {
		t.Helper()
		if err := p.Lock(mem[lo:hi], rdma.MemOf(mem[lo:]).Addr()); err != nil {
			t.Fatal(err)
		}
	}
	end := func(lo, hi int) { p.Unlock(mem[lo:hi], rdma.MemOf(mem[lo:]).Addr()) }
	hold(100, 200)
	want(4)
	hold(4000, 3*4096+1) // pages 0 to 3
	want(16)
	hold(2*4096, 2*4096+8) // page 2
	want(16)
	end(4000, 3*4096+1)
	want(8)
	end(100, 200)
	want(4)
	end(2*4096, 2*4096+8)
	want(0)
	if p.Len() != 0 {
		t.Errorf("%d pages are counted after all were unlocked", p.Len())
	}
}

func TestErrorNamesLimit(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		t.Skip("root has no limit")
	}
	low := unix.Rlimit{Cur: 4096, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &low); err != nil {
		t.Skipf("the limit cannot be set: %v", err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old) }()
	mem := pages(t, 16)
	var p Pages
	err := p.Lock(mem, rdma.MemOf(mem).Addr())
	if !errors.Is(err, rdma.ErrNoResources) || !strings.Contains(err.Error(), "ulimit -l") {
		t.Errorf("locking more than the limit returns %v", err)
	}
}
