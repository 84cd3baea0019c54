package nodecoll

import (
	"testing"
	"time"
)

// TestWithin: a registration that the kernel does not complete delays no team.
func TestWithin(t *testing.T) {
	never := make(chan bool)
	defer close(never)
	if within(time.Millisecond, func() bool { return <-never }) {
		t.Error("a function that does not return has succeeded")
	}
	for _, want := range []bool{true, false} {
		if got := within(time.Minute, func() bool { return want }); got != want {
			t.Errorf("%v becomes %v", want, got)
		}
	}
}
