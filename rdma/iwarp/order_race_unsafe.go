//go:build race

package iwarp

import (
	"hash/crc32"
	"runtime"
	"unsafe"
)

// What a peer does after it has received happens after what was done before the sending.
// The race detector does not see that through a socket, if both ends are in one process,
// and is informed here. Any address that all devices share identifies the order.

var sharedByAll = crc32.MakeTable(crc32.Castagnoli)

func orderBeforeSending()  { runtime.RaceReleaseMerge(unsafe.Pointer(sharedByAll)) }
func orderAfterReceiving() { runtime.RaceAcquire(unsafe.Pointer(sharedByAll)) }
