package bench

// The bare device and the messaging layer on it alternate, so that their ratio
// is meaningful on a machine whose speed drifts.

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
	"github.com/muster-mpi/muster/rdma"
)

func deviceBenchmarks() []Benchmark {
	return []Benchmark{{Name: "device-latency", Title: "Latency of the Bare Device and of MPI over it", Doc: "ping-pong without and with the messaging layer, alternating", Ranks: 2, Sizes: []int{8},
		Metric: "latency", Unit: "us", Column: "Latency (us)", Run: deviceLatency}}
}

type barePair struct {
	qp    rdma.QP
	cq    rdma.CQ
	peer  rdma.PeerID
	comps [16]rdma.Completion
	wr    [1]rdma.SendWR
	first bool
}

func deviceLatency(c *mpi.Comm, p *Params, emit func(Result)) error {
	dev, err := inspect.OpenDevice(c)
	if err != nil {
		return err
	}
	defer dev.Close()
	d, err := newBarePair(c, dev)
	if err != nil {
		return err
	}
	for _, size := range p.Sizes {
		if size > dev.Attr().MaxInline {
			return fmt.Errorf("bench: device-latency: %d bytes are more than %s sends at once (%d)", size, dev.Attr().Name, dev.Attr().MaxInline)
		}
		warmup, n := p.iterations(size, 200000, 2000)
		sbuf, rbuf := buffers(size)
		if err := pingpong(c, sbuf, rbuf, pingTag, warmup, false); err != nil {
			return err
		}
		if err := d.pingpong(sbuf, rbuf, warmup); err != nil {
			return err
		}
		var bare, full samples
		count, each := batches(n)
		for range count {
			start := time.Now()
			if err := d.pingpong(sbuf, rbuf, each); err != nil {
				return err
			}
			bare.add(time.Since(start), 2*each)
			start = time.Now()
			if err := pingpong(c, sbuf, rbuf, pingTag, each, false); err != nil {
				return err
			}
			full.add(time.Since(start), 2*each)
		}
		emit(bare.times(Result{Size: size}, 1))
		emit(full.times(Result{Size: size, Metric: "mpi-latency"}, 1))
		ratio := full.quantile(.5) / bare.quantile(.5)
		emit(Result{Size: size, Metric: "mpi/device", Unit: "ratio", Value: ratio, Min: ratio, P50: ratio, P99: ratio})
	}
	return c.Barrier()
}

func newBarePair(c *mpi.Comm, dev rdma.Device) (*barePair, error) {
	cq, err := dev.NewCQ(0)
	if err != nil {
		return nil, err
	}
	srq, err := dev.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		return nil, err
	}
	qp, err := dev.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: cq, RecvCQ: cq, SRQ: srq})
	if err != nil {
		return nil, err
	}
	// Exchange addresses over the world.
	var mine [256]byte
	copy(mine[:], qp.Addr())
	all := make([][256]byte, c.Size())
	if err := mpi.Allgather(c, [][256]byte{mine}, all); err != nil {
		return nil, err
	}
	addr := all[1-c.Rank()]
	end := 0
	for end < len(addr) && addr[end] != 0 {
		end++
	}
	peer, err := dev.Resolve(rdma.Addr(addr[:end]))
	if err != nil {
		return nil, err
	}
	return &barePair{qp: qp, cq: cq, peer: peer, first: c.Rank() == 0}, c.Barrier()
}

func (d *barePair) pingpong(sbuf, rbuf []byte, n int) error {
	for range n {
		if d.first {
			if err := d.send(sbuf); err != nil {
				return err
			}
			d.recv(rbuf)
			continue
		}
		d.recv(rbuf)
		if err := d.send(sbuf); err != nil {
			return err
		}
	}
	return nil
}

func (d *barePair) send(b []byte) error {
	d.wr[0] = rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: d.peer, Body: rdma.MemOf(b)}
	for {
		n, err := d.qp.PostSend(d.wr[:])
		if n == 1 {
			return nil
		}
		if err != nil && err != rdma.ErrAgain {
			return err
		}
		d.cq.Poll(d.comps[:0])
	}
}

func (d *barePair) recv(b []byte) {
	for {
		if n := d.cq.Poll(d.comps[:]); n > 0 {
			copy(b, d.comps[0].Data.Bytes())
			return
		}
	}
}
