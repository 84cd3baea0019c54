//go:build !linux || muster_portable

package soft

import "time"

// osThread has no effect on this system, except for pause.
type osThread struct{}

// enter does nothing on this system.
func (t *osThread) enter() {}

// leave does nothing on this system.
func (t *osThread) leave() {}

// pause sleeps for d.
func (t *osThread) pause(d time.Duration) { time.Sleep(d) }
