//go:build !linux

package pacing

import "time"

// Thread is nothing here.
type Thread struct{}

// Enter does nothing here.
func (t *Thread) Enter() {}

// Leave does nothing here.
func (t *Thread) Leave() {}

// Pause sleeps.
func (t *Thread) Pause(d time.Duration) { time.Sleep(d) }
