package mpi_test

// What the tests of this package share. They run on goroutines (go test) and on
// processes (go test -c, then muster run or mpiexec.hydra): see package mpitest.

import (
	"errors"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

func TestMain(m *testing.M) { mpitest.Main(m) }

// oneToFive is the numbers of ranks that calls are tested with.
var oneToFive = []int{1, 2, 3, 4, 5}

// thresholds is sizes on both sides of where the library changes its ways: what
// fits a header, a ring cell, a segment, the eager limit.
var thresholds = []int{0, 1, 23, 24, 25, 47, 48, 49, 63, 64, 65, 4095, 4096, 4097, 8191, 8192, 8193, 65535, 65536, 65537, 1 << 20}

// pattern is n bytes that depend on a seed and on their place.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*31 + i + i>>8)
	}
	return b
}

// wantPattern says where bytes first differ from the pattern.
func wantPattern(t *testing.T, b []byte, seed int, what string) {
	t.Helper()
	for i := range b {
		if b[i] != byte(seed*31+i+i>>8) {
			t.Fatalf("%s: byte %d of %d is %d, want %d", what, i, len(b), b[i], byte(seed*31+i+i>>8))
		}
	}
}

const guardByte = 0xEE

// guarded is a buffer between two fences of guard bytes.
func guarded(n int) (whole, middle []byte) {
	whole = make([]byte, n+128)
	for i := range whole {
		whole[i] = guardByte
	}
	return whole, whole[64 : 64+n : 64+n]
}

// wantGuards checks the fences, and the bytes of the middle from used on.
func wantGuards(t *testing.T, whole []byte, used int, what string) {
	t.Helper()
	for i, b := range whole {
		if (i < 64 || i >= 64+used) && b != guardByte {
			t.Fatalf("%s: byte %d, outside of the %d bytes received, was written", what, i-64, used)
		}
	}
}

// noError ends the rank if a call failed that should not.
func noError(t *testing.T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// wantClass checks that a call failed with an error of a class, made by this
// package.
func wantClass(t *testing.T, err error, class mpi.Class, what string) *mpi.Error {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("%s: error is %v, want class %q", what, err, class.Error())
	}
	var e *mpi.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: error %v (%T) has no *mpi.Error inside", what, err, err)
	}
	return e
}

func barrier(t *testing.T, c *mpi.Comm) {
	t.Helper()
	noError(t, mpi.Barrier(c), "Barrier")
}
