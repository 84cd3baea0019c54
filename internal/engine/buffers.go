package engine

// Posted receive buffers, for devices that do not lend theirs and for Config.Posted: the
// shared receive queue of P3 section 2.3. openReceive posts the first buffers.
// returnBuffers reposts those that were read, and more when the device reports a low
// watermark. Package recvpool decides how many there are.

import (
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/recvpool"
)

const (
	// receiveMemory bounds the buffers of a lane: P3 section 4 stays between 5 and
	// 10 MB, for any number of peers.
	receiveMemory = 8 << 20
	// leastBuffers and mostBuffers bound the number of buffers.
	leastBuffers = 32
	mostBuffers  = 1024
)

// openReceive creates the receive queue of a lane: one that lends buffers, or one with
// posted buffers if they are requested or the device supports no other.
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

// bufferConfig returns the configuration of a lane's buffers. Their size is that of the
// longest packet, which carries the longest inline body.
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

// returnBuffers returns the buffers of n processed completions to the pool.
func (e *Held) returnBuffers(d *lane, n int) {
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
		d.pool.RecordDrained(time.Since(e.began))
	}
}

// countBuffers adds the counters of a lane's pool.
func (d *lane) countBuffers(c *prof.Counters) {
	s := d.pool.Stats()
	c.Add(prof.Name(rdma.MemoryReceive), s.Bytes)
	c.Add(prof.ReceiveBuffers, uint64(s.Now))
	c.Add(prof.ReceiveBuffersMost, uint64(s.Peak))
	c.Add(prof.ReceiveGrown, s.Grown)
	c.Add(prof.ReceiveShrunk, s.Shrunk)
}

// closeBuffers frees the buffers. The receive queue is closed.
func (d *lane) closeBuffers() error {
	if d.pool == nil {
		return nil
	}
	if err := d.pool.Close(); err != nil {
		return fmt.Errorf("end the registration of receive buffers with %s: %w", d.attr.Name, err)
	}
	return nil
}
