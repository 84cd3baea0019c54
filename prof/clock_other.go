//go:build !linux

package prof

import "time"

// machineClock returns a clock private to this process.
func machineClock() (begin time.Time, at int64, domain string) { return time.Now(), 0, "" }
