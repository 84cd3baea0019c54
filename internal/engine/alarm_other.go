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

// yieldThread sleeps for a moment. Goroutines read the sockets on these systems, and
// runtime.Gosched would keep the core from their threads. While all goroutines sleep, the
// Go scheduler waits for the network, so that an arrival ends the sleep of its reader.
func yieldThread() { time.Sleep(time.Microsecond) }

func nameThread() {}

func shortSlice() {}

func napThread(d time.Duration) { time.Sleep(d) }
