package rdma

import "errors"

// ErrAgain says that a queue is full for the moment: poll, then offer the rest
// again.
var ErrAgain = errors.New("rdma: queue full, poll and try again")

// ErrUnsupported says that the device has no such ability; Attr tells which it
// has.
var ErrUnsupported = errors.New("rdma: not supported by this device")

// ErrClosed says that the object was closed.
var ErrClosed = errors.New("rdma: closed")

// ErrNoResources says that a table of the device is full.
var ErrNoResources = errors.New("rdma: no resources left")

type statusError Status

func (e statusError) Error() string { return "rdma: " + Status(e).String() }
