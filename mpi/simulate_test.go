package mpi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
	"github.com/muster-mpi/muster/rdma/soft"
)

// ErrSimulatedDeath makes a rank of Simulate die.
var ErrSimulatedDeath = errors.New("the rank dies")

// Simulate runs fn as n ranks, each on its own host, in virtual time. All is as in a job with
// channel ud, but for the network: a device in memory that loses, duplicates and reorders a
// share of the packets. There is no progress thread, so a rank that has left does not
// acknowledge again; the others then wait for drainTimeout, which is virtual too. A rank
// whose fn returns ErrSimulatedDeath says nothing more, and the board reports it. Simulate
// returns how long the job took in virtual time.
func Simulate(t *testing.T, n int, cfg Config, seed uint64, share float64, fn func(c *Comm) error) (took time.Duration) {
	t.Helper()
	skipLaunched(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		clients := pmi.NewLocal(n)
		var ranks sync.WaitGroup
		over := make(chan struct{})
		var living sync.WaitGroup
		living.Add(n)
		for i, below := range rdmatest.NewReference(n) {
			faulty := rdmatest.Wrap(below, rdmatest.Faults{Seed: seed + uint64(i), Drop: share, Duplicate: share, Reorder: share})
			ranks.Go(func() {
				client := placed{clients[i], 1}
				w, err := simulatedRank(client, cfg, faulty)
				if err == nil {
					if err = fn(w.Comm()); err == nil {
						err = w.Finalize()
					}
				}
				living.Done()
				if errors.Is(err, ErrSimulatedDeath) {
					client.Board().MarkDead(pmi.Death{Rank: i, Host: client.Host(), Status: "killed"})
					<-over
					err = errors.Join(w.teams.leaveAll("the rank has died"), w.e.Close())
				}
				if err != nil {
					t.Errorf("seed %d, rank %d: %v", seed, i, err)
				}
			})
		}
		living.Wait()
		close(over)
		ranks.Wait()
		took = time.Since(start)
	})
	return took
}

// simulatedRank joins a job over a device with faults.
func simulatedRank(client pmi.Client, cfg Config, faulty rdma.Device) (*World, error) {
	dev, err := soft.Open(soft.Config{Device: faulty, Name: uint32(client.Rank()), Datagram: 1400, NoThread: true})
	if err != nil {
		return nil, err
	}
	return joinOver(context.Background(), *withDefaults(cfg), client, []engine.LaneConfig{{Device: virtualDevice{dev}}}, true, true)
}

// virtualDevice is a software device whose queues are waited for in virtual time, not in the
// kernel.
type virtualDevice struct{ *soft.Device }

type virtualCQ struct{ rdma.CQ }

// Wait may return early, so it only lets some time pass.
func (q virtualCQ) Wait(timeout time.Duration) error {
	time.Sleep(min(timeout, 20*time.Microsecond)) // virtual
	return nil
}

func (q virtualCQ) Wake() {}

func (d virtualDevice) Caps() rdma.Caps {
	c := d.Device.Caps()
	c.Notify = 0
	return c
}

func (d virtualDevice) NewCQ(depth int) (rdma.CQ, error) {
	cq, err := d.Device.NewCQ(depth)
	return virtualCQ{cq}, err
}

func (d virtualDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	cfg.SendCQ, cfg.RecvCQ = cfg.SendCQ.(virtualCQ).CQ, cfg.RecvCQ.(virtualCQ).CQ
	return d.Device.NewQP(cfg)
}
