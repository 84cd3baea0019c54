package pmi

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// meet lets ranks 1 to size-1 come to a rendezvous, and rank 0 gather them.
func meet(t *testing.T, m *Rendezvous, size int) []Client {
	t.Helper()
	v, err := ParseJoinToken(m.String())
	if err != nil {
		t.Fatal(err)
	}
	clients, errs := make([]Client, size), make([]error, size)
	var all sync.WaitGroup
	for rank := range size {
		all.Go(func() {
			if rank == 0 {
				clients[0], errs[0] = m.Gather(t.Context(), size, Terms{})
			} else {
				clients[rank], errs[rank] = v.Join(t.Context(), rank, size, Terms{})
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return clients
}

func TestRendezvousOfJobs(t *testing.T) {
	m, err := OpenRendezvous()
	if err != nil {
		t.Fatal(err)
	}
	clients := meet(t, m, 4)
	var all sync.WaitGroup
	for rank, c := range clients {
		if c.Rank() != rank || c.Size() != 4 {
			t.Errorf("rank %d is %d of %d", rank, c.Rank(), c.Size())
		}
		all.Go(func() {
			if err := errors.Join(c.Fence(t.Context()), c.Close()); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	all.Wait()
}

func TestRendezvousRefusesStrangers(t *testing.T) {
	m, err := OpenRendezvous()
	if err != nil {
		t.Fatal(err)
	}
	wrong := m.JoinToken
	wrong.Key = strings.Repeat("A", len(wrong.Key))
	refused := make(chan error, 1)
	go func() {
		_, err := wrong.Join(t.Context(), 1, 2, Terms{})
		refused <- err
		joined, err := m.JoinToken.Join(t.Context(), 1, 2, Terms{}) // the stranger has no effect
		if err != nil {
			t.Error(err)
			return
		}
		if err := joined.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := m.Gather(t.Context(), 2, Terms{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-refused; err == nil || !strings.Contains(err.Error(), "wrong key") {
		t.Errorf("a stranger got %v", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestRendezvousIsCancelled(t *testing.T) {
	m, err := OpenRendezvous()
	if err != nil {
		t.Fatal(err)
	}
	reported := make(chan error, 1)
	go func() {
		_, err := m.JoinToken.Join(t.Context(), 1, 3, Terms{})
		reported <- err
	}()
	cause := errors.New("nobody else comes")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(cause) })
	if _, err := m.Gather(ctx, 3, Terms{}); err == nil || !strings.Contains(err.Error(), cause.Error()) {
		t.Errorf("rank 0 got %v", err)
	}
	if err := <-reported; err == nil || !strings.Contains(err.Error(), cause.Error()) {
		t.Errorf("rank 1 got %v", err)
	}
	// The token is of no use any more.
	late, cancelLate := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancelLate()
	if _, err := m.JoinToken.Join(late, 1, 3, Terms{}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("a late rank got %v", err)
	}
}

func TestJoinTokenIsChecked(t *testing.T) {
	key := strings.Repeat("K", minKey)
	for _, text := range []string{"", "a", "short//1.2.3.4:5", key + "//", key + "//localhost:80", key + "//1.2.3.4:99999", key + "/x/1.2.3.4:5/y"} {
		if v, err := ParseJoinToken(text); err == nil {
			t.Errorf("%q was read as %v", text, v)
		}
	}
	v := JoinToken{key, "net", []string{"1.2.3.4:5", "[fe80::1]:6"}}
	if read, err := ParseJoinToken(v.String()); err != nil || read.String() != v.String() {
		t.Errorf("%v was read as %v, %v", v, read, err)
	}
}
