package mpi

// Messages and windows over a device whose longest transfer is short, so that every one is
// split into several work requests.

import (
	"fmt"
	"testing"
)

func TestLongTransfers(t *testing.T) {
	const size = 1_000_003
	fill := func(b []byte, seed int) []byte {
		for i := range b {
			b[i] = byte(i>>12 + i + seed)
		}
		return b
	}
	check := func(what string, b []byte, seed int) error {
		for i := range b {
			if want := byte(i>>12 + i + seed); b[i] != want {
				return fmt.Errorf("%s: byte %d is %d, want %d", what, i, b[i], want)
			}
		}
		return nil
	}
	for _, pins := range []bool{false, true} {
		runOnHosts(t, 2, 1, true, &wire{pins: pins, transfer: 100_000}, func(c *Comm) error {
			peer := 1 - c.Rank()
			out, in := fill(make([]byte, size), c.Rank()), make([]byte, size)
			for round := range 4 { // later ones find the receive posted, and speculate
				r := Irecv(c, in, peer, round)
				send := Send[byte]
				if round%2 == 1 {
					send = Ssend[byte]
				}
				if err := send(c, out, peer, round); err != nil {
					return err
				}
				if _, err := r.Wait(); err != nil {
					return err
				}
				if err := check("message", in, peer); err != nil {
					return err
				}
				clear(in)
			}
			w, err := CreateWin(c, in)
			if err != nil {
				return err
			}
			if w.Direct(peer) {
				return fmt.Errorf("the memory of rank %d is in reach without the device", peer)
			}
			got := make([]byte, size)
			for _, step := range []func() error{
				w.Fence,
				func() error { return w.Put(out, peer, 0) },
				w.Fence,
				func() error { return check("put", in, peer) },
				func() error { return w.Get(got, peer, 0) },
				w.Fence,
				func() error { return check("get", got, c.Rank()) },
				w.Free,
				func() error { fill(in, 0); clear(got); return nil },
				func() error {
					if c.Rank() == 0 {
						return Bcast(c, in, 0)
					}
					return Bcast(c, got, 0)
				},
				func() error {
					if c.Rank() == 0 {
						return nil
					}
					return check("bcast", got, 0)
				},
			} {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
