package mpi_test

// Many goroutines of one rank: every call may be made from any of them.

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
)

// TestProgressIsHandedOver lets eight goroutines wait while one drives progress for
// all. Messages arrive in any order, some only after the driving goroutine sleeps:
// progress must be handed over, and each goroutine must get its message.
func TestProgressIsHandedOver(t *testing.T) {
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		const waiters, rounds = 8, 30
		rng := rand.New(rand.NewPCG(1, 2))
		for round := range rounds {
			order := rng.Perm(waiters)
			pause := []time.Duration{0, 0, 50 * time.Microsecond, 3 * time.Millisecond}[round%4]
			if c.Rank() == 0 {
				for _, w := range order {
					time.Sleep(pause) // long enough for the receiver to sleep in the kernel
					noError(t, mpi.Send(c, []int{w, round}, 1, w), "Send")
				}
				barrier(t, c)
				continue
			}
			var wg sync.WaitGroup
			for w := range waiters {
				wg.Add(1)
				go func() {
					defer wg.Done()
					in := make([]int, 2)
					var err error
					switch w % 4 {
					case 0:
						_, err = mpi.Recv(c, in, 0, w)
					case 1:
						err = waitErr(mpi.Irecv(c, in, 0, w))
					case 2:
						_, _, err = mpi.WaitAny(mpi.Irecv(c, in, 0, w))
					case 3:
						_, err = mpi.Irecv(c, in, mpi.AnySource, w).WaitOrCancel(context.Background())
					}
					if err != nil || in[0] != w || in[1] != round {
						t.Errorf("waiter %d in round %d: %v, %v", w, round, in, err)
					}
				}()
			}
			wg.Wait()
			barrier(t, c)
		}
	})
}

// TestWaitingUsesLittleCPU checks that a waiting rank sleeps, in Recv and in Probe
// beside a Recv.
func TestWaitingUsesLittleCPU(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a second")
	}
	mpitest.Run(t, 2, func(t *testing.T, c *mpi.Comm) {
		usesLittleCPU(t, c, "waiting for 500 ms in Recv and Probe", 200*time.Millisecond, func() time.Duration {
			if c.Rank() == 0 {
				before, _ := cputime.Used()
				time.Sleep(500 * time.Millisecond) // the interval that is measured
				after, _ := cputime.Used()
				noError(t, mpi.Send(c, []int{1}, 1, 1), "Send")
				noError(t, mpi.Send(c, []int{1}, 1, 2), "Send")
				return after - before
			}
			done := make(chan error, 1)
			go func() { done <- second(mpi.Recv(c, []int{0}, 0, 1)) }()
			noError(t, second(c.Probe(0, 2)), "Probe")
			noError(t, second(mpi.Recv(c, []int{0}, 0, 2)), "Recv")
			noError(t, <-done, "Recv of the other goroutine")
			return 0
		})
	})
}

// usesLittleCPU fails if what all ranks do in measure takes more CPU time than most, by
// what any of them returns. A pause of a virtual machine is charged to the process that was
// running, but it does not recur, so one measurement out of three is enough.
func usesLittleCPU(t *testing.T, c *mpi.Comm, what string, most time.Duration, measure func() time.Duration) {
	t.Helper()
	const attempts = 3
	var all []time.Duration
	for range attempts {
		used := []time.Duration{measure()}
		noError(t, mpi.Allreduce(c, used, used, mpi.Max), "Allreduce")
		if used[0] <= most {
			return
		}
		all = append(all, used[0])
	}
	t.Errorf("%s took %v of CPU time in %d attempts, want at most %v", what, all, attempts, most)
}

