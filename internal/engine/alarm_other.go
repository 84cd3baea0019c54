//go:build !linux || muster_portable

package engine

import "time"

// kernelAlarm does not exist on these systems.
type kernelAlarm struct{}

func (*kernelAlarm) open() bool               { return false }
func (*kernelAlarm) set(time.Duration)        {}
func (*kernelAlarm) signal()                  {}
func (*kernelAlarm) sleep(int, time.Duration) {}
func (*kernelAlarm) close()                   {}
