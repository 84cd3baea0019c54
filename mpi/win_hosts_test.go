package mpi

// Windows of ranks on several hosts: some memory is mapped, some is not, and accumulates and
// locks of both must be atomic with respect to each other.

import (
	"fmt"
	"testing"
)

func TestWindowAcrossHosts(t *testing.T) {
	for _, armed := range []bool{true, false} {
		runOnHosts(t, 4, 2, armed, &wire{}, func(c *Comm) error {
			w, err := AllocateWin[int64](c, 1000)
			if err != nil {
				return err
			}
			for r := range c.Size() {
				if near := r/2 == c.Rank()/2; w.Direct(r) != near {
					return fmt.Errorf("the memory of rank %d in reach: %v, want %v", r, w.Direct(r), near)
				}
			}
			buf := make([]int64, 900)
			for i := range buf {
				buf[i] = int64(c.Rank()*1000 + i)
			}
			if err := w.Fence(); err != nil {
				return err
			}
			next, prev := (c.Rank()+1)%4, (c.Rank()+3)%4
			if err := w.Put(buf, next, 100); err != nil {
				return err
			}
			if err := w.FenceEnd(); err != nil {
				return err
			}
			if got := w.Memory()[999]; got != int64(prev*1000+899) {
				return fmt.Errorf("rank %d has put %d at the end, want %d", prev, got, prev*1000+899)
			}
			for range 50 { // the lock and the counter of rank 0, from both hosts
				var v [1]int64
				var was int64
				if err := w.Lock(0, LockExclusive); err != nil {
					return err
				}
				if err := w.Get(v[:], 0, 1); err != nil {
					return err
				}
				if err := w.FlushLocal(0); err != nil {
					return err
				}
				v[0]++
				if err := w.Put(v[:], 0, 1); err != nil {
					return err
				}
				if err := w.FetchAndOp(1, &was, 0, 0, Sum); err != nil {
					return err
				}
				if err := w.Unlock(0); err != nil {
					return err
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			if m := w.Memory(); c.Rank() == 0 && (m[0] != 200 || m[1] != 200) {
				return fmt.Errorf("200 additions and 200 increments under a lock left %d and %d", m[0], m[1])
			}
			if _, err := AllocateSharedWin[int64](c, 1); err == nil {
				return fmt.Errorf("ranks of two hosts share a window")
			}
			return w.Free()
		})
	}
}
