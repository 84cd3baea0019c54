//go:build !linux

package pacing

import "time"

// Thread has no effect on this system, except for Pause.
type Thread struct{}

// Enter does nothing on this system.
func (t *Thread) Enter() {}

// Leave does nothing on this system.
func (t *Thread) Leave() {}

// Pause sleeps for d.
func (t *Thread) Pause(d time.Duration) { time.Sleep(d) }
