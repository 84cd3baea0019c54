package prof

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machineClock returns the value of CLOCK_MONOTONIC at a time of the runtime, which reads
// the same clock with another origin. It reads the two one after the other, several
// times, and uses the fastest attempt.
func machineClock() (begin time.Time, at int64, domain string) {
	shortest := time.Duration(1<<63 - 1)
	for range 20 {
		var ts unix.Timespec
		before := time.Now()
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
			return time.Now(), 0, ""
		}
		if took := time.Since(before); took < shortest {
			shortest, begin, at = took, before.Add(took/2), ts.Nano()
		}
	}
	// A rebooted kernel has another clock, and so has a time namespace.
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return begin, at, ""
	}
	space, _ := os.Readlink("/proc/self/ns/time") // older kernels have none
	return begin, at, strings.TrimSpace(string(boot)) + space
}
