package pmi

import "golang.org/x/sys/unix"

// hangUpEvents are the poll events for a closed other end of a socket, even if there is
// unread data.
const hangUpEvents = unix.POLLRDHUP | unix.POLLHUP
