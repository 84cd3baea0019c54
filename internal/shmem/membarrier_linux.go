package shmem

import "golang.org/x/sys/unix"

const (
	query           = 0
	global          = 1 << 1 // MEMBARRIER_CMD_GLOBAL_EXPEDITED
	registerGlobal  = 1 << 2
	private         = 1 << 3 // MEMBARRIER_CMD_PRIVATE_EXPEDITED
	registerPrivate = 1 << 4
)

// GlobalBarrierAvailable reports whether the kernel supports and permits global barriers.
func GlobalBarrierAvailable() bool {
	got, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, query, 0, 0)
	return errno == 0 && got&(global|registerGlobal) == global|registerGlobal
}

// RegisterGlobal subjects the threads of this process to the global barriers of others.
func RegisterGlobal() bool { return register(registerGlobal) }

// RegisterPrivate allows this process to execute private barriers.
func RegisterPrivate() bool { return register(registerPrivate) }

// register waits for the kernel, so Go's scheduler may run other goroutines meanwhile.
func register(command uintptr) bool {
	_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return errno == 0
}

// GlobalBarrier executes a global barrier. It cannot fail where RegisterGlobal has succeeded.
func GlobalBarrier() { _, _, _ = unix.RawSyscall(unix.SYS_MEMBARRIER, global, 0, 0) }

// PrivateBarrier executes a private barrier.
func PrivateBarrier() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, private, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