// traffic lets goroutines of all ranks send to each other at random: sizes, modes and
// receive calls differ, and every byte is checked. Goroutine g of one rank communicates
// with goroutine g of another; both use the same random sequence.
func traffic(t *testing.T, c *mpi.Comm, goroutines, rounds int, sizes []int) {
	t.Helper()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			shared := rand.New(rand.NewPCG(uint64(g), 7))
			own := rand.New(rand.NewPCG(uint64(g), uint64(100+c.Rank())))
			for round := range rounds {
				shift, size := shared.IntN(c.Size()), sizes[shared.IntN(len(sizes))]
				dst, src := (c.Rank()+shift)%c.Size(), (c.Rank()-shift+c.Size())%c.Size()
				tag, seed := g<<16|round, 1+g+3*round
				var s mpi.Request
				for mode := own.IntN(len(nonBlocking)); ; mode = own.IntN(len(nonBlocking)) {
					if !nonBlocking[mode].ready {
						s = nonBlocking[mode].start(c, pattern(size, seed+dst), dst, tag)
						break
					}
				}
				in := make([]byte, size)
				st, err := receiveSomehow(c, own.IntN(7), in, src, tag)
				if err != nil || st.Source != src || st.Bytes != size || st.Tag != tag {
					t.Errorf("goroutine %d of rank %d, round %d: %+v, %v; want %d bytes from %d", g, c.Rank(), round, st, err, size, src)
					return
				}
				if string(in) != string(cut(size, seed+c.Rank())) {
					t.Errorf("goroutine %d of rank %d, round %d: message of %d bytes from %d is damaged", g, c.Rank(), round, size, src)
					return
				}
				if err := waitErr(s); err != nil {
					t.Errorf("goroutine %d of rank %d, round %d: send to %d: %v", g, c.Rank(), round, dst, err)
					return
				}
			}
		}()
	}
	wg.Wait()
}

func receiveSomehow(c *mpi.Comm, how int, in []byte, src, tag int) (mpi.Status, error) {
	switch how {
	case 0:
		return mpi.Recv(c, in, src, tag)
	case 1:
		return mpi.Recv(c, in, mpi.AnySource, tag)
	case 2:
		return mpi.Irecv(c, in, src, tag).Wait()
	case 3:
		r := mpi.Irecv(c, in, mpi.AnySource, tag)
		for {
			if st, done, err := r.Test(); done {
				return st, err
			}
		}
	case 4:
		if st, err := c.Probe(src, tag); err != nil {
			return st, err
		}
		return mpi.Recv(c, in, src, tag)
	case 5:
		m, st, err := c.Mprobe(mpi.AnySource, tag)
		if err != nil {
			return st, err
		}
		return mpi.Mrecv(m, in)
	}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Microsecond)
		st, err := mpi.Irecv(c, in, src, tag).WaitOrCancel(ctx)
		cancel()
		if err == nil || ctx.Err() == nil {
			return st, err
		}
		runtime.Gosched()
	}
}

var trafficSizes = []int{0, 1, 8, 24, 48, 64, 500, 4096, 8192, 20000, 65536, 65537, 150000}

func TestTraffic(t *testing.T) {
	mpitest.Sizes(t, oneToFive, func(t *testing.T, c *mpi.Comm) {
		traffic(t, c, 8, 60, trafficSizes)
	})
}

// The same with every protocol for large messages, with and without the help of the
// kernel, and with limits so tight that every queue becomes full.
func TestTrafficInEveryWay(t *testing.T) {
	for name, cfg := range map[string]mpi.Config{
		"get":                     {Advanced: mpi.Advanced{Rendezvous: "get"}},
		"put":                     {Advanced: mpi.Advanced{Rendezvous: "put"}},
		"coop":                    {Advanced: mpi.Advanced{Rendezvous: "coop"}},
		"without the kernel":      {Advanced: mpi.Advanced{NoProcessVM: true}},
		"get without the kernel":  {Advanced: mpi.Advanced{NoProcessVM: true, Rendezvous: "get"}},
		"put without the kernel":  {Advanced: mpi.Advanced{NoProcessVM: true, Rendezvous: "put"}},
		"coop without the kernel": {Advanced: mpi.Advanced{NoProcessVM: true, Rendezvous: "coop"}},
		"all by get":              {EagerLimit: 1, Advanced: mpi.Advanced{Rendezvous: "get"}},
		"all by put":              {EagerLimit: 1, Advanced: mpi.Advanced{Rendezvous: "put"}},
		"all by coop":             {EagerLimit: 1, Advanced: mpi.Advanced{Rendezvous: "coop"}},
		"all eager":               {EagerLimit: 1 << 20},
		"little credit":           {Advanced: mpi.Advanced{Credit: 2000}},
		"small rings":             {Advanced: mpi.Advanced{RingBytes: 4096, Rings: 1}},
		"posted buffers":          {Advanced: mpi.Advanced{Eager: "posted"}},
		"sleep at once":           {Advanced: mpi.Advanced{Spin: 1, Yield: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			mpitest.RunConfig(t, 3, &cfg, func(t *testing.T, c *mpi.Comm) {
				traffic(t, c, 4, 40, trafficSizes)
			})
		})
	}
}
