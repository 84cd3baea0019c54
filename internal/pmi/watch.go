package pmi

// Asynchronous notifications to a client. Without a launcher, rank 0 sends notices of
// failures, which a goroutine reads (rendezvous_join.go). A launcher sends none, but the
// kernel closes its end of the connection when it exits. A goroutine waits for that on a
// copy of the descriptor, so that it does not consume answers to calls. It costs nothing
// while nothing happens.

import (
	"os"
	"syscall"
)

func (c *wireClient) Watch(lost func(error)) {
	reported := func(err error) {
		if !c.leaving.Load() {
			lost(err)
		}
	}
	if c.notice != nil && c.survives {
		return // failures are on the board; see Notified
	}
	if c.notice != nil {
		c.notice.listen(func(d Death) { reported(&DeadError{"watching the other ranks", d}) })
		return
	}
	socket, ok := c.conn.(syscall.Conn)
	if !ok {
		return
	}
	line, err := copyDescriptor(socket)
	if err != nil {
		return // out of descriptors: the next request will fail instead
	}
	c.line.Store(line)
	c.holdLifeline()
	go func() {
		defer line.Close()
		if hungUp(line) {
			reported(&LauncherError{"it closed its connection to this rank"})
		}
	}()
}

// endWatch stops the notifications. Close calls it.
func (c *wireClient) endWatch() {
	c.leaving.Store(true)
	for _, f := range []*os.File{c.line.Load(), c.held.Load()} {
		if f != nil {
			f.Close()
		}
	}
}

// holdLifeline opens a write end of the launcher's lifeline. While it is open, the kernel
// does not kill this process when the launcher exits: the process notices that itself,
// and exits by itself (internal/launch/lifeline.go).
func (c *wireClient) holdLifeline() {
	if c.lifeline == "" {
		return
	}
	if f, err := os.OpenFile("/proc/self/fd/"+c.lifeline, os.O_WRONLY, 0); err == nil {
		c.held.Store(f)
	}
}
