//go:build race

package race

import (
	"hash/crc32"
	"runtime"
	"unsafe"
)

// Enabled reports whether the race detector is part of this program.
const Enabled = true

// What a peer does after it has received happens after what was done before the sending.
// The detector does not see that through a socket, if both ends are in one process. Any
// address that all devices share identifies the order.

// OrderBeforeSending precedes the sending of a packet.
func OrderBeforeSending() { runtime.RaceReleaseMerge(unsafe.Pointer(crc32.IEEETable)) }

// OrderAfterReceiving follows the receiving of a packet.
func OrderAfterReceiving() { runtime.RaceAcquire(unsafe.Pointer(crc32.IEEETable)) }
