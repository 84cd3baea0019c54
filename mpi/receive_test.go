package mpi_test

// Receives: shorter and longer messages, wildcards, order, and ProcNull.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// A shorter message does not change the rest of the buffer; a longer one is ErrTruncate,
// with its first part received and nothing written beyond the buffer.
func TestShorterAndLongerMessages(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2}, func(t *testing.T, c *mpi.Comm) {
		peer := c.Size() - 1 - c.Rank()
		for _, sent := range []int{0, 1, 24, 48, 64, 4096, 8192, 65536, 1 << 20} {
			for _, room := range []int{0, 1, sent / 2, sent - 1, sent + 1, 2 * sent} {
				for _, late := range []bool{false, true} {
					if room < 0 {
						continue
					}
					what := fmt.Sprintf("message of %d bytes into a buffer of %d (late receive: %v)", sent, room, late)
					whole, in := guarded(room)
					var r, s mpi.Request
					if late {
						s = mpi.Isend(c, pattern(sent, 7), peer, 2)
						barrier(t, c)
						r = mpi.Irecv(c, in, peer, 2)
					} else {
						r = mpi.Irecv(c, in, peer, 2)
						barrier(t, c)
						s = mpi.Isend(c, pattern(sent, 7), peer, 2)
					}
					st, err := r.Wait()
					got := min(sent, room)
					if sent <= room {
						noError(t, err, what)
					} else {
						e := wantClass(t, err, mpi.ErrTruncate, what)
						if e.Peer != peer || e.Tag != 2 || e.Bytes != got || !strings.Contains(err.Error(), "Probe") {
							t.Fatalf("%s: error %q does not say from whom, how much, or what to do", what, err)
						}
					}
					if st.Bytes != got || st.Source != peer || st.Tag != 2 {
						t.Fatalf("%s: status is %+v", what, st)
					}
					wantPattern(t, in[:got], 7, what)
					wantGuards(t, whole, got, what)
					_, err = s.Wait()
					noError(t, err, "the sender of a truncated message is not to blame: "+what)
				}
			}
		}
	})
}

// Messages from one sender do not overtake, whatever their protocol, and also
// when received by wildcards (MPI-4.1 section 3.5).
func TestMessagesKeepOrder(t *testing.T) {
	sizes := []int{8, 100000, 8, 0, 70000, 4096, 300000, 1, 20000, 64}
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		const rounds = 3
		var sends []mpi.Request
		for range rounds {
			for i, size := range sizes {
				for dst := range c.Size() {
					sends = append(sends, mpi.Isend(c, pattern(size, i), dst, i%3))
				}
			}
		}
		in := make([]byte, 300000)
		for i := range rounds * len(sizes) {
			for peer := range c.Size() {
				st, err := mpi.Recv(c, in, peer, mpi.AnyTag)
				noError(t, err, "Recv with AnyTag")
				kind := i % len(sizes)
				if st.Bytes != sizes[kind] || st.Tag != kind%3 {
					t.Fatalf("message %d from rank %d has %d bytes and tag %d, want %d and %d",
						i, peer, st.Bytes, st.Tag, sizes[kind], kind%3)
				}
				wantPattern(t, in[:st.Bytes], kind, fmt.Sprintf("message %d from rank %d", i, peer))
			}
		}
		err := mpi.WaitAll(sends...)
		noError(t, err, "WaitAll of the sends")
	})
}

// AnySource receives the messages of all ranks; per sender they are in order, and each
// arrives once.
func TestAnySourceAnyTag(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		const each = 40
		var sends []mpi.Request
		if c.Rank() != 0 || c.Size() == 1 {
			for i := range each {
				size := []int{4, 4, 4, 30000}[i%4]
				buf := make([]int32, size/4)
				buf[0] = int32(i)
				sends = append(sends, mpi.Isend(c, buf, 0, i%5))
			}
		}
		if c.Rank() != 0 {
			noError(t, mpi.WaitAll(sends...), "sends to the collector")
			return
		}
		senders := max(1, c.Size()-1)
		seen := map[int]int{}
		for range senders * each {
			buf := make([]int32, 7500)
			st, err := mpi.Recv(c, buf, mpi.AnySource, mpi.AnyTag)
			noError(t, err, "Recv from anybody")
			if st.Source < 0 || st.Source >= c.Size() {
				t.Fatalf("status names rank %d as the source", st.Source)
			}
			if int(buf[0]) != seen[st.Source] || st.Tag != seen[st.Source]%5 {
				t.Fatalf("from rank %d came message %d with tag %d, want %d", st.Source, buf[0], st.Tag, seen[st.Source])
			}
			seen[st.Source]++
		}
		noError(t, mpi.WaitAll(sends...), "sends to oneself")
		if len(seen) != senders {
			t.Errorf("messages came from %d ranks, want %d", len(seen), senders)
		}
	})
}

