package direct

import (
	"runtime"
	"testing"
	"time"
)

// The front keeps pointers to words of objects that Go may have forgotten.
func TestPinnedObjectsStay(t *testing.T) {
	type object struct{ word [8]uint64 }
	var pins Pins
	freed := make(chan string, 2)
	word := func() *uint64 {
		pinned, other := new(object), new(object)
		runtime.AddCleanup(pinned, func(name string) { freed <- name }, "the pinned object")
		runtime.AddCleanup(other, func(name string) { freed <- name }, "the other object")
		pins.Pin(pinned)
		pins.Pin(pinned) // once is enough
		pinned.word[3] = 7
		return &pinned.word[3]
	}
	w := Address(word())
	for range 3 {
		runtime.GC()
	}
	select {
	case name := <-freed:
		if name != "the other object" {
			t.Errorf("%s was freed", name)
		}
	case <-time.After(10 * time.Second):
		t.Error("the garbage collector did not free the object that is not pinned")
	}
	if len(freed) != 0 || len(pins.pinned) != 1 || w == 0 {
		t.Errorf("%d more objects were freed, and there are %d pins", len(freed), len(pins.pinned))
	}
	pins.pinner.Unpin()
}
