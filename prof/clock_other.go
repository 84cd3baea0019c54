//go:build !linux

package prof

import "time"

// machineClock is a clock of this process alone.
func machineClock() (begin time.Time, at int64, domain string) { return time.Now(), 0, "" }
