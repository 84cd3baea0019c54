package shm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/membarrier"
	"github.com/muster-mpi/muster/rdma"
	"golang.org/x/sys/unix"
)

// segmentFile is the file behind the segment that this rank owns. It stays open, because
// peers open it through /proc, and because its lock shows that the owner exists.
type segmentFile struct {
	file *os.File
	path string // "" for a memfd
}

const (
	filePrefix = "muster-"
	// orphanAge protects files that are just being created from sweep.
	orphanAge = time.Minute
)

// openProcess creates the segment: a memfd, which no mount limits and which uses memory
// only where it is touched, or else a file.
func (d *Device) openProcess() error {
	g := d.cfg.size()
	var err, memfdErr error
	if !d.cfg.NoMemfd {
		d.owner.file, memfdErr = makeMemfd(g)
	}
	if d.owner.file == nil {
		d.owner, g, err = makeFile(&d.cfg, d.nonce, g)
		if err != nil {
			return errors.Join(err, memfdErr)
		}
	}
	mem, err := mapFile(d.owner.file, g.parts().end)
	if err != nil {
		d.owner.file.Close()
		return fmt.Errorf("shm: cannot map a segment of %d bytes: %w; raise the limit on address space (ulimit -v)", g.parts().end, err)
	}
	d.seg = layOut(mem, g)
	if !d.cfg.NoProcessVM {
		permitReach()
	}
	d.addr = rdma.Addr(address{index: d.index, nonce: d.nonce, pid: os.Getpid(),
		fd: int(d.owner.file.Fd()), path: d.owner.path}.String())
	d.wakeup.membarrier = membarrier.GlobalAvailable()
	if d.wakeup.membarrier {
		// Registration waits for a grace period of the kernel (RCU), some milliseconds, which
		// usually pass while the rank waits for the others to start. Resolve waits for the
		// rest: a fence costs a fifth of the latency of a short message. On a machine that
		// has far more to do than cores, a grace period was seen to last 45 s: after
		// registerLimit messages have a fence until it has ended.
		d.registered, d.registerBy = make(chan struct{}), time.Now().Add(registerLimit)
		go func() {
			if membarrier.RegisterGlobal() {
				d.unfenced.Store(true)
			}
			close(d.registered)
		}()
	}
	return nil
}

// registerLimit is how long Resolve may wait for the registration, from Open on.
const registerLimit = 200 * time.Millisecond

func makeMemfd(g geometry) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(filePrefix+"shm", flags|unix.MFD_NOEXEC_SEAL)
	if err != nil { // before Linux 6.3
		fd, err = unix.MemfdCreate(filePrefix+"shm", flags)
	}
	if err != nil {
		return nil, fmt.Errorf("shm: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), filePrefix+"shm")
	if err := f.Truncate(int64(g.parts().end)); err != nil {
		f.Close()
		return nil, fmt.Errorf("shm: cannot size a memfd: %w", err)
	}
	// No one can make it shorter than the peers' mappings.
	unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return f, nil
}

// makeFile creates the segment in a directory of a memory file system. Its pages are
// reserved at once: a page that the mount cannot provide on access would cause a SIGBUS.
// Each rank uses at most its share of the free space.
func makeFile(cfg *Config, nonce uint64, g geometry) (segmentFile, geometry, error) {
	sweep(cfg.ShmDir)
	var fs unix.Statfs_t
	if err := unix.Statfs(cfg.ShmDir, &fs); err != nil {
		return segmentFile{}, g, fmt.Errorf("shm: %s: %w; mount a tmpfs there or name another directory in ShmDir", cfg.ShmDir, err)
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	g.slots = 4096
	g, ok := g.fit(free / int64(cfg.Peers))
	if !ok {
		return segmentFile{}, g, fmt.Errorf("shm: %s has %d KB free for %d ranks, and each needs %d KB; enlarge it (docker: --shm-size) or allow memfd_create",
			cfg.ShmDir, free>>10, cfg.Peers, g.parts().end>>10)
	}
	path := filepath.Join(cfg.ShmDir, fmt.Sprintf("%s%d-%016x", filePrefix, os.Getpid(), nonce))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return segmentFile{}, g, fmt.Errorf("shm: cannot create a segment: %w; name a writable directory in ShmDir", err)
	}
	s := segmentFile{file: f, path: path}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = unix.Fallocate(int(f.Fd()), 0, 0, int64(g.parts().end))
	}
	if err != nil {
		f.Close()
		os.Remove(path)
		return segmentFile{}, g, fmt.Errorf("shm: cannot reserve %d KB in %s: %w; enlarge it (docker: --shm-size)", g.parts().end>>10, cfg.ShmDir, err)
	}
	return s, g, nil
}

// fit shrinks a geometry until it needs at most the given bytes; ok is false if even the
// smallest needs more. Rings go first: without them messages use the shared queue.
func (g geometry) fit(bytes int64) (geometry, bool) {
	for int64(g.parts().end) > bytes {
		switch {
		case g.ringBytes > 128<<10:
			g.ringBytes, g.ringCells = 128<<10, 256
		case g.rings > 2:
			g.rings /= 2
		case g.largeBlocks > 8:
			g.largeBlocks /= 2
		case g.slots > 512:
			g.slots /= 2
		case g.rings > 0:
			g.rings--
		case g.largeBlocks > 2:
			g.largeBlocks /= 2
		case g.cells > 256:
			g.cells /= 2
		case g.smallBlocks > 8:
			g.smallBlocks /= 2
		case g.slots > slotsPerChunk:
			g.slots /= 2
		default:
			return g, false
		}
	}
	return g, true
}

// sweep removes segments whose owners were killed: their locks are free.
func sweep(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // creating the segment will report why
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), filePrefix) || !info.Mode().IsRegular() || time.Since(info.ModTime()) < orphanAge {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			os.Remove(path)
		}
		f.Close()
	}
}

func mapFile(f *os.File, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// remove unmaps the segment and deletes its file.
func (s *segmentFile) remove(seg *segment) error {
	var errs []error
	errs = append(errs, unix.Munmap(seg.mem))
	if s.path != "" {
		errs = append(errs, os.Remove(s.path))
	}
	errs = append(errs, s.file.Close())
	return errors.Join(errs...)
}
