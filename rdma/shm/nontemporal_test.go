package shm

import (
	"bytes"
	"testing"
)

// TestCopyNonTemporal copies between all alignments and checks the surrounding bytes.
func TestCopyNonTemporal(t *testing.T) {
	from, want := pattern(1, 400), make([]byte, 600)
	for _, n := range []int{0, 1, 63, 64, 65, 127, 128, 129, 300} {
		for at := range 2 * lineBytes {
			to := make([]byte, 600)
			clear(want)
			copyNonTemporal(to[at:at+n], from[at/2:])
			copy(want[at:at+n], from[at/2:])
			if !bytes.Equal(to, want) {
				t.Fatalf("%d bytes to offset %d differ from the result of copy", n, at)
			}
		}
	}
}
