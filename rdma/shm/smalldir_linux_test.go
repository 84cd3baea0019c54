package shm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/shmem"
	"github.com/muster-mpi/muster/rdma"
	"golang.org/x/sys/unix"
)

// Segments as files, with little space.

// smallDir mounts a file system of the given size.
func smallDir(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("muster-test", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a small tmpfs (that needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestSmallShmDirNoBusError(t *testing.T) {
	dir := smallDir(t, "2m")
	c := start(t, part{Scenario: "flood", N: 4, Count: 300, Config: Config{NoMemfd: true, ShmDir: dir}}, false)
	c.finish(60 * time.Second)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("segments were not removed: %v, %v", left, err)
	}
}

func TestTooSmallShmDirError(t *testing.T) {
	dir := smallDir(t, "64k")
	_, err := Open(Config{NoMemfd: true, ShmDir: dir, Peers: 4})
	if err == nil || !strings.Contains(err.Error(), "--shm-size") {
		t.Errorf("64 KB for four ranks are too few, and the error should name a remedy; got: %v", err)
	}
}

func TestFitKeepsWithinItsShare(t *testing.T) {
	for _, peers := range []int{2, 4, 64} {
		cfg := Config{Peers: peers}
		for bytes := int64(200 << 10); bytes < 64<<20; bytes = bytes * 3 / 2 {
			g, ok := cfg.size().fit(bytes)
			if !ok || int64(g.parts().end) > bytes || !g.valid() {
				t.Errorf("%d ranks: a segment for %d KB takes %d KB (ok %v, %+v)", peers, bytes>>10, g.parts().end>>10, ok, g)
			}
		}
	}
	if g, ok := (&Config{}).size().fit(50 << 10); ok {
		t.Errorf("50 KB are not enough for any segment, but fit made %+v", g)
	}
}

func TestOrphanedSegmentsAreSwept(t *testing.T) {
	dir := t.TempDir()
	orphan := filepath.Join(dir, shmem.FilePrefix+"1-0123456789abcdef")
	if err := os.WriteFile(orphan, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(orphan, long, long); err != nil {
		t.Fatal(err)
	}
	live, err := openRank(Config{NoMemfd: true, ShmDir: dir}, rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	defer live.dev.Close()
	if err := os.Chtimes(live.dev.owner.path, long, long); err != nil {
		t.Fatal(err)
	}
	other, err := openRank(Config{NoMemfd: true, ShmDir: dir, Index: 1}, rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.dev.Close()
	if _, err := os.Stat(orphan); !os.IsNotExist(err) {
		t.Errorf("a segment whose owner is dead should be removed by the next Open: %v", err)
	}
	if _, err := os.Stat(live.dev.owner.path); err != nil {
		t.Errorf("a segment whose owner is alive should be left alone, however old: %v", err)
	}
}

// A rank in another PID namespace shares the directory, but its process number is
// meaningless: it is reached by messages, and its lock shows that it is alive.
func TestPeerWithoutPID(t *testing.T) {
	dir := t.TempDir()
	a, err := openRank(Config{NoMemfd: true, ShmDir: dir}, rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	defer a.dev.Close()
	b, err := openRank(Config{NoMemfd: true, ShmDir: dir, Index: 1}, rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	there, err := parseAddress(b.qp.Addr())
	if err != nil {
		t.Fatal(err)
	}
	there.pid = 1 // another process
	if _, err := a.dev.Resolve(rdma.Addr(there.String())); err != nil {
		t.Fatalf("the path alone should suffice: %v", err)
	}
	if p := a.dev.peer(1); p.reach != reachMessages || p.pid != 0 {
		t.Errorf("a process that is not the owner must not be accessed, got %+v", p)
	}
	if !a.dev.Alive(1) {
		t.Error("the owner holds its lock, so it is alive")
	}
	// It ends without Close: the lock is released with the last use of the file.
	path := b.dev.owner.path
	if err := errors.Join(unix.Munmap(b.dev.seg.mem), b.dev.owner.file.Close()); err != nil {
		t.Fatal(err)
	}
	if a.dev.Alive(1) {
		t.Error("the lock is free, so the owner is dead")
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}
