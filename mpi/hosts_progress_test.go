package mpi

// Asynchronous progress over a network, with each way to wait for its device, alone and
// together with shared memory.

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestBackgroundOverANetwork(t *testing.T) {
	for _, perHost := range []int{1, 2} {
		for _, v := range []struct {
			name         string
			armed, plain bool
		}{{"solicited", false, false}, {"armed", true, false}, {"plain", false, true}} {
			t.Run(fmt.Sprintf("%d-a-host-%s", perHost, v.name), func(t *testing.T) {
				cable := &wire{progress: progressAsync, plain: v.plain}
				seen := make(chan struct{}, 1)
				runOnHosts(t, 2*perHost, perHost, v.armed, cable, func(c *Comm) error {
					if err := exchangeWithAll(c, perHost); err != nil {
						return err
					}
					for i := range 6 {
						if err := crossUnwatched(c, byte(i+1), i%2 == 0, seen); err != nil {
							return fmt.Errorf("transfer %d: %w", i, err)
						}
					}
					return c.Barrier()
				})
			})
		}
	}
}

// crossUnwatched sends a large message from the last rank to rank 0, on another host, while
// both are outside of the library.
func crossUnwatched(c *Comm, value byte, senderFirst bool, seen chan struct{}) error {
	last := c.Size() - 1
	if c.Rank() != 0 && c.Rank() != last {
		return nil
	}
	peer, sends := last-c.Rank(), c.Rank() == last
	buf, word := make([]byte, 400_000), []byte{0}
	start := func() Request {
		if !sends {
			return Irecv(c, buf, peer, 1)
		}
		for i := range buf {
			buf[i] = value
		}
		return Isend(c, buf, peer, 1)
	}
	var r Request
	if sends == senderFirst {
		r = start()
		if err := Send(c, word, peer, 2); err != nil {
			return err
		}
	} else {
		if _, err := Recv(c, word, peer, 2); err != nil {
			return err
		}
		r = start()
	}
	var late error
	if sends {
		<-seen
	} else {
		if !Eventually(10*time.Second, func() bool { return !holdsNot(buf, value) }) {
			late = errors.New("the data did not arrive while neither rank was in a call")
		}
		seen <- struct{}{}
	}
	if _, err := r.Wait(); err != nil {
		return err
	}
	if !sends && late == nil && holdsNot(buf, value) {
		return errors.New("the data is damaged")
	}
	return late
}

// holdsNot reads a buffer that the library may be writing, which is the purpose of the
// test.
//
//go:noinline
//go:norace
func holdsNot(buf []byte, value byte) bool {
	for _, b := range buf {
		if b != value {
			return true
		}
	}
	return false
}
