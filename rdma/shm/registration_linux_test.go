package shm

import (
	"testing"
	"time"
)

// TestSlowRegistration: a kernel that does not end its grace period for long delays no rank;
// messages have fences until then.
func TestSlowRegistration(t *testing.T) {
	d, err := Open(Config{Index: 0, Peers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.fences.decided == nil {
		t.Skip("the kernel has no membarrier")
	}
	<-d.fences.decided
	d.fences.decided = make(chan struct{}) // it never ends
	d.fences.decideBy = time.Now().Add(20 * time.Millisecond)
	d.fences.unneeded.Store(false)
	resolved := make(chan error, 1)
	go func() {
		_, err := d.Resolve(d.addr)
		resolved <- err
	}()
	select {
	case err := <-resolved:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Resolve waits for the registration")
	}
}
