package pmi

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memoryDomain identifies the processes that can share memory. Two processes have the
// same value if and only if they have the same running kernel, the same /dev/shm, the same
// PID namespace (memory is found through /proc, and copied by process ID) and the same
// user. Two pods on one machine differ; two ranks in one pod do not.
func memoryDomain() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var shm, pids unix.Stat_t
	if err == nil {
		err = unix.Stat("/dev/shm", &shm)
	}
	if err == nil {
		err = unix.Stat("/proc/self/ns/pid", &pids)
	}
	if err != nil {
		// Without this information, memory is not shared.
		return "alone-" + rand.Text()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d:%d %d:%d %d", boot, shm.Dev, shm.Ino, pids.Dev, pids.Ino, os.Geteuid()))
	return hex.EncodeToString(sum[:16])
}

// networkDomain identifies the processes for which 127.0.0.1 is the same, "" if unknown.
func networkDomain() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	var net unix.Stat_t
	if err != nil || unix.Stat("/proc/self/ns/net", &net) != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d:%d", boot, net.Dev, net.Ino))
	return hex.EncodeToString(sum[:8])
}
