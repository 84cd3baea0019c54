//go:build race

package dgram

import (
	"runtime"
	"unsafe"
)

// What a peer does after it has received is ordered behind what was done before the
// sending. The race detector does not see that through a socket, if both ends are in one
// process, and is told here. Any address that all devices share will do as the name of
// the order; the table of the CRC is one.

func (d *Device) orderBeforeSending()  { runtime.RaceReleaseMerge(unsafe.Pointer(d.keys.crc)) }
func (d *Device) orderAfterReceiving() { runtime.RaceAcquire(unsafe.Pointer(d.keys.crc)) }

// toRepeat is what is sent when a segment goes again. The peer may have it already, and
// only the ack was lost. Then it may have told the owner of the memory, by another
// way, that it has read or been written enough, and he changes it: what goes is dropped
// there as a double, whatever it holds. The race detector cannot know that, so what may
// be out of date is copied behind its back.
//
//go:norace
func toRepeat(bytes []byte) []byte {
	again := make([]byte, len(bytes))
	for i := range bytes {
		again[i] = bytes[i]
	}
	return again
}
