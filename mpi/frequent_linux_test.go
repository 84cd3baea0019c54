//go:build !muster_portable

package mpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/mpitest"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

func strict(channel, frequent, eager string) *mpi.Config {
	return &mpi.Config{Network: "iwarp", NoSharedMemory: true, Advanced: mpi.Advanced{Strict: true, Frequent: frequent, Eager: eager}, Channel: channel}
}

// Every message arrives with its contents at the time of the send, from any buffer, of any
// length, by any call: a buffer is overwritten as soon as its send has completed.
func TestFrequentBuffers(t *testing.T) {
	rdmatest.NeedLocking(t)
	for _, v := range []struct{ channel, frequent, eager string }{
		{"rc", "auto", ""}, {"rc", "always", ""}, {"rc", "always", "rings"}, {"rd", "auto", ""}, {"rd", "always", ""}, {"rc", "never", ""},
	} {
		t.Run(fmt.Sprintf("%s %s %s", v.channel, v.frequent, v.eager), func(t *testing.T) {
			mpitest.RunConfig(t, 2, strict(v.channel, v.frequent, v.eager), func(t *testing.T, c *mpi.Comm) {
				for _, size := range []int{1, 127, 128, 1000, 4096, 8192, 16000, 20000, 100_000} {
					swapOften(t, c, size, 30)
				}
				_, did, err := inspect.FrequentBuffers(c, 1-c.Rank())
				if err != nil {
					t.Fatal(err)
				}
				if direct := did.Direct > 0; direct != (v.frequent == "always") && v.frequent != "auto" {
					t.Errorf("%d messages were sent from where they are", did.Direct)
				}
				if did.Refused > 0 {
					t.Errorf("%d buffers could not be registered", did.Refused)
				}
				if byRing := did.Ring > 0; byRing != (v.frequent == "always" && v.eager == "rings") {
					t.Errorf("%d messages were written from where they are into a ring", did.Ring)
				}
			})
		})
	}
}

// A buffer that collectives use is registered once, and then sent from without a copy. By
// default connections of software iWARP copy: decision 065.
func TestFrequentCollectiveBuffers(t *testing.T) {
	rdmatest.NeedLocking(t)
	for _, v := range []struct{ channel, frequent, eager string }{
		{"rc", "always", ""}, {"rc", "always", "rings"}, {"rd", "always", ""}, {"rc", "auto", ""}, {"rc", "never", ""},
	} {
		t.Run(fmt.Sprintf("%s %s %s", v.channel, v.frequent, v.eager), func(t *testing.T) {
			mpitest.RunConfig(t, 4, strict(v.channel, v.frequent, v.eager), func(t *testing.T, c *mpi.Comm) {
				for _, size := range []int{100, 1000, 8000} {
					repeatCollectives(t, c, size, 40, v.frequent == "always")
				}
				sent := []uint64{ownCounter(c, prof.BuffersCollective)}
				noError(t, mpi.Allreduce(c, sent, sent, mpi.Sum), "Allreduce")
				if (sent[0] > 0) != (v.frequent == "always") {
					t.Errorf("collectives sent %d messages from where they are", sent[0])
				}
			})
		})
	}
}

// ownCounter returns a counter of the calling rank.
func ownCounter(c *mpi.Comm, name prof.Name) uint64 {
	p := c.World().Profile()
	return p.Of(name)
}

// repeatCollectives calls collectives on the same buffers and checks the results. settled
// reports that nothing may be registered after some rounds.
func repeatCollectives(t *testing.T, c *mpi.Comm, size, rounds int, settled bool) {
	t.Helper()
	ranks := c.Size()
	one, sum := make([]byte, size), make([]byte, size)
	from, to := make([]byte, size*ranks), make([]byte, size*ranks)
	var made uint64
	for i := range rounds {
		root := i % ranks
		for j := range one {
			one[j] = byte(i + j + c.Rank())
		}
		for j := range from {
			from[j] = byte(i + 3*j + c.Rank())
		}
		noError(t, mpi.Allreduce(c, one, sum, mpi.Sum), "Allreduce")
		noError(t, mpi.Alltoall(c, from, to), "Alltoall")
		noError(t, mpi.Bcast(c, one, root), "Bcast")
		clear(from)
		for j := range one {
			want := ranks*(i+j) + ranks*(ranks-1)/2
			if one[j] != byte(i+j+root) || sum[j] != byte(want) {
				t.Fatalf("round %d, byte %d of %d: Bcast gives %d, want %d; Allreduce gives %d, want %d", i, j, size, one[j], byte(i+j+root), sum[j], byte(want))
			}
			for r := range ranks {
				if got, want := to[r*size+j], byte(i+3*(c.Rank()*size+j)+r); got != want {
					t.Fatalf("round %d, byte %d of %d from rank %d: Alltoall gives %d, want %d", i, j, size, r, got, want)
				}
			}
		}
		now := ownCounter(c, prof.RegistrationsMissed)
		if i > rounds/2 && settled && now > made {
			t.Errorf("round %d registered %d buffers, which all have been used before", i, now-made)
		}
		made = now
	}
}

