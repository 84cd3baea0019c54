package engine

// Receive buffers of the rank's own, for devices that do not lend theirs, and for who asks
// for them (Config.Posted): the shared receive queue of P3 section 2.3. openReceive posts the
// first of them, returnBuffers posts those again that were read, and more when the device
// says that it runs low. Package recvpool decides how many there are.

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/internal/recvpool"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
)

const (
	// receiveMemory is what the buffers of a lane take at most: P3 section 4 blocking between
	// 5 and 10 MB, whatever the number of peers.
	receiveMemory = 8 << 20
	// leastBuffers and mostBuffers bound their number.
	leastBuffers = 32
	mostBuffers  = 1024
)

// openReceive makes the receive queue of a lane: one that lends, or one with posted
// buffers if that is wanted or the device has no other.
func (d *lane) openReceive(posted bool) (err error) {
	lend := rdma.SRQConfig{Lend: true}
	if !posted {
		if d.srq, err = d.dev.NewSRQ(lend); !errors.Is(err, rdma.ErrUnsupported) {
			return err
		}
	}
	c := d.bufferConfig()
	srq, err := d.dev.NewSRQ(rdma.SRQConfig{Depth: c.Depth(), LowWater: c.Watermark()})
	if posted && errors.Is(err, rdma.ErrUnsupported) {
		d.srq, err = d.dev.NewSRQ(lend)
		return err
	}
	if err != nil {
		return err
	}
	d.srq, c.Post = srq, srq.PostRecv
	if d.pool, err = recvpool.New(c); err == nil {
		err = d.pool.Start()
	}
	return err
}

// bufferConfig says what buffers a lane needs: for the longest packet, which is that of the
// longest body sent inline.
func (d *lane) bufferConfig() recvpool.Config {
	size := min(d.attr.MaxSend, d.attr.MaxInline+rdma.HeadMax)
	most := min(max(receiveMemory/size, leastBuffers), mostBuffers)
	c := recvpool.Config{Size: size, Least: min(max(most/8, leastBuffers), most), Most: most}
	if d.attr.LocalKeys {
		c.Register = func(mem []byte) (rdma.MR, error) { return d.dev.Register(mem, 0) }
		c.Deregister = d.dev.Deregister
	}
	return c
}

// returnBuffers gives the buffers of n completions back, whose messages were read.
func (e *Engine) returnBuffers(d *lane, n int) {
	for i := range e.comps[:n] {
		switch c := &e.comps[i]; c.Op {
		case rdma.OpRecv:
			d.pool.Took()
			d.pool.Return(c.ID)
		case rdma.OpLowWater:
			d.pool.RanLow(time.Since(e.began))
		}
	}
	if n < len(e.comps) && !d.pool.Idle() {
		d.pool.Drained(time.Since(e.began))
	}
}

// countBuffers adds what the pool of a lane has counted.
func (d *lane) countBuffers(c *prof.Counters) {
	s := d.pool.Stats()
	c.Add(prof.Name(rdma.MemoryReceive), s.Bytes)
	c.Add(prof.ReceiveBuffers, uint64(s.Now))
	c.Add(prof.ReceiveBuffersMost, uint64(s.Peak))
	c.Add(prof.ReceiveGrown, s.Grown)
	c.Add(prof.ReceiveShrunk, s.Shrunk)
}

// closeBuffers gives the memory up. The receive queue is closed.
func (d *lane) closeBuffers() error {
	if d.pool == nil {
		return nil
	}
	if err := d.pool.Close(); err != nil {
		return fmt.Errorf("end the registration of receive buffers with %s: %w", d.attr.Name, err)
	}
	return nil
}
