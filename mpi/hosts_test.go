package mpi

// Ranks on several hosts, simulated in one process: a shared-memory device for each host,
// and another one for all ranks as the network.

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/shm"
)

// placed is a client whose ranks are distributed over hosts.
type placed struct {
	pmi.Client
	perHost int
}

func (p placed) Node(rank int) int { return rank / p.perHost }
func (p placed) LocalRank() int    { return p.Rank() % p.perHost }
func (p placed) LocalSize() int {
	return min(p.perHost, p.Size()-p.Node(p.Rank())*p.perHost)
}

// wire is shared by the network devices of a test.
type wire struct {
	host  *shm.Host
	mu    sync.Mutex
	cqs   map[rdma.PeerID]*wireCQ
	pins  bool // registration is expensive
	taken int  // registrations so far
	// transfer, if not 0, is the longest accepted Read or Write.
	transfer int

	// For asynchronous progress; plain: its queue can be polled and waited for, and
	// no more.
	progress string
	plain    bool
}

// wireDevice is a shared-memory device that acts as a network. If armed is set it can be
// waited for together with others: a sender notifies the receiver.
type wireDevice struct {
	rdma.Device
	wire  *wire
	index int
	armed bool
	attr  rdma.Attr
}

func (w *wire) open(index, peers int, armed bool) (rdma.Device, error) {
	dev, err := shm.Open(shm.Config{Host: w.host, Index: index, Peers: peers})
	if err != nil {
		return nil, err
	}
	d := &wireDevice{Device: dev, wire: w, index: index, armed: armed, attr: *dev.Attr()}
	d.attr.Name, d.attr.Pins, d.attr.MaxTransfer = "wire", w.pins, w.transfer
	d.attr.Ops = rdma.Ops(rdma.OpSend, rdma.OpRead, rdma.OpWrite)
	return d, nil
}

func (d *wireDevice) Attr() *rdma.Attr { return &d.attr }

func (d *wireDevice) Caps() rdma.Caps {
	switch inner := d.Device.Caps(); {
	case d.wire.plain:
		return rdma.Caps{}
	case d.armed:
		return rdma.Caps{Notify: rdma.NotifyAny}
	default:
		return rdma.Caps{Notify: inner.Notify, Moved: inner.Moved}
	}
}

func (d *wireDevice) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	d.wire.mu.Lock()
	d.wire.taken++
	d.wire.mu.Unlock()
	return d.Device.Register(mem, acc)
}

func (d *wireDevice) NewCQ(depth int) (rdma.CQ, error) {
	cq, err := d.Device.NewCQ(depth)
	if err != nil || !d.armed || d.wire.plain {
		return cq, err
	}
	q := &wireCQ{CQ: cq, notify: make(chan struct{}, 1)}
	d.wire.mu.Lock()
	d.wire.cqs[rdma.PeerID(d.index)] = q
	d.wire.mu.Unlock()
	return q, nil
}

func (d *wireDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	if q, ok := cfg.SendCQ.(*wireCQ); ok {
		cfg.SendCQ, cfg.RecvCQ = q.CQ, q.CQ
	}
	qp, err := d.Device.NewQP(cfg)
	return &wireQP{qp, d.wire}, err
}

type wireQP struct {
	rdma.QP
	wire *wire
}

func (q *wireQP) PostSend(wrs []rdma.SendWR) (int, error) {
	for i := range wrs {
		if most := q.wire.transfer; most > 0 && wrs[i].Op != rdma.OpSend && wrs[i].Body.Len() > most {
			return 0, fmt.Errorf("a %v of %d bytes, and Attr.MaxTransfer is %d", wrs[i].Op, wrs[i].Body.Len(), most)
		}
	}
	n, err := q.QP.PostSend(wrs)
	for i := range wrs[:n] {
		q.wire.mu.Lock()
		if to := q.wire.cqs[wrs[i].Peer]; to != nil {
			to.wake()
		}
		q.wire.mu.Unlock()
	}
	return n, err
}

// wireCQ waits for the notification of a sender. Completions before Arm have been polled by
// then, or their notification is still pending.
type wireCQ struct {
	rdma.CQ
	notify chan struct{}
}

func (q *wireCQ) Arm(_ rdma.Notify, limit time.Duration) time.Duration { return limit }

func (q *wireCQ) Disarm() {}

func (q *wireCQ) File() int { return -1 }

func (q *wireCQ) SetBeside(bool) {}

func (q *wireCQ) WaitArmed(timeout time.Duration) error {
	select {
	case <-q.notify:
	case <-time.After(timeout):
	}
	return nil
}

func (q *wireCQ) Wake() {
	q.wake()
	q.CQ.Wake()
}

func (q *wireCQ) wake() {
	select {
	case q.notify <- struct{}{}:
	default:
	}
}

// skipLaunched skips a test that makes its own world if a launcher has started this process.
func skipLaunched(t *testing.T) {
	t.Helper()
	for _, name := range []string{"PMI_FD", "PMI_PORT", "PMIX_RANK", "MUSTER_ROOT"} { // as mpitest.Launched
		if os.Getenv(name) != "" {
			t.Skip("a world of its own, which every rank of a job would make")
		}
	}
}

