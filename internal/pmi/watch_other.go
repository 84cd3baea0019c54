//go:build unix && !linux

package pmi

import "golang.org/x/sys/unix"

// hangUpEvents are the poll events for a closed other end of a socket.
const hangUpEvents = unix.POLLHUP
