package shmem

import (
	"testing"
	"time"
)

// TestWithin checks that a registration that the kernel does not complete delays nobody.
func TestWithin(t *testing.T) {
	never := make(chan bool)
	defer close(never)
	if Within(time.Millisecond, func() bool { return <-never }) {
		t.Error("a function that does not return has succeeded")
	}
	for _, want := range []bool{true, false} {
		if got := Within(time.Minute, func() bool { return want }); got != want {
			t.Errorf("%v becomes %v", want, got)
		}
	}
}