// runOnHosts runs fn as n ranks, perHost on each host.
func runOnHosts(t *testing.T, n, perHost int, armed bool, cable *wire, fn func(c *Comm) error) {
	t.Helper()
	skipLaunched(t)
	cable.host, cable.cqs = shm.NewHost(), map[rdma.PeerID]*wireCQ{}
	var (
		hosts   = map[int]*shm.Host{}
		clients = pmi.NewLocal(n)
		errs    = make(chan error, n)
		mu      sync.Mutex
	)
	hostOf := func(node int) *shm.Host {
		mu.Lock()
		defer mu.Unlock()
		if hosts[node] == nil {
			hosts[node] = shm.NewHost()
		}
		return hosts[node]
	}
	for i := range n {
		go func() {
			client := placed{clients[i], perHost}
			errs <- func() error {
				near, err := shm.Open(shm.Config{Host: hostOf(client.Node(i)), Index: client.LocalRank(), Peers: client.LocalSize()})
				if err != nil {
					return err
				}
				far, err := cable.open(i, n, armed)
				if err != nil {
					return err
				}
				lanes := []engine.LaneConfig{{Device: near, Local: true}, {Device: far}}
				if client.LocalSize() == 1 {
					lanes[0], lanes[1] = lanes[1], lanes[0]
				}
				w, err := joinOver(context.Background(), *withDefaults(Config{Progress: cable.progress}), client, lanes, near.Attr().Oversubscribed, true)
				if err != nil {
					return err
				}
				if err := fn(w.Comm()); err != nil {
					return fmt.Errorf("rank %d: %w", i, err)
				}
				return w.Finalize()
			}()
		}()
	}
	deadline := time.After(60 * time.Second)
	for range n {
		select {
		case err := <-errs:
			if err != nil {
				t.Error(err)
			}
		case <-deadline:
			t.Fatal("ranks on several hosts hang")
		}
	}
}

func TestSeveralHosts(t *testing.T) {
	for _, perHost := range []int{1, 2, 3} {
		for _, armed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d-a-host-armed-%v", perHost, armed), func(t *testing.T) {
				runOnHosts(t, 5, perHost, armed, &wire{}, func(c *Comm) error {
					if err := exchangeWithAll(c, perHost); err != nil {
						return err
					}
					return takeFromAnybody(c)
				})
			})
		}
	}
}

// exchangeWithAll sends short and long messages to every rank, itself included.
func exchangeWithAll(c *Comm, perHost int) error {
	for _, n := range []int{0, 1, 500, 100_000} {
		var reqs []Request
		in := make([][]int32, c.Size())
		for r := range c.Size() {
			in[r] = make([]int32, n)
			reqs = append(reqs, Irecv(c, in[r], r, n))
		}
		for r := range c.Size() {
			out := make([]int32, n)
			for i := range out {
				out[i] = int32(c.Rank()*1000 + r + i)
			}
			reqs = append(reqs, Isend(c, out, r, n))
		}
		if err := WaitAll(reqs...); err != nil {
			return err
		}
		for r := range in {
			for i, v := range in[r] {
				if want := int32(r*1000 + c.Rank() + i); v != want {
					return fmt.Errorf("element %d of %d from rank %d is %d, want %d", i, n, r, v, want)
				}
			}
		}
	}
	if got := c.e.CardsFetched(); got != c.Size() {
		return fmt.Errorf("%d cards fetched after talking to %d ranks", got, c.Size())
	}
	for r := range c.Size() {
		near := r/perHost == c.Rank()/perHost
		if l := c.e.Attr(r); (l == c.e.Attr(c.Rank())) != near {
			return fmt.Errorf("rank %d, same host %v, is reached over the wrong lane", r, near)
		}
	}
	return nil
}

// takeFromAnybody lets rank 0 sleep in a receive from AnySource until a rank of its own or
// of another host sends.
func takeFromAnybody(c *Comm) error {
	if c.Rank() == 0 {
		seen := map[int]bool{}
		for range c.Size() - 1 {
			buf := make([]int64, 1)
			st, err := Recv(c, buf, AnySource, 7)
			if err != nil {
				return err
			}
			if buf[0] != int64(st.Source) || seen[st.Source] {
				return fmt.Errorf("message %d came from rank %d", buf[0], st.Source)
			}
			seen[st.Source] = true
		}
		return c.Barrier()
	}
	time.Sleep(time.Duration(c.Rank()) * 60 * time.Millisecond) // each message finds rank 0 asleep
	if err := Send(c, []int64{int64(c.Rank())}, 0, 7); err != nil {
		return err
	}
	return c.Barrier()
}

func TestRegistrationReuse(t *testing.T) {
	const rounds, n = 20, 1 << 20
	for _, alloc := range []bool{false, true} {
		cable := &wire{pins: true}
		runOnHosts(t, 2, 1, true, cable, func(c *Comm) error {
			buf := make([]byte, n)
			if alloc {
				var err error
				if buf, err = Alloc[byte](c, n); err != nil {
					return err
				}
			}
			for i := range rounds {
				if c.Rank() == 0 {
					for j := range buf {
						buf[j] = byte(i + j)
					}
					if err := Send(c, buf, 1, i); err != nil {
						return err
					}
					continue
				}
				if _, err := Recv(c, buf, 0, i); err != nil {
					return err
				}
				for j := range buf {
					if buf[j] != byte(i+j) {
						return fmt.Errorf("round %d: byte %d is %d", i, j, buf[j])
					}
				}
			}
			if err := c.Barrier(); err != nil {
				return err
			}
			if alloc {
				return Free(c, buf)
			}
			return nil
		})
		if cable.taken > 2 {
			t.Errorf("%d messages from one buffer (Alloc %v) made %d registrations, want 1 or 2", rounds, alloc, cable.taken)
		}
	}
}

func TestForbiddenNetwork(t *testing.T) {
	client := placed{pmi.NewLocal(2)[0], 1}
	_, _, err := openDevices(&Config{Network: "none"}, client, newHost())
	if err == nil {
		t.Fatal("a job on two hosts starts without a network")
	}
	if cfg := (Config{Network: "verbs"}); cfg.validate() == nil {
		t.Error("Network verbs is accepted; it should be ofi:verbs")
	}
}
