package rdmatest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// mutation describes a mutant: the reference device with one fault. Each field that is set
// replaces the method of the same name.
type mutation struct {
	post func(q rdma.QP, wrs []rdma.SendWR) (int, error)
	recv func(s rdma.SRQ, wrs []rdma.RecvWR) (int, error)
	poll func(c rdma.CQ, out []rdma.Completion) int
	wait func(c rdma.CQ, d time.Duration) error
	wake func(c rdma.CQ)

	arm       func(c rdma.CQ, on rdma.Notify, limit time.Duration) time.Duration
	noDisarm  bool
	noBeside  bool
	waitArmed func(c rdma.CQ, d time.Duration) error

	register   func(d rdma.Device, mem []byte, acc rdma.Access) (rdma.MR, error)
	deregister func(d rdma.Device, mr rdma.MR) error
	resolve    func(d rdma.Device, a rdma.Addr) (rdma.PeerID, error)
	close      func(d rdma.Device) error
	reset      func() // the fixture resets the connections
	closeQP    func(q rdma.QP) error
}

type mutantDevice struct {
	rdma.Device
	b mutation
}

type mutantQP struct {
	rdma.QP
	b *mutation
}

type mutantCQ struct {
	rdma.CQ
	b *mutation
}

type mutantSRQ struct {
	rdma.SRQ
	b *mutation
}

func (d *mutantDevice) NewCQ(depth int) (rdma.CQ, error) {
	c, err := d.Device.NewCQ(depth)
	if err != nil {
		return nil, err
	}
	return &mutantCQ{c, &d.b}, nil
}

func (d *mutantDevice) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	s, err := d.Device.NewSRQ(cfg)
	if err != nil {
		return nil, err
	}
	return &mutantSRQ{s, &d.b}, nil
}

func (d *mutantDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	cfg.SendCQ, cfg.RecvCQ = cfg.SendCQ.(*mutantCQ).CQ, cfg.RecvCQ.(*mutantCQ).CQ
	if cfg.SRQ != nil {
		cfg.SRQ = cfg.SRQ.(*mutantSRQ).SRQ
	}
	q, err := d.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	return &mutantQP{q, &d.b}, nil
}

func (d *mutantDevice) Register(mem []byte, acc rdma.Access) (rdma.MR, error) {
	if d.b.register != nil {
		return d.b.register(d.Device, mem, acc)
	}
	return d.Device.Register(mem, acc)
}

func (d *mutantDevice) Deregister(mr rdma.MR) error {
	if d.b.deregister != nil {
		return d.b.deregister(d.Device, mr)
	}
	return d.Device.Deregister(mr)
}

func (d *mutantDevice) Resolve(a rdma.Addr) (rdma.PeerID, error) {
	if d.b.resolve != nil {
		return d.b.resolve(d.Device, a)
	}
	return d.Device.Resolve(a)
}

func (d *mutantDevice) Close() error {
	if d.b.close != nil {
		return d.b.close(d.Device)
	}
	return d.Device.Close()
}

func (q *mutantQP) PostSend(wrs []rdma.SendWR) (int, error) {
	if q.b.post != nil {
		return q.b.post(q.QP, wrs)
	}
	return q.QP.PostSend(wrs)
}

func (q *mutantQP) Close() error {
	if q.b.closeQP != nil {
		return q.b.closeQP(q.QP)
	}
	return q.QP.Close()
}

func (s *mutantSRQ) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if s.b.recv != nil {
		return s.b.recv(s.SRQ, wrs)
	}
	return s.SRQ.PostRecv(wrs)
}

func (c *mutantCQ) Poll(out []rdma.Completion) int {
	if c.b.poll != nil {
		return c.b.poll(c.CQ, out)
	}
	return c.CQ.Poll(out)
}

func (c *mutantCQ) Wait(d time.Duration) error {
	if c.b.wait != nil {
		return c.b.wait(c.CQ, d)
	}
	return c.CQ.Wait(d)
}

func (c *mutantCQ) Wake() {
	if c.b.wake != nil {
		c.b.wake(c.CQ)
		return
	}
	c.CQ.Wake()
}

// recorder is a testing.TB that records the expected failure.
type recorder struct {
	testing.TB
	mu      sync.Mutex
	failure string
	skipped bool
}

func (r *recorder) fail(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure == "" {
		r.failure = text
	}
}

func (r *recorder) Helper()                      {}
func (r *recorder) Log(...any)                   {}
func (r *recorder) Logf(string, ...any)          {}
func (r *recorder) Error(args ...any)            { r.fail(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) { r.fail(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.fail(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.fail(fmt.Sprintf(f, args...)); runtime.Goexit() }
func (r *recorder) Skip(...any)                  { r.skipped = true; runtime.Goexit() }
func (r *recorder) Skipf(string, ...any)         { r.skipped = true; runtime.Goexit() }

// tryCheck runs a check on mutants and records its first failure.
func tryCheck(t *testing.T, c check, mutate func(rdma.Device) mutation, hangTimeout time.Duration) *recorder {
	rec := &recorder{TB: t}
	attr := ReferenceAttr()
	var resets []func()
	reset := func() int {
		for _, one := range resets {
			one()
		}
		return 1
	}
	f := &Fixture{Name: "bent", hangTimeout: hangTimeout, Reset: reset, Open: func(_ testing.TB, n int) []rdma.Device {
		devs := NewReferenceOf(n, attr)
		for i, d := range devs {
			t.Cleanup(func() { d.Close() })
			b := mutate(d)
			devs[i] = &mutantDevice{d, b}
			if b.reset != nil {
				resets = append(resets, b.reset)
			}
		}
		return devs
	}}
	var wg sync.WaitGroup
	kind := rdma.RD
	if c.on&kind == 0 {
		kind = rdma.UD
	}
	wg.Go(func() { c.try(rec, f, kind, &attr) })
	wg.Wait()
	return rec
}
