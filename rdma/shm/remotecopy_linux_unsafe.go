//go:build linux

package shm

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// One raw system call copies at most this much: Go's garbage collector has to wait for it,
// and so do all peers that wait for this rank.
const maxSyscallCopy = 256 << 10

type remoteVector struct{ base, length uintptr } // iovec of process_vm_readv(2)

// processRead reads memory of another process into to, which must not be empty. The count
// may be short.
func processRead(pid int, to []byte, from uint64) (int, syscall.Errno) {
	return processVM(unix.SYS_PROCESS_VM_READV, pid, to, from)
}

// processWrite writes from into the memory of another process.
func processWrite(pid int, from []byte, to uint64) (int, syscall.Errno) {
	return processVM(unix.SYS_PROCESS_VM_WRITEV, pid, from, to)
}

func processVM(call uintptr, pid int, local []byte, remote uint64) (int, syscall.Errno) {
	if len(local) > maxSyscallCopy {
		local = local[:maxSyscallCopy]
	}
	lv := syscall.Iovec{Base: &local[0]}
	lv.SetLen(len(local))
	rv := remoteVector{uintptr(remote), uintptr(len(local))}
	n, _, errno := syscall.RawSyscall6(call, uintptr(pid), uintptr(unsafe.Pointer(&lv)), 1,
		uintptr(unsafe.Pointer(&rv)), 1, 0)
	return int(n), errno
}

func putUint64(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }
