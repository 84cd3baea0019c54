package shm

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/muster-mpi/muster/internal/shmem"
	"github.com/muster-mpi/muster/rdma"
	"golang.org/x/sys/unix"
)

// segmentFile is the file behind the segment that this rank owns. It stays open, because
// peers open it through /proc, and because its lock shows that the owner exists.
type segmentFile struct {
	file *os.File
	path string // "" for a memfd
}

// openProcess creates the segment: a memfd, which no mount limits and which uses memory
// only where it is touched, or else a file.
func (d *Device) openProcess() error {
	g := d.cfg.size()
	var err, memfdErr error
	if !d.cfg.NoMemfd {
		d.owner.file, memfdErr = shmem.CreateMemfd("shm", g.parts().end)
	}
	if d.owner.file == nil {
		d.owner, g, err = makeFile(&d.cfg, d.nonce, g)
		if err != nil {
			return fmt.Errorf("shm: %w", errors.Join(err, memfdErr))
		}
	}
	mem, err := shmem.Map(int(d.owner.file.Fd()), g.parts().end)
	if err != nil {
		d.owner.file.Close()
		return fmt.Errorf("shm: %w", err)
	}
	d.seg = layOut(mem, g)
	if !d.cfg.NoProcessVM {
		permitReach()
	}
	d.addr = rdma.Addr(address{index: d.index, nonce: d.nonce, pid: os.Getpid(),
		fd: int(d.owner.file.Fd()), path: d.owner.path}.String())
	d.wakeup.membarrier = shmem.GlobalBarrierAvailable()
	if d.wakeup.membarrier {
		// Registration waits for a grace period of the kernel (RCU), some milliseconds, which
		// usually pass while the rank waits for the others to start. Resolve waits for the
		// rest: a fence costs a fifth of the latency of a short message. On a machine that
		// has far more to do than cores, a grace period was seen to last 45 s: after
		// registerLimit messages have a fence until it has ended.
		f := &d.fences
		f.decided, f.decideBy = make(chan struct{}), time.Now().Add(registerLimit)
		go func() {
			if shmem.RegisterGlobal() {
				f.unneeded.Store(true)
			}
			close(f.decided)
		}()
	}
	return nil
}

// registerLimit is how long Resolve may wait for the registration, from Open on.
const registerLimit = 200 * time.Millisecond

// makeFile creates the segment in a directory of a memory file system. Each rank uses at
// most its share of the free space.
func makeFile(cfg *Config, nonce uint64, g geometry) (segmentFile, geometry, error) {
	shmem.RemoveOrphans(cfg.ShmDir)
	var fs unix.Statfs_t
	if err := unix.Statfs(cfg.ShmDir, &fs); err != nil {
		return segmentFile{}, g, fmt.Errorf("%s: %w; mount a tmpfs there or name another directory in ShmDir", cfg.ShmDir, err)
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	g.slots = 4096
	g, ok := g.fit(free / int64(cfg.Peers))
	if !ok {
		return segmentFile{}, g, fmt.Errorf("%s has %d KB free for %d ranks, and each needs %d KB; enlarge it (docker: --shm-size) or allow memfd_create",
			cfg.ShmDir, free>>10, cfg.Peers, g.parts().end>>10)
	}
	f, path, err := shmem.CreateFile(cfg.ShmDir, "", nonce, g.parts().end)
	if err != nil {
		return segmentFile{}, g, fmt.Errorf("%w; name a writable directory in ShmDir", err)
	}
	return segmentFile{f, path}, g, nil
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

// remove unmaps the segment and deletes its file.
func (s *segmentFile) remove(seg *segment) error {
	var errs []error
	errs = append(errs, shmem.Unmap(seg.mem))
	if s.path != "" {
		errs = append(errs, os.Remove(s.path))
	}
	errs = append(errs, s.file.Close())
	return errors.Join(errs...)
}
