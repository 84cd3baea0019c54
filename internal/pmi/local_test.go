package pmi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// exchange makes every client publish, fence and read the values of all others, as a job
// does at start-up.
func exchange(t *testing.T, clients []Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			long := strings.Repeat("\x00 =\n;é", 1000)
			if err := c.Put("addr", fmt.Appendf(nil, "rank %d of %d\n", c.Rank(), c.Size())); err != nil {
				t.Error(err)
			}
			if err := c.Put("long", []byte(long)); err != nil {
				t.Error(err)
			}
			if err := c.Put("empty", nil); err != nil {
				t.Error(err)
			}
			for range 2 {
				if err := c.Fence(ctx); err != nil {
					t.Error(err)
					return
				}
			}
			for r := range c.Size() {
				got, err := c.Get(ctx, r, "addr")
				if want := fmt.Sprintf("rank %d of %d\n", r, c.Size()); err != nil || string(got) != want {
					t.Errorf("rank %d must get %q from rank %d; got %q, %v", c.Rank(), want, r, got, err)
				}
			}
			next := (c.Rank() + 1) % c.Size()
			if got, err := c.Get(ctx, next, "long"); err != nil || string(got) != long {
				t.Errorf("a long value of any bytes must arrive whole; got %d bytes, %v", len(got), err)
			}
			if got, err := c.Get(ctx, next, "empty"); err != nil || len(got) != 0 {
				t.Errorf("an empty value must arrive as such; got %q, %v", got, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestLocalExchange(t *testing.T) {
	for _, n := range []int{1, 2, 7} {
		clients := NewLocal(n)
		if c := clients[n-1]; c.Rank() != n-1 || c.Size() != n || c.LocalRank() != n-1 || c.LocalSize() != n || c.Node(0) != c.Node(n-1) {
			t.Errorf("the last of %d ranks has a wrong rank or node", n)
		}
		exchange(t, clients)
	}
	if a, b := NewLocal(1)[0], NewLocal(1)[0]; a.JobID() == b.JobID() {
		t.Error("two jobs must not have the same name")
	}
}

func TestLocalGetWaitsForPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewLocal(2)
		go func() {
			time.Sleep(time.Second)
			c[1].Put("k", []byte("v"))
		}()
		if got, err := c[0].Get(t.Context(), 1, "k"); err != nil || string(got) != "v" {
			t.Errorf("Get must wait for the Put: %q, %v", got, err)
		}
	})
}

func TestLocalTimeoutNamesMissingRanks(t *testing.T) {
	synctest.Test(t, testLocalTimeout)
}

func testLocalTimeout(t *testing.T) {
	c := NewLocal(4)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	go c[2].Fence(ctx)
	synctest.Wait()
	err := c[0].Fence(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1,3") {
		t.Errorf("a late Fence must name ranks 1 and 3: %v", err)
	}
	if _, err := c[0].Get(ctx, 3, "addr"); err == nil || !strings.Contains(err.Error(), `rank 3 has not put "addr"`) {
		t.Errorf("a late Get must name rank and key: %v", err)
	}
	if _, err := c[0].Get(ctx, 4, "addr"); err == nil {
		t.Error("Get from a rank that does not exist must fail at once")
	}
}

func TestLocalWaitEndsOnFailure(t *testing.T) {
	c := NewLocal(2)
	c[0].Board().MarkDead(Death{Rank: 1, Host: "h", Status: "panicked"})
	err := c[0].Fence(t.Context())
	var dead *DeadError
	if !errors.As(err, &dead) || dead.Rank != 1 {
		t.Errorf("Fence must return the death of rank 1: %v", err)
	}

	c = NewLocal(2)
	go c[1].Abort(7, "no more input")
	_, err = c[0].Get(t.Context(), 1, "k")
	var abort *AbortError
	if !errors.As(err, &abort) || abort.Code != 7 || abort.Rank != 1 {
		t.Errorf("Get must return the abort by rank 1 with code 7: %v", err)
	}
	if d, ok := c[0].Board().Death(0); !ok || !strings.Contains(d.Status, "no more input") {
		t.Errorf("the board must show an abort with its reason: %+v", d)
	}
}

func TestLocalKeysAndClose(t *testing.T) {
	c := NewLocal(1)[0]
	for _, key := range []string{"", "a b", "a=b", "a;b", "a\n", strings.Repeat("k", MaxKey+1), "é"} {
		if err := c.Put(key, nil); err == nil {
			t.Errorf("key %q must be refused", key)
		}
	}
	if err := c.Put(strings.Repeat("k", MaxKey), nil); err != nil {
		t.Errorf("a key of the maximum length must be accepted: %v", err)
	}
	c.Close()
	if err := c.Put("k", nil); err != ErrClosed {
		t.Errorf("Put after Close must return ErrClosed: %v", err)
	}
	if err := c.Fence(t.Context()); err != ErrClosed {
		t.Errorf("Fence after Close must return ErrClosed: %v", err)
	}
	if c.Board().Row(0).State != RowLeft {
		t.Error("the board must show that a closed rank has left")
	}
}

func TestRanks(t *testing.T) {
	for want, ranks := range map[string][]int{
		"": nil, "5": {5}, "0-3,7": {0, 1, 2, 3, 7}, "0,2,4-5": {0, 2, 4, 5},
	} {
		if got := Ranks(ranks); got != want {
			t.Errorf("Ranks(%v) is %q, want %q", ranks, got, want)
		}
	}
}
