package shm

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/shmem"
)

// resolveProcess maps the segment of another process and determines whether its memory can
// be accessed.
func (d *Device) resolveProcess(p *peer, a address) error {
	if a.heap {
		return fmt.Errorf("shm: peer %d is a goroutine of a process with a Host, but this device was opened without one; open both with or both without", a.index)
	}
	f, err := shmem.OpenOf(a.pid, a.fd, a.path)
	if err != nil {
		return fmt.Errorf("shm: peer %d: %w", a.index, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("shm: segment of peer %d: %w", a.index, err)
	}
	if info.Size() < pageBytes {
		return errWrongSegment(a, "it is too short")
	}
	mem, err := shmem.Map(int(f.Fd()), int(info.Size()))
	if err != nil {
		return fmt.Errorf("shm: peer %d: %w", a.index, err)
	}
	h := headerOf(mem)
	geo := h.geo // a copy: the owner could change what was checked
	why := ""
	switch {
	case h.magic.Load() != segmentMagic:
		why = "it is not a segment"
	case h.nonce.Load() != a.nonce:
		why = "its nonce differs: the process number was reused"
	case geo.version != layoutVersion:
		why = fmt.Sprintf("its layout is version %d, ours %d; run all ranks from the same build", geo.version, layoutVersion)
	case !geo.valid() || geo.parts().end > len(mem):
		why = "its geometry does not fit its size"
	}
	if why != "" {
		shmem.Unmap(mem)
		return errWrongSegment(a, why)
	}
	p.seg = layOut(mem, geo)
	p.fenced = h.flags&flagMembarrier == 0
	p.reach = reachMessages
	if owner, err := os.Stat(shmem.ProcPath(a.pid, a.fd)); err != nil || !os.SameFile(owner, info) {
		p.pid = 0 // another PID namespace: the number is meaningless here
		return nil
	}
	p.pidfd, _ = unix.PidfdOpen(a.pid, 0) // -1 before Linux 5.3
	if d.copies.kernel && probeReach(p) {
		p.reach = reachKernel
	}
	return nil
}

func errWrongSegment(a address, why string) error {
	return fmt.Errorf("shm: file %[2]d of process %[1]d is not the segment of peer %[3]d: %s", a.pid, a.fd, a.index, why)
}

func (g geometry) valid() bool {
	power := func(n uint32) bool { return n != 0 && n&(n-1) == 0 }
	return power(g.cells) && power(g.ringCells) && power(g.ringBytes) && g.cells <= 1<<20 && g.ringCells <= 1<<20 && g.ringBytes <= 1<<30 &&
		g.smallBlocks <= 64 && g.largeBlocks <= 64 && g.rings <= maxRings && g.slots <= 1<<16
}

// probeReach reads the peer's nonce from its memory. Whether the kernel permits it depends
// on users, capabilities, Yama and seccomp, so it has to be tried.
func probeReach(p *peer) bool {
	var got, want [8]byte
	h := p.seg.head
	putUint64(want[:], h.nonce.Load())
	at := h.base.Load() + 8 // nonce follows magic
	n, errno := processRead(p.pid, got[:], at)
	return errno == 0 && n == len(got) && bytes.Equal(got[:], want[:])
}

// processAlive reports whether the process exists. A pidfd also detects a process that has
// ended but was not waited for, and is not confused by a reused number.
func processAlive(p *peer) bool {
	if p.pid == 0 {
		return shmem.FileLocked(p.path)
	}
	if p.pidfd >= 0 {
		fds := []unix.PollFd{{Fd: int32(p.pidfd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		return err != nil || n == 0
	}
	if unix.Kill(p.pid, 0) == unix.ESRCH {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	i := bytes.LastIndexByte(stat, ')')
	return err != nil || i < 0 || i+2 >= len(stat) || stat[i+2] != 'Z'
}

func unmapPeer(p *peer) error {
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
	}
	return shmem.Unmap(p.seg.mem)
}
