package shm

import (
	"syscall"

	"github.com/muster-mpi/muster/rdma"
	"golang.org/x/sys/unix"
)

// permitReach lets the other ranks access this process where Yama's ptrace_scope is 1,
// which otherwise permits only ancestors. The ranks need not have a common ancestor that
// is known here, so it permits every process of the user, as without Yama. Without Yama
// the call fails and has no effect. NoProcessVM leaves Yama's rule unchanged.
func permitReach() { _ = unix.Prctl(unix.PR_SET_PTRACER, unix.PR_SET_PTRACER_ANY, 0, 0, 0) }

// moveByKernel copies at most what one system call may, perhaps less.
func (d *Device) moveByKernel(p *peer, write bool, local []byte, remote uint64) (int, rdma.Status) {
	var n int
	var errno syscall.Errno
	if write {
		n, errno = processWrite(p.pid, local, remote)
	} else {
		n, errno = processRead(p.pid, local, remote)
	}
	switch errno {
	case 0:
		return n, rdma.StatusOK
	case syscall.ESRCH:
		p.gone = true
		return 0, rdma.StatusPeerGone
	case syscall.EPERM, syscall.EACCES, syscall.ENOSYS:
		// Permitted when probed, refused now: use messages from here on.
		p.reach = reachMessages
		return 0, statusRefused
	case syscall.EINTR, syscall.EAGAIN, syscall.ENOMEM:
		return 0, rdma.StatusOK // retry at the next poll
	}
	return 0, rdma.StatusFault
}
