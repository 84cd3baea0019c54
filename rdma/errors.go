package rdma

import (
	"errors"
	"fmt"
	"time"
)

// ErrAgain reports that a queue is full for the moment: poll, then post the rest again.
var ErrAgain = errors.New("rdma: queue full, poll and try again")

// ErrUnsupported reports that the device lacks the requested feature; Attr lists those
// it has.
var ErrUnsupported = errors.New("rdma: not supported by this device")

// ErrClosed reports that the object was closed.
var ErrClosed = errors.New("rdma: closed")

// ErrNoResources reports that a table of the device is full.
var ErrNoResources = errors.New("rdma: no resources left")

type statusError Status

func (e statusError) Error() string { return "rdma: " + Status(e).String() }

// SilenceError reports that a peer sent nothing for the given time. The cause cannot be
// determined from here, so the text lists the possible ones.
type SilenceError struct{ For time.Duration }

func (e *SilenceError) Error() string {
	return fmt.Sprintf("nothing was heard for %v: its process, its host or the network between is down, or it was stopped for so long; "+
		"look at the host and the network, or let peers be silent for longer (MUSTER_PEER_TIMEOUT)", e.For.Round(100*time.Millisecond))
}
