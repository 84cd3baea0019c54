//go:build !linux || muster_portable

package engine

import "time"

// yieldThread sleeps for a moment. Goroutines read the sockets on these systems, and
// runtime.Gosched would keep the core from their threads. While all goroutines sleep, the
// Go scheduler waits for the network, so that an arrival ends the sleep of its reader.
func yieldThread() { time.Sleep(time.Microsecond) }

func shortSlice() {}

func napThread(d time.Duration) { time.Sleep(d) }
