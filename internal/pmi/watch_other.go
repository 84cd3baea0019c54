//go:build !linux

package pmi

import "golang.org/x/sys/unix"

// hangUpEvents are what poll reports when the other end of a socket is closed.
const hangUpEvents = unix.POLLHUP
