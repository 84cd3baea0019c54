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
		call := []func(*mpi.Comm, int, int) error{lateAlltoall, lateAllgather, lateAllreduce, lateBcast}[n%4]
		if err := call(c, n, bytes); err != nil {
			return fmt.Errorf("call %d, %d bytes: %w", n, bytes, err)
		}
	}
	fmt.Printf("rank %d has made %d calls\n", c.Rank(), calls)
	return nil
}

// filled returns the data of rank from for rank to in a call.
func filled(from, to, n, bytes int) []byte {
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

func lateAlltoall(c *mpi.Comm, n, bytes int) error {
	var in, want []byte
	for r := range c.Size() {
		in, want = append(in, filled(c.Rank(), r, n, bytes)...), append(want, filled(r, c.Rank(), n, bytes)...)
	}
	out := make([]byte, len(in))
	if err := mpi.Alltoall(c, in, out); err != nil {
		return err
	}
	return compare(out, want)
}

func lateAllgather(c *mpi.Comm, n, bytes int) error {
	var want []byte
	for r := range c.Size() {
		want = append(want, filled(r, 0, n, bytes)...)
	}
	out := make([]byte, len(want))
	if err := mpi.Allgather(c, filled(c.Rank(), 0, n, bytes), out); err != nil {
		return err
	}
	return compare(out, want)
}

func lateAllreduce(c *mpi.Comm, n, bytes int) error {
	want := make([]byte, bytes)
	for r := range c.Size() {
		for i, b := range filled(r, 0, n, bytes) {
			want[i] += b
		}
	}
	out := make([]byte, bytes)
	if err := mpi.Allreduce(c, filled(c.Rank(), 0, n, bytes), out, mpi.Sum[byte]()); err != nil {
		return err
	}
	return compare(out, want)
}

func lateBcast(c *mpi.Comm, n, bytes int) error {
	root := n % c.Size()
	buf := filled(c.Rank(), 0, n, bytes)
	if err := mpi.Bcast(c, buf, root); err != nil {
		return err
	}
	return compare(buf, filled(root, 0, n, bytes))
}
