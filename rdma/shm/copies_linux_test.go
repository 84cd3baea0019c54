package shm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Reads, writes and cooperative copies between processes.

// describe sends a registered region to a peer.
func (r *rank) describe(to int, mr rdma.MR) error {
	msg := binary.LittleEndian.AppendUint64(nil, mr.Base)
	msg = binary.LittleEndian.AppendUint64(msg, mr.RKey)
	return r.send(to, binary.LittleEndian.AppendUint64(msg, mr.Len))
}

// message returns the next message; other completions are kept.
func (r *rank) message() ([]byte, error) {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		for i, c := range r.got {
			if c.Op == rdma.OpRecv {
				r.got = append(r.got[:i], r.got[i+1:]...)
				return c.Data.Bytes(), nil
			}
		}
		r.poll()
	}
	return nil, fmt.Errorf("no message arrived in 20 s")
}

func (r *rank) described() (mr rdma.MR, err error) {
	b, err := r.message()
	if err != nil || len(b) != 24 {
		return mr, fmt.Errorf("want the description of a region, got %d bytes, %v", len(b), err)
	}
	mr.Base, mr.RKey, mr.Len = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	return mr, nil
}

// playCopies makes rank 0 read, write and pull from rank 1.
func playCopies(r *rank, p *part) error {
	pulls := r.dev.Attr().Ops.Has(rdma.OpPull)
	for i, size := range p.Sizes {
		var err error
		if p.Index == 0 {
			err = r.copyFrom(i, size, pulls)
		} else {
			err = r.serveCopies(i, size, pulls)
		}
		if err != nil {
			return fmt.Errorf("%d bytes: %w", size, err)
		}
	}
	fmt.Println("end")
	return nil
}

func (r *rank) copyFrom(seed, size int, pulls bool) error {
	mr, err := r.described()
	if err != nil {
		return err
	}
	body := make([]byte, size)
	check := func(op rdma.Op, remote uint64, want rdma.Status) error {
		c, err := r.do(rdma.SendWR{ID: 3, Op: op, Peer: 1, Remote: remote, RKey: mr.RKey, Body: rdma.MemOf(body)})
		if err != nil || c.Status != want || want == rdma.StatusOK && c.Len != uint64(size) {
			return fmt.Errorf("%v should end with %v, got %v, %d bytes, %v", op, want, c.Status, c.Len, err)
		}
		return nil
	}
	if pulls {
		if err := check(rdma.OpPull, mr.Base, rdma.StatusOK); err != nil {
			return err
		}
		if !bytes.Equal(body, pattern(seed, size)) {
			return fmt.Errorf("pulled the wrong data")
		}
		clear(body)
	}
	if err := check(rdma.OpRead, mr.Base, rdma.StatusOK); err != nil {
		return err
	}
	if !bytes.Equal(body, pattern(seed, size)) {
		return fmt.Errorf("read the wrong data")
	}
	if err := check(rdma.OpRead, mr.Base+1, rdma.StatusRemoteAccess); err != nil {
		return err
	}
	copy(body, pattern(seed+1, size))
	if err := check(rdma.OpWrite, mr.Base, rdma.StatusOK); err != nil {
		return err
	}
	if err := r.send(1, []byte{1}); err != nil {
		return err
	}
	if _, err := r.message(); err != nil { // rank 1 has deregistered
		return err
	}
	return check(rdma.OpRead, mr.Base, rdma.StatusRemoteAccess)
}

func (r *rank) serveCopies(seed, size int, pulls bool) error {
	region := pattern(seed, size)
	mr, err := r.dev.Register(region, rdma.RemoteRead|rdma.RemoteWrite|rdma.Cooperative)
	if err != nil {
		return err
	}
	if err := r.describe(0, mr); err != nil {
		return err
	}
	if pulls {
		c, err := r.do(rdma.SendWR{ID: 4, Op: rdma.OpPush, Peer: 0, RKey: mr.RKey, Body: rdma.MemOf(region)})
		if err != nil || c.Status != rdma.StatusOK || c.Len != uint64(size) {
			return fmt.Errorf("push should succeed, got %v, %d bytes, %v", c.Status, c.Len, err)
		}
	}
	if _, err := r.message(); err != nil {
		return err
	}
	if !bytes.Equal(region, pattern(seed+1, size)) {
		return fmt.Errorf("the wrong data was written")
	}
	if err := r.dev.Deregister(mr); err != nil {
		return err
	}
	return r.send(0, []byte{2})
}

// TestCopiesWithoutProcessVM is TestCopiesBetweenProcesses under a seccomp filter like
// that of a container: for all processes, and for all but the caller's own, so that a rank
// notices only when it resolves a peer.
func TestCopiesWithoutProcessVM(t *testing.T) {
	for _, whom := range []string{refuseAll, refusePeers} {
		c := start(t, part{Scenario: "copies", N: 2, Refuse: whom, Sizes: []int{1, 65537, 5<<20 + 3}}, false)
		c.finish(60 * time.Second)
	}
}

func TestCopiesBetweenProcesses(t *testing.T) {
	for _, cfg := range []Config{{}, {NoProcessVM: true}, {NoMemfd: true}, {NoProcessVM: true, Rings: -1}} {
		cfg.ShmDir = t.TempDir()
		t.Logf("NoProcessVM %v, NoMemfd %v, Rings %d", cfg.NoProcessVM, cfg.NoMemfd, cfg.Rings)
		c := start(t, part{Scenario: "copies", N: 2, Config: cfg, Sizes: []int{1, 100, 4096, 65536, 65537, 1 << 20, 5<<20 + 3}}, false)
		c.finish(60 * time.Second)
	}
}
