package rdma

import (
	"errors"
	"fmt"
	"time"
)

// ErrAgain says that a queue is full for the moment: poll, then offer the rest
// again.
var ErrAgain = errors.New("rdma: queue full, poll and try again")

// ErrUnsupported says that the device has no such ability; Attr reports which it
// has.
var ErrUnsupported = errors.New("rdma: not supported by this device")

// ErrClosed says that the object was closed.
var ErrClosed = errors.New("rdma: closed")

// ErrNoResources says that a table of the device is full.
var ErrNoResources = errors.New("rdma: no resources left")

type statusError Status

func (e statusError) Error() string { return "rdma: " + Status(e).String() }

// SilenceError says that nothing was heard from a peer for so long. Nobody can tell from a
// distance why, so it blames nobody.
type SilenceError struct{ For time.Duration }

func (e *SilenceError) Error() string {
	return fmt.Sprintf("nothing was heard for %v: its process, its host or the network between is down, or it was stopped for so long; "+
		"look at the host and the network, or let peers be silent for longer (MUSTER_PEER_TIMEOUT)", e.For.Round(100*time.Millisecond))
}
