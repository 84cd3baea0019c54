//go:build linux

package shm

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Values of part.Refuse: the targets for which process_vm_readv and process_vm_writev
// fail.
const (
	refuseAll   = "all"   // a container's seccomp filter
	refusePeers = "peers" // Yama's ptrace_scope, or other users
)

// refuseProcessVM makes the two calls fail with EPERM in this process, as in a container
// without ptrace permission.
func refuseProcessVM(whom string) error {
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		result = unix.BPF_RET | unix.BPF_K
		// Offsets in struct seccomp_data (linux/seccomp.h): nr, and the lower half of
		// the first argument.
		number, argument = 0, 16
	)
	self := uint32(0xffffffff)
	switch whom {
	case refuseAll:
	case refusePeers:
		self = uint32(os.Getpid())
	default:
		return fmt.Errorf("refuse %q: no such group", whom)
	}
	code := []unix.SockFilter{
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_PROCESS_VM_READV, Jt: 1},
		{Code: equal, K: unix.SYS_PROCESS_VM_WRITEV, Jf: 3},
		{Code: load, K: argument},
		{Code: equal, K: self, Jt: 1},
		{Code: result, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: result, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}
