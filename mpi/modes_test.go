package mpi_test

// Every send mode in every form, at sizes around the thresholds, with the
// receive before and after the send (MPI-4.1 sections 3.4, 3.7.2, 3.9).

import (
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

type starter func(c *mpi.Comm, buf []byte, dst, tag int) mpi.Request

// nonBlocking are the forms of send that return a request.
var nonBlocking = []struct {
	name  string
	start starter
	ready bool // the receive must have been posted
}{
	{"Isend", mpi.Isend[byte], false},
	{"Issend", mpi.Issend[byte], false},
	{"Ibsend", mpi.Ibsend[byte], false},
	{"Irsend", mpi.Irsend[byte], true},
	{"SendInit", func(c *mpi.Comm, buf []byte, dst, tag int) mpi.Request {
		return mpi.SendInit(c, buf, dst, tag).Start()
	}, false},
	{"SsendInit", func(c *mpi.Comm, buf []byte, dst, tag int) mpi.Request {
		return mpi.SsendInit(c, buf, dst, tag).Start()
	}, false},
	{"BsendInit", func(c *mpi.Comm, buf []byte, dst, tag int) mpi.Request {
		return mpi.BsendInit(c, buf, dst, tag).Start()
	}, false},
	{"RsendInit", func(c *mpi.Comm, buf []byte, dst, tag int) mpi.Request {
		return mpi.RsendInit(c, buf, dst, tag).Start()
	}, true},
}

var blocking = []struct {
	name string
	send func(c *mpi.Comm, buf []byte, dst, tag int) error
}{
	{"Send", mpi.Send[byte]}, {"Ssend", mpi.Ssend[byte]}, {"Bsend", mpi.Bsend[byte]}, {"Rsend", mpi.Rsend[byte]},
}

func TestModesReceivePosted(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for _, size := range thresholds {
			out := pattern(size, c.Rank())
			exchange := func(name string, send func() error) {
				what := fmt.Sprintf("%s of %d bytes from rank %d to %d", name, size, c.Rank(), next)
				whole, in := guarded(size)
				r := mpi.Irecv(c, in, prev, size)
				barrier(t, c)
				noError(t, send(), what)
				st, err := r.Wait()
				noError(t, err, "receive for "+what)
				if st.Source != prev || st.Tag != size || st.Bytes != size || st.Cancelled {
					t.Fatalf("%s: status is %+v, want source %d, tag %d, %d bytes", what, st, prev, size, size)
				}
				wantPattern(t, in, prev, what)
				wantGuards(t, whole, size, what)
			}
			for _, m := range blocking {
				exchange(m.name, func() error { return m.send(c, out, next, size) })
			}
			for _, m := range nonBlocking {
				exchange(m.name, func() error {
					_, err := m.start(c, out, next, size).Wait()
					return err
				})
			}
		}
	})
}

func TestModesReceiveLate(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for _, size := range thresholds {
			out := pattern(size, c.Rank())
			for _, m := range nonBlocking {
				if m.ready {
					continue
				}
				what := fmt.Sprintf("%s of %d bytes before its receive", m.name, size)
				r := m.start(c, out, next, 3)
				barrier(t, c)
				whole, in := guarded(size)
				st, err := mpi.Recv(c, in, prev, 3)
				noError(t, err, what)
				if st.Bytes != size || st.Source != prev {
					t.Fatalf("%s: status is %+v", what, st)
				}
				wantPattern(t, in, prev, what)
				wantGuards(t, whole, size, what)
				_, err = r.Wait()
				noError(t, err, what)
			}
		}
	})
}

// A persistent request is started many times, with new contents each time.
func TestPersistentManyTimes(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		for _, size := range []int{8, 5000, 200000} {
			out, in := make([]byte, size), make([]byte, size)
			ps := []*mpi.Persistent{mpi.RecvInit(c, in, prev, 1), mpi.SendInit(c, out, next, 1)}
			var reqs []mpi.Request
			for round := range 5 {
				copy(out, pattern(size, 10*round+c.Rank()))
				reqs = mpi.StartAll(ps, reqs[:0])
				err := mpi.WaitAll(reqs...)
				noError(t, err, "WaitAll of persistent requests")
				wantPattern(t, in, 10*round+prev, fmt.Sprintf("round %d of a persistent receive of %d bytes", round, size))
			}
		}
	})
}

// Ssend completes only when its receive has been matched; Send of a short message does not
// wait for it.
func TestSynchronousWaits(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		for _, size := range []int{0, 8, 5000, 300000} {
			if c.Rank() == 0 {
				r := mpi.Issend(c, pattern(size, 1), 1, 5)
				noError(t, mpi.Send(c, []byte{1}, 1, 6), "Send behind an Issend")
				_, err := mpi.Recv(c, make([]byte, 1), 1, 6)
				noError(t, err, "answer to the short message")
				if _, done, _ := r.Test(); done {
					t.Fatalf("Issend of %d bytes ended before its receive was posted", size)
				}
				noError(t, mpi.Send(c, []byte{1}, 1, 7), "permission to receive")
				_, err = r.Wait()
				noError(t, err, "Issend after its receive")
				continue
			}
			one := make([]byte, 1)
			_, err := mpi.Recv(c, one, 0, 6)
			noError(t, err, "receive the short message first")
			noError(t, mpi.Send(c, one, 0, 6), "answer")
			_, err = mpi.Recv(c, one, 0, 7)
			noError(t, err, "wait for the sender's look")
			in := make([]byte, size)
			_, err = mpi.Recv(c, in, 0, 5)
			noError(t, err, "receive of the synchronous message")
			wantPattern(t, in, 1, "synchronous message")
		}
	})
}

func neighbors(c *mpi.Comm) (next, prev int) {
	return (c.Rank() + 1) % c.Size(), (c.Rank() + c.Size() - 1) % c.Size()
}
