package shm

import (
	"syscall"

	"github.com/muster-mpi/muster/rdma"
)

// moveByKernel moves at most one system call's worth, perhaps less.
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
		// Allowed when probed, refused now: from here on by message.
		p.reach = reachMessages
		return 0, statusRefused
	case syscall.EINTR, syscall.EAGAIN, syscall.ENOMEM:
		return 0, rdma.StatusOK // again at the next poll
	}
	return 0, rdma.StatusFault
}
