//go:build race

package soft

import (
	"runtime"
	"unsafe"
)

// What a peer does after receiving happens after what was done before sending. The race
// detector does not see that through a socket if both ends are in one process, so it is
// told here. Any address that all devices share can identify the order; the CRC table
// is one.

func (d *Device) orderBeforeSending()  { runtime.RaceReleaseMerge(unsafe.Pointer(d.keys.crc)) }
func (d *Device) orderAfterReceiving() { runtime.RaceAcquire(unsafe.Pointer(d.keys.crc)) }

// toRepeat returns what to send for a retransmission. The peer may already have the
// segment, with only the ack lost. Then it may have notified the owner of the memory by
// another way, and the owner changes the memory. The peer drops the retransmission as a
// duplicate, whatever it contains. The race detector cannot know that, so the bytes are
// copied without instrumentation.
//
//go:norace
func toRepeat(bytes []byte) []byte {
	again := make([]byte, len(bytes))
	for i := range bytes {
		again[i] = bytes[i]
	}
	return again
}