// Receives match in posting order, including wildcards.
func TestReceivesMatchInOrderOfPosting(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		if c.Rank() == 0 {
			barrier(t, c)
			for i := range 6 {
				noError(t, mpi.Send(c, []int64{int64(i)}, 1, 9), "Send")
			}
			return
		}
		from := []int{0, mpi.AnySource, mpi.AnySource, 0, 0, mpi.AnySource}
		tags := []int{9, mpi.AnyTag, 9, mpi.AnyTag, 9, 9}
		bufs := make([][]int64, 6)
		reqs := make([]mpi.Request, 6)
		for i := range reqs {
			bufs[i] = make([]int64, 1)
			reqs[i] = mpi.Irecv(c, bufs[i], from[i], tags[i])
		}
		barrier(t, c)
		err := mpi.WaitAll(reqs...)
		noError(t, err, "WaitAll")
		for i, b := range bufs {
			if b[0] != int64(i) {
				t.Errorf("receive %d, posted with source %d and tag %d, got message %d", i, from[i], tags[i], b[0])
			}
		}
	})
}

// Messages with different tags can be received in any order.
func TestTagsSelect(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		next, prev := neighbors(c)
		const n = 200
		for i := range n {
			noError(t, mpi.Send(c, []int{i}, next, i), "Send")
		}
		for i := n - 1; i >= 0; i-- {
			in := []int{-1}
			_, err := mpi.Recv(c, in, prev, i)
			noError(t, err, "Recv")
			if in[0] != i {
				t.Fatalf("tag %d brought message %d", i, in[0])
			}
		}
		noError(t, waitErr(mpi.Isend(c, []int{1}, next, mpi.MaxTag)), "Isend with the largest tag")
		st, err := mpi.Recv(c, []int{0}, prev, mpi.MaxTag)
		noError(t, err, "Recv with the largest tag")
		if st.Tag != mpi.MaxTag {
			t.Errorf("tag is %d, want %d", st.Tag, mpi.MaxTag)
		}
	})
}

// Sends to ProcNull and receives from it complete at once, with a status that says so
// (MPI-4.1 section 3.10).
func TestProcNull(t *testing.T) {
	mpitest.Sizes(t, []int{1, 2}, func(t *testing.T, c *mpi.Comm) {
		buf := []byte{1, 2, 3}
		for _, m := range blocking {
			noError(t, m.send(c, buf, mpi.ProcNull, 1), m.name+" to ProcNull")
		}
		for _, m := range nonBlocking {
			noError(t, waitErr(m.start(c, buf, mpi.ProcNull, 1)), m.name+" to ProcNull")
		}
		want := func(st mpi.Status, err error, what string) {
			t.Helper()
			noError(t, err, what)
			if st.Source != mpi.ProcNull || st.Tag != mpi.AnyTag || st.Bytes != 0 {
				t.Errorf("%s: status is %+v, want source ProcNull, any tag, no bytes", what, st)
			}
		}
		st, err := mpi.Recv(c, buf, mpi.ProcNull, 1)
		want(st, err, "Recv")
		st, err = mpi.Irecv(c, buf, mpi.ProcNull, mpi.AnyTag).Wait()
		want(st, err, "Irecv")
		st, err = mpi.RecvInit(c, buf, mpi.ProcNull, 1).Start().Wait()
		want(st, err, "RecvInit")
		st, err = mpi.Irecv(c, buf, mpi.ProcNull, 1).WaitOrCancel(context.Background())
		want(st, err, "WaitOrCancel")
		st, err = c.Probe(mpi.ProcNull, 1)
		want(st, err, "Probe")
		st, ok, err := c.Iprobe(mpi.ProcNull, 1)
		want(st, err, "Iprobe")
		m, st, err := c.Mprobe(mpi.ProcNull, 1)
		want(st, err, "Mprobe")
		st, err = mpi.Mrecv(m, buf)
		want(st, err, "Mrecv")
		m2, st, ok2, err := c.Improbe(mpi.ProcNull, 1)
		want(st, err, "Improbe")
		st, err = mpi.Imrecv(m2, buf).Wait()
		want(st, err, "Imrecv")
		if !ok || !ok2 {
			t.Error("Iprobe and Improbe of ProcNull must say yes at once")
		}
		st, err = mpi.Sendrecv(c, buf, mpi.ProcNull, 1, buf, mpi.ProcNull, 1)
		want(st, err, "Sendrecv")
		st, err = mpi.SendrecvReplace(c, buf, mpi.ProcNull, 1, mpi.ProcNull, 1)
		want(st, err, "SendrecvReplace")
		noError(t, mpi.SendValue(c, "x", mpi.ProcNull, 1), "SendValue to ProcNull")
		v, st, err := mpi.RecvValue[string](c, mpi.ProcNull, 1)
		want(st, err, "RecvValue")
		if v != "" || string(buf) != "\x01\x02\x03" {
			t.Errorf("receives from ProcNull wrote %q and %v", v, buf)
		}
		i, st, err := mpi.WaitAny(mpi.Request{}, mpi.Irecv(c, buf, mpi.ProcNull, 1))
		want(st, err, "WaitAny")
		if i != 1 {
			t.Errorf("WaitAny gives index %d for the receive from ProcNull, want 1", i)
		}
	})
}

func waitErr(r mpi.Request) error {
	_, err := r.Wait()
	return err
}
