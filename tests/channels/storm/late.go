package main

// Collectives that ranks enter at different times, with every byte checked.
// MUSTER_COLLECTIVE selects the algorithms.

import (
	"bytes"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func comeLate(c *mpi.Comm, calls, longest int) error {
	for n := range calls {
		// A third of the ranks enters at once, the others up to 3 ms later.
		if r := mix(c.Rank(), 7, n); r%3 > 0 {
			time.Sleep(time.Duration(r>>8%3000) * time.Microsecond)
		}
		bytes := 8 * (1 + length(0, 1, n, longest)/8)
		call := []func(*mpi.Comm, int, int) (time.Duration, error){checkedAlltoall, checkedAllgather, checkedAllreduce, checkedBcast}[n%4]
		if _, err := call(c, n, bytes); err != nil {
			return fmt.Errorf("call %d, %d bytes: %w", n, bytes, err)
		}
	}
	fmt.Printf("rank %d has made %d calls\n", c.Rank(), calls)
	return nil
}

// makeData returns the data of rank from for rank to in a call.
func makeData(from, to, n, bytes int) []byte {
	b := make([]byte, bytes)
	fill(b, from, to, n)
	return b
}

func compare(got, want []byte) error {
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the result has wrong bytes")
	}
	return nil
}

// checkedAlltoall makes a call, compares every byte of its result, and returns the time of
// the call. So do the functions below.
func checkedAlltoall(c *mpi.Comm, n, bytes int) (time.Duration, error) {
	var in, want []byte
	for r := range c.Size() {
		in, want = append(in, makeData(c.Rank(), r, n, bytes)...), append(want, makeData(r, c.Rank(), n, bytes)...)
	}
	out := make([]byte, len(in))
	took, err := measureCall(func() error { return mpi.Alltoall(c, in, out) })
	if err != nil {
		return took, err
	}
	return took, compare(out, want)
}

func checkedAllgather(c *mpi.Comm, n, bytes int) (time.Duration, error) {
	var want []byte
	for r := range c.Size() {
		want = append(want, makeData(r, 0, n, bytes)...)
	}
	out := make([]byte, len(want))
	took, err := measureCall(func() error { return mpi.Allgather(c, makeData(c.Rank(), 0, n, bytes), out) })
	if err != nil {
		return took, err
	}
	return took, compare(out, want)
}

func checkedAllreduce(c *mpi.Comm, n, bytes int) (time.Duration, error) {
	want := make([]byte, bytes)
	for r := range c.Size() {
		for i, b := range makeData(r, 0, n, bytes) {
			want[i] += b
		}
	}
	out := make([]byte, bytes)
	took, err := measureCall(func() error { return mpi.Allreduce(c, makeData(c.Rank(), 0, n, bytes), out, mpi.Sum) })
	if err != nil {
		return took, err
	}
	return took, compare(out, want)
}

func checkedBcast(c *mpi.Comm, n, bytes int) (time.Duration, error) {
	root := n % c.Size()
	buf := makeData(c.Rank(), 0, n, bytes)
	took, err := measureCall(func() error { return mpi.Bcast(c, buf, root) })
	if err != nil {
		return took, err
	}
	return took, compare(buf, makeData(root, 0, n, bytes))
}
