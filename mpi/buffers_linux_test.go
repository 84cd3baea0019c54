//go:build !muster_portable

package mpi_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/prof"
)

// flood lets all ranks send to rank 0, which is late, and calls look there when it has
// received everything. Messages contain their sender and number. The senders call sent
// when they are done; rank 0 calls late before it receives anything.
func flood(c *mpi.Comm, messages, length int, sent, late func(), look func() error) error {
	if c.Rank() > 0 {
		buf := make([]byte, length)
		for i := range messages {
			buf[0], buf[1], buf[2] = byte(c.Rank()), byte(i), byte(i>>8)
			if err := mpi.Send(c, buf, 0, 5); err != nil {
				return err
			}
		}
		sent()
		_, err := mpi.Recv(c, buf, 0, 6) // the end: a rank that leaves takes its messages along
		return err
	}
	late()
	next := make([]int, c.Size())
	buf := make([]byte, length)
	for range messages * (c.Size() - 1) {
		st, err := mpi.Recv(c, buf, mpi.AnySource, 5)
		if err != nil {
			return err
		}
		got := int(buf[1]) | int(buf[2])<<8
		if int(buf[0]) != st.Source || got != next[st.Source] {
			return fmt.Errorf("message %d of rank %d comes as one of rank %d, where number %d should", got, buf[0], st.Source, next[st.Source])
		}
		next[st.Source]++
	}
	err := look()
	for r := 1; r < c.Size(); r++ {
		err = errors.Join(err, mpi.Send(c, buf, r, 6))
	}
	return err
}

// A rank that posts its own receive buffers posts more when the device runs low, and
// counts them.
func TestPostedBuffersGrow(t *testing.T) {
	for _, v := range []struct {
		name string
		cfg  mpi.Config
		runs bool // low: what comes while nobody polls takes a buffer
	}{
		{"shared memory", mpi.Config{}, false},
		{"reliable datagrams", mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: "rd"}, true},
		{"unreliable datagrams", mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: "ud"}, true},
	} {
		t.Run(v.name, func(t *testing.T) {
			cfg := v.cfg
			cfg.Advanced.Eager = "posted"
			done := make(chan struct{}, 3)
			late := func() { // as long as they can go on without us
				for range 3 {
					select {
					case <-done:
					case <-time.After(300 * time.Millisecond):
					}
				}
			}
			profiled(t, 4, &cfg, nil, func(c *mpi.Comm) error {
				return flood(c, 300, 4000, func() { done <- struct{}{} }, late, func() error {
					p := c.World().Profile()
					now, most, events := p.Of(prof.ReceiveBuffers), p.Of(prof.ReceiveBuffersMost), p.Of("receive.low-water")
					t.Logf("%d buffers now, %d at the most, %d low-watermark events", now, most, events)
					if grown := p.Of(prof.ReceiveGrown); now == 0 || most < now || (events > 0) != v.runs || (grown > 0) != v.runs {
						return fmt.Errorf("%d buffers now, %d at the most, after %d low-watermark events, of which %d brought more", now, most, events, grown)
					}
					return nil
				})
			})
		})
	}
}
