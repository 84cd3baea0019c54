//go:build !linux

package prompt

import "time"

// AsThread does something.
func AsThread(do func()) { do() }

// Pause sleeps.
func Pause(d time.Duration) { time.Sleep(d) }
