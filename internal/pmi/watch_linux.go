package pmi

import "golang.org/x/sys/unix"

// hangUpEvents are what poll reports when the other end of a socket is closed, even
// while there is something left to read.
const hangUpEvents = unix.POLLRDHUP | unix.POLLHUP
