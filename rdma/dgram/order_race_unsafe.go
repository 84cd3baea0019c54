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
