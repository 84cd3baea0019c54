package mpi

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Context ids have 32 bits. When they are exhausted, all ranks get an error, and no id is
// reused: messages of two communicators would match.
func TestContextsRunOut(t *testing.T) {
	runOnHosts(t, 3, 3, true, &wire{}, func(c *Comm) error {
		first, err := c.Dup()
		if err != nil {
			return err
		}
		// Ranks may have different next ids: the largest counts.
		c.w.ids.next = lastContext - 2*uint32(2+c.Rank())
		seen := map[uint32]bool{c.ctx: true, first.ctx: true}
		made := 0
		for {
			d, err := c.Dup()
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || !strings.Contains(err.Error(), "communicators") {
					return fmt.Errorf("after %d duplicates the error is %w", made, err)
				}
				break
			}
			if made++; seen[d.ctx] || made > 10 {
				return fmt.Errorf("duplicate %d has context %d, which is in use: %v", made, d.ctx, seen[d.ctx])
			}
			seen[d.ctx] = true
		}
		if made != 3 {
			return fmt.Errorf("%d duplicates were made, want 3", made)
		}
		for _, again := range []func() error{
			func() error { _, err := c.Split(0, 0); return err },
			func() error { _, err := CreateWin(c, make([]byte, 8)); return err },
		} {
			if err := again(); err == nil {
				return errors.New("a communicator is made after the last")
			}
		}
		in := []int{c.Rank()}
		if err := Allreduce(first, in, in, Sum); err != nil || in[0] != 3 {
			return fmt.Errorf("the sum of the ranks is %d with %v: what was made before should go on", in[0], err)
		}
		return nil
	})
}
