package shmem

import (
	"testing"
	"unsafe"
)

// TestPublish checks that a reader that sees the word of a round sees its data.
func TestPublish(t *testing.T) {
	const rounds = 10000
	mem := AlignedBytes(3 * LineBytes)
	if uintptr(unsafe.Pointer(&mem[0]))%LineBytes != 0 || cap(mem) != 3*LineBytes {
		t.Fatalf("%p with %d bytes is not aligned", &mem[0], cap(mem))
	}
	var word, done Word
	var data [8]uint64
	end := make(chan int)
	go func() {
		wrong := 0
		for round := uint64(1); round <= rounds; round++ {
			for word.Load() != round {
			}
			for _, v := range data {
				if v != round {
					wrong++
				}
			}
			done.PublishFenced(round)
		}
		end <- wrong
	}()
	for round := uint64(1); round <= rounds; round++ {
		for i := range data {
			data[i] = round
		}
		word.Publish(round)
		for done.Load() != round {
		}
	}
	if wrong := <-end; wrong > 0 {
		t.Errorf("%d words of data were older than the word that announced them", wrong)
	}
	if done.Add(2) != rounds+2 || done.CompareAndSwap(1, 2) || !done.CompareAndSwap(rounds+2, 2) {
		t.Error("Add or CompareAndSwap is wrong")
	}
}
