package mpi_test

// Buffered sends (MPI-4.1 section 3.6), Sendrecv (section 3.10), and messages to
// oneself.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// Bsend returns whatever the receiver does, and its buffer may be reused.
func TestBsendNeedsNoReceiver(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		sizes := []int{0, 8, 5000, 100000, 1 << 20}
		for _, size := range sizes {
			buf := pattern(size, 6)
			noError(t, mpi.Bsend(c, buf, next, size), "Bsend without a receiver")
			clear(buf)
		}
		for i := len(sizes) - 1; i >= 0; i-- {
			in := make([]byte, sizes[i])
			_, err := mpi.Recv(c, in, prev, sizes[i])
			noError(t, err, "Recv of a buffered message")
			wantPattern(t, in, 6, fmt.Sprintf("buffered message of %d bytes", sizes[i]))
		}
	})
}

// Beyond the limit Bsend fails with ErrBuffer and suggests a remedy; received messages
// free their space.
func TestBsendLimit(t *testing.T) {
	cfg := &mpi.Config{BufferedLimit: 2 << 20}
	mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
		large := pattern(1<<20, 2)
		if c.Rank() == 0 {
			noError(t, mpi.Bsend(c, large, 1, 1), "first Bsend")
			noError(t, mpi.Bsend(c, large, 1, 1), "second Bsend")
			err := mpi.Bsend(c, large, 1, 1)
			wantClass(t, err, mpi.ErrBuffer, "third Bsend")
			if !strings.Contains(err.Error(), "MUSTER_BUFFERED_LIMIT") || !strings.Contains(err.Error(), "2097152") {
				t.Errorf("error %q does not say how to raise the limit of 2097152", err)
			}
			barrier(t, c)
			_, err = mpi.Recv(c, make([]byte, 1), 1, 2)
			noError(t, err, "receiver's word that both have come")
			for range 1_000_000 { // the library notes the end of a send a little later
				if err = mpi.Bsend(c, large, 1, 3); err == nil {
					break
				}
			}
			noError(t, err, "Bsend after the others were received")
			return
		}
		barrier(t, c)
		in := make([]byte, 1<<20)
		for range 2 {
			_, err := mpi.Recv(c, in, 0, 1)
			noError(t, err, "Recv")
			wantPattern(t, in, 2, "buffered message")
		}
		noError(t, mpi.Send(c, in[:1], 0, 2), "Send")
		_, err := mpi.Recv(c, in, 0, 3)
		noError(t, err, "Recv of the last")
	})
}

// All ranks send and receive at once, at sizes that would block with Send.
func TestSendrecv(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for _, size := range thresholds {
			in := make([]byte, size)
			st, err := mpi.Sendrecv(c, pattern(size, c.Rank()), next, 1, in, prev, 1)
			noError(t, err, "Sendrecv")
			if st.Source != prev || st.Tag != 1 || st.Bytes != size {
				t.Fatalf("Sendrecv of %d bytes tells %+v", size, st)
			}
			wantPattern(t, in, prev, "Sendrecv")

			buf := pattern(size, c.Rank())
			st, err = mpi.SendrecvReplace(c, buf, next, 2, mpi.AnySource, 2)
			noError(t, err, "SendrecvReplace")
			if st.Source != prev || st.Bytes != size {
				t.Fatalf("SendrecvReplace of %d bytes tells %+v", size, st)
			}
			wantPattern(t, buf, prev, "SendrecvReplace")

			// To oneself.
			st, err = mpi.Sendrecv(c, pattern(size, 5), c.Rank(), 3, in, c.Rank(), 3)
			noError(t, err, "Sendrecv with oneself")
			if st.Source != c.Rank() || st.Bytes != size {
				t.Fatalf("Sendrecv of %d bytes with oneself tells %+v", size, st)
			}
			wantPattern(t, in, 5, "Sendrecv with oneself")
		}
	})
}

// The two sides of Sendrecv may have different types, and one side may be ProcNull: a
// shift along a line, in which even ranks send uint64 and odd ranks uint32.
func TestSendrecvShift(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		if r := c.Rank(); r%2 == 0 {
			shiftAlongLine(t, c, []uint64{uint64(r)}, []uint32{99, 99}, uint32(r-1))
		} else {
			shiftAlongLine(t, c, []uint32{uint32(r), 0}, []uint64{99}, uint64(r-1))
		}
	})
}

func shiftAlongLine[T, U uint32 | uint64](t *testing.T, c *mpi.Comm, out []T, in []U, want U) {
	up, down := c.Rank()+1, c.Rank()-1
	if up == c.Size() {
		up = mpi.ProcNull
	}
	if down < 0 {
		down = mpi.ProcNull
	}
	for i, name := range []string{"Sendrecv", "Isendrecv"} {
		in[0] = 99
		var st mpi.Status
		var err error
		if i == 0 {
			st, err = mpi.Sendrecv(c, out, up, 1, in, down, 1)
		} else {
			st, err = mpi.Isendrecv(c, out, up, 1, in, down, 1).Wait()
		}
		noError(t, err, name+" along a line")
		if down == mpi.ProcNull {
			if st.Source != mpi.ProcNull || in[0] != 99 {
				t.Errorf("%s: the first of the line received %v from %d", name, in, st.Source)
			}
		} else if in[0] != want || st.Bytes != 8 {
			t.Errorf("%s: rank %d received %v, %+v", name, c.Rank(), in, st)
		}
	}
}

// Every rank sends to itself and to all others in all modes at once.
func TestToOneselfInAllModes(t *testing.T) {
	mpitest.Sizes(t, []int{1, 3}, func(t *testing.T, c *mpi.Comm) {
		me := c.Rank()
		for _, size := range thresholds {
			for i, m := range nonBlocking {
				in := make([]byte, size)
				r := mpi.Irecv(c, in, me, i)
				s := m.start(c, pattern(size, i), me, i)
				noError(t, waitErr(r), m.name+" to oneself: receive")
				noError(t, waitErr(s), m.name+" to oneself")
				wantPattern(t, in, i, m.name+" to oneself")
			}
			for i, m := range blocking {
				in := make([]byte, size)
				r := mpi.Irecv(c, in, mpi.AnySource, 100+i)
				noError(t, m.send(c, pattern(size, i), me, 100+i), m.name+" to oneself with the receive posted")
				noError(t, waitErr(r), m.name+" to oneself: receive")
				wantPattern(t, in, i, m.name+" to oneself")
			}
		}
	})
}
