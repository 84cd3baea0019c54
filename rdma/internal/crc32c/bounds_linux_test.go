package crc32c

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestBounds reads and writes up to a page without access, and from the page after one.
func TestBounds(t *testing.T) {
	page := unix.Getpagesize()
	guarded := func() []byte {
		mem, err := unix.Mmap(-1, 0, 4*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Munmap(mem) })
		for _, at := range []int{0, 3 * page} {
			if err := unix.Mprotect(mem[at:at+page], unix.PROT_NONE); err != nil {
				t.Fatal(err)
			}
		}
		return mem[page : 3*page]
	}
	src, dst := guarded(), guarded()
	for _, w := range widths() {
		for n := range 1200 {
			a := w.update(0, src[:n])
			b := w.update(0, src[len(src)-n:])
			if c, d := w.copy(dst[:n], src[:n], 0), w.copy(dst[len(dst)-n:], src[len(src)-n:], 0); a != c || b != d {
				t.Fatalf("width %d, %d bytes: %08x and %08x, copied %08x and %08x", w, n, a, b, c, d)
			}
		}
	}
}
