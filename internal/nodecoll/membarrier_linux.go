package nodecoll

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Commands of membarrier(2): a full barrier on every core that runs a thread of a
// process that has registered for it.
const (
	membarrierGlobalExpedited = 1 << 1
	membarrierRegisterGlobal  = 1 << 2
)

// membarrierRegister subjects the threads of this process to the membarrier of others. The
// first call of a process takes milliseconds; the shared-memory device has usually made it.
func membarrierRegister() bool {
	_, _, errno := syscall.Syscall(unix.SYS_MEMBARRIER, membarrierRegisterGlobal, 0, 0)
	return errno == 0
}

// membarrier cannot fail where every rank of the team could register.
func membarrier() {
	syscall.RawSyscall(unix.SYS_MEMBARRIER, membarrierGlobalExpedited, 0, 0)
}
