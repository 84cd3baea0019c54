package mpi_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestFileDirect reads and writes without the cache of the system: ranges and addresses that begin and end within
// blocks, alone and together, beside accesses by the cache, and at the end of the file.
func TestFileDirect(t *testing.T) {
	mpitest.Sizes(t, []int{1, 3}, func(t *testing.T, c *mpi.Comm) {
		f, err := c.OpenFile(fileName(t, c), os.O_RDWR|os.O_CREATE, mpi.FileHints{DirectRead: true, DirectWrite: true})
		noError(t, err, "OpenFile")
		if h := f.Hints(); !h.DirectRead || !h.DirectWrite {
			t.Skip("the file system has no access without the cache")
		}
		me, size := c.Rank(), c.Size()
		for _, offset := range []int{0, 1, 4095, 4096, 5000} {
			for _, length := range []int{64 << 10, 68<<10 - 1, 1<<20 + 9000} {
				for _, shift := range []int{0, 1} { // of the address
					what := fmt.Sprintf("offset %d, length %d, shift %d", offset, length, shift)
					memory := make([]byte, length+8192)
					mine := memory[shift : shift+length]
					for i := range mine {
						mine[i] = byte(i*7 + i>>9 + me + offset)
					}
					transfers(t, what, length)(f.WriteAt(mine, int64(offset+me*length)))
					noError(t, c.Barrier(), "Barrier")
					n, err := f.Size()
					if want := int64(offset + size*length); err != nil || n < want {
						t.Fatalf("%s: the size is %d, %v; want at least %d", what, n, err, want)
					}
					checkDirect(t, f, what, mine, int64(offset+me*length))
					noError(t, c.Barrier(), "Barrier")
				}
			}
		}
		noError(t, f.SetSize(100_000), "SetSize")
		if n, err := f.ReadAt(make([]byte, 90_000), 20_000); n != 80_000 || err != io.EOF {
			t.Errorf("at the end of the file: %d bytes, %v; want 80000 and io.EOF", n, err)
		}
		noError(t, c.Barrier(), "Barrier")
		every, err := mpi.Vector[byte](1, 1000, 1000)
		noError(t, err, "Vector")
		every, err = every.Resized(1000 * size)
		noError(t, err, "Resized")
		v, err := mpi.OpenView(f, int64(1000*me), every)
		noError(t, err, "OpenView")
		mine := bytes.Repeat([]byte{byte(1 + me)}, 500_000)
		transfers(t, "WriteAtAll", len(mine))(v.WriteAtAll(mine, 0))
		got := make([]byte, len(mine))
		transfers(t, "ReadAtAll", len(got))(v.ReadAtAll(got, 0))
		if !bytes.Equal(got, mine) {
			t.Error("a collective call reads something else than was written")
		}
		noError(t, f.Close(), "Close")
	})
}

// checkDirect reads a range with and without the cache.
func checkDirect(t *testing.T, f *mpi.File, what string, want []byte, off int64) {
	t.Helper()
	got := make([]byte, len(want))
	transfers(t, what, len(got))(f.ReadAt(got, off))
	if !bytes.Equal(got, want) {
		t.Fatalf("%s: reads something else than was written", what)
	}
	other, err := os.ReadFile(f.Name())
	if err != nil || !bytes.Equal(other[off:off+int64(len(want))], want) {
		t.Fatalf("%s: the file has something else than was written: %v", what, err)
	}
}
