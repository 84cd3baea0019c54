package rail

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// The suite on rails of real sockets of which one is cut, or both alternately.

// flakyDevice is a device whose link is cut at times. What is sent meanwhile is
// delivered later, as with RD.
type flakyDevice struct {
	rdma.Device
	cut  func() bool
	held int // messages held back
}

type flakyQP struct {
	rdma.QP
	f    *flakyDevice
	wait []rdma.SendWR
}

type flakyCQ struct {
	rdma.CQ
	qps []*flakyQP
}

func (f *flakyDevice) NewCQ(depth int) (rdma.CQ, error) {
	cq, err := f.Device.NewCQ(depth)
	return &flakyCQ{CQ: cq}, err
}

func (f *flakyDevice) NewQP(c rdma.QPConfig) (rdma.QP, error) {
	send, recv := c.SendCQ.(*flakyCQ), c.RecvCQ.(*flakyCQ)
	c.SendCQ, c.RecvCQ = send.CQ, recv.CQ
	qp, err := f.Device.NewQP(c)
	q := &flakyQP{QP: qp, f: f}
	send.qps = append(send.qps, q)
	return q, err
}

func (q *flakyQP) PostSend(wrs []rdma.SendWR) (int, error) {
	if q.f.cut() || len(q.wait) > 0 {
		q.wait = append(q.wait, wrs...)
		q.f.held += len(wrs)
		return len(wrs), nil
	}
	return q.QP.PostSend(wrs)
}

// Keep copies what is held back, as RD does with what is in flight.
func (q *flakyQP) Keep(id rdma.PeerID) {
	for i := range q.wait {
		if wr := &q.wait[i]; wr.Peer == id {
			wr.Body = rdma.MemOf(slices.Clone(wr.Body.Bytes()))
		}
	}
	q.QP.(rdma.KeepingQP).Keep(id)
}

func (c *flakyCQ) Poll(out []rdma.Completion) int {
	for _, q := range c.qps {
		if len(q.wait) > 0 && !q.f.cut() {
			n, _ := q.QP.PostSend(q.wait) // the rest is sent with the next Poll
			q.wait = q.wait[n:]
		}
	}
	return c.CQ.Poll(out)
}

func TestConformanceOnFlakyRails(t *testing.T) {
	if testing.Short() {
		t.Skip("cuts take time")
	}
	start := time.Now()
	slow := map[string]string{
		"lend-never-runs-out": "6000 messages one after the other wait for many cuts, which shows nothing that order-one-to-one does not",
		"wait-does-not-spin":  "its rails have no file to sleep on", "steady-inline-send": "the test's device allocates",
		"wait-loses-no-message": "2000 alternating messages wait for many cuts", "wait-loses-no-wake": "it sends nothing",
		"close-ends-access": "a cut rail gets the time that a computing peer would get",
		"steady-send":       "the test's device allocates", "steady-read": "the test's device allocates", "steady-write": "the test's device allocates",
	}
	for _, v := range []struct {
		name string
		cut  func(rail int) bool
	}{
		{"dead", func(rail int) bool { return rail == 1 }},
		{"alternating", func(rail int) bool { // one is cut for 100 ms, then none for 100 ms, then the other
			phase := time.Since(start) / (100 * time.Millisecond) % 4
			return phase == time.Duration(2*rail)
		}},
	} {
		var held atomic.Int64
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: slow, Unconnected: "datagrams need no connection", Open: func(t testing.TB, n int) []rdma.Device {
			var all []*flakyDevice
			list := openRails(t, n, 2, func(_, rail int) rdma.Device {
				f := &flakyDevice{Device: openDatagram(t, rail), cut: func() bool { return v.cut(rail) }}
				all = append(all, f)
				return f
			})
			t.Cleanup(func() {
				for _, f := range all {
					held.Add(int64(f.held))
				}
			})
			return list
		}})
		if held.Load() < 100 {
			t.Errorf("%s: only %d messages were held back, so the test proves nothing", v.name, held.Load())
		}
	}
}
