//go:build !muster_portable

package iwarp

import (
	"os"
	"testing"
)

// TestCloseLeavesNoDescriptor counts descriptors right when Close returns: a program that
// opens and closes devices in a loop must not accumulate any.
func TestCloseLeavesNoDescriptor(t *testing.T) {
	count := func() int {
		t.Helper()
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	before := count()
	for range 50 {
		d, err := Open(Config{})
		if err != nil {
			t.Fatal(err)
		}
		dev := d.(*device)
		dev.mu.Lock()
		err = dev.StartThread()
		dev.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if now := count(); now != before {
			t.Fatalf("%d descriptors are open after Close, %d were before Open", now, before)
		}
		if err := d.Close(); err != nil {
			t.Fatalf("close a device again: %v", err)
		}
	}
}
