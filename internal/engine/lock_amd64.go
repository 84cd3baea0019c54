//go:build linux && !race

package engine

import "golang.org/x/sys/unix"

// takeBiased takes the lock for its owner; false means that the caller is not
// the owner.
//
//go:noescape
func takeBiased(s *spinLock) bool

// giveBiased gives the lock if the owner has it.
//
//go:noescape
func giveBiased(s *spinLock) bool

// goroutine is the address of what the runtime knows of the calling goroutine:
// good for telling living goroutines apart, and used for nothing else.
func goroutine() uintptr

// The commands of membarrier(2).
const (
	membarrierPrivateExpedited         = 1 << 3
	membarrierRegisterPrivateExpedited = 1 << 4
)

// canBias tells whether the kernel can make a barrier on all cores of this
// process, and asks it to be ready.
func canBias() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, membarrierRegisterPrivateExpedited, 0, 0)
	return errno == 0
}

// barrierEverywhere executes a full barrier on every core that runs this
// process.
func barrierEverywhere() {
	_, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, membarrierPrivateExpedited, 0, 0)
	if errno != 0 {
		panic("engine: membarrier failed after it was registered: " + errno.Error())
	}
}