// swapOften sends from one buffer, by all calls in turn, and checks received messages.
func swapOften(t *testing.T, c *mpi.Comm, size, rounds int) {
	t.Helper()
	send, recv := make([]byte, size), make([]byte, size)
	peer := 1 - c.Rank()
	for i := range rounds {
		for j := range send {
			send[j] = byte(i + j + c.Rank())
		}
		in := mpi.Irecv(c, recv, peer, i)
		var err error
		switch i % 3 {
		case 0:
			err = mpi.Send(c, send, peer, i)
		case 1:
			_, err = mpi.Isend(c, send, peer, i).Wait()
		case 2:
			err = mpi.Ssend(c, send, peer, i)
		}
		if err != nil {
			t.Fatalf("send %d of %d bytes: %v", i, size, err)
		}
		clear(send) // it is ours again
		if _, err := in.Wait(); err != nil {
			t.Fatalf("receive %d of %d bytes: %v", i, size, err)
		}
		for j := range recv {
			if recv[j] != byte(i+j+peer) {
				t.Fatalf("byte %d of message %d of %d bytes is %d, want %d", j, i, size, recv[j], byte(i+j+peer))
			}
		}
	}
}

func TestOnlyFrequentBuffersRegistered(t *testing.T) {
	rdmatest.NeedLocking(t)
	mpitest.RunConfig(t, 2, strict("rc", "auto", ""), func(t *testing.T, c *mpi.Comm) {
		const size = 16000
		rows, _, err := inspect.FrequentBuffers(c, 1-c.Rank())
		if err != nil {
			t.Fatal(err)
		}
		var uses int
		for _, r := range rows {
			if r.Lo <= size && size <= r.Hi {
				uses = int(r.Send)
			}
			if r.Hi < 128 || r.Copy <= r.Lookup && r.Send > 0 || r.Register <= 0 || r.Copy <= 0 {
				t.Errorf("the row %+v", r)
			}
		}
		// Each rank has its own measurements: both exchange as often as the slower one needs.
		most, least := []int{uses}, []int{uses}
		if err := errors.Join(mpi.Allreduce(c, most, most, mpi.Max), mpi.Allreduce(c, least, least, mpi.Min)); err != nil {
			t.Fatal(err)
		}
		if least[0] == 0 {
			for range 200 {
				pingBoth(t, c, make([]byte, size))
			}
			if _, did, _ := inspect.FrequentBuffers(c, 1-c.Rank()); uses == 0 && did.Direct > 0 {
				t.Errorf("the rule keeps off %d bytes, and %d messages were sent from where they are", size, did.Direct)
			}
			t.Logf("a copy of %d bytes costs less than twice a look-up", size)
			return
		}
		once := make([]byte, 40*size)
		for i := range 40 {
			pingBoth(t, c, once[i*size:][:size])
		}
		if _, did, _ := inspect.FrequentBuffers(c, 1-c.Rank()); did.Direct > 0 && uses/4 > 1 {
			t.Errorf("%d of 40 messages from buffers of their own were sent from there", did.Direct)
		}
		for range most[0] + 10 {
			pingBoth(t, c, once[:size])
		}
		_, did, err := inspect.FrequentBuffers(c, 1-c.Rank())
		if err != nil || did.Direct < 10 {
			t.Errorf("after %d uses of a buffer, of which %d pay, %d messages were sent from there (%v)", most[0]+11, uses, did.Direct, err)
		}
		p := c.World().Profile()
		if got := p.Of(prof.BuffersDirect); got != did.Direct {
			t.Errorf("the profile counts %d messages from where they are, FrequentUse %d", got, did.Direct)
		}
	})
}

func pingBoth(t *testing.T, c *mpi.Comm, buf []byte) {
	t.Helper()
	recv := make([]byte, len(buf))
	in := mpi.Irecv(c, recv, 1-c.Rank(), 1)
	if err := mpi.Send(c, buf, 1-c.Rank(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestNoCountingWithoutGain(t *testing.T) {
	for _, cfg := range []*mpi.Config{nil, {Network: "iwarp", NoSharedMemory: true, Channel: "rc"}} {
		mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
			for range 20 {
				pingBoth(t, c, make([]byte, 8000))
			}
			if name := inspect.DeviceName(c, 1-c.Rank()); strings.HasPrefix(name, "ofi:verbs") {
				t.Logf("%s registers memory, so there is something to be saved", name)
				return
			}
			rows, did, err := inspect.FrequentBuffers(c, 1-c.Rank())
			if err != nil || len(rows) > 0 || did != (inspect.BufferStats{}) {
				t.Errorf("over %s: %v, %+v, %v", inspect.DeviceName(c, 1-c.Rank()), rows, did, err)
			}
		})
	}
}
