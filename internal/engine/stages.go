package engine

// Bounce buffers: permanently registered memory for puts and gets whose buffers are not
// registered. This is the engine's part of p2p/stage.go. Blocks have power-of-two sizes;
// they are cut from slabs that are allocated on demand, and return to the free list of
// their size:
//
//	TransferBuffer  counts the use (sources.go); frequent: the buffer itself; else take
//	take            the first free block, or a new slab within the limit
//	ReleaseStage    returns the block to its list
//
// A transfer that is longer than stageMost, or finds no block because too many are in
// use, registers its buffer through the cache. There the copy costs as much as the
// registration.

import (
	"fmt"
	"math/bits"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/rdma"
)

const (
	stageMost    = 64 << 10
	stageLow     = 10 // bits of the shortest block
	stageClasses = 16 - stageLow + 1
	stageSlab    = 64 << 10
	// stageMemory bounds the slabs of a lane: 64 blocks of the largest size.
	stageMemory = 64 * stageMost
)

// stages holds the blocks of a lane.
type stages struct {
	dev   rdma.Device
	free  [stageClasses]*p2p.Stage
	slabs []rdma.MR
	most  int // largest number of slabs
}

// openStages creates bounce buffers if the device pins the memory it transfers. That
// includes FrequentNever, where no buffer is registered for short messages: then all of
// them are copied.
func (d *lane) openStages() {
	if d.attr.LocalKeys && d.attr.Pins {
		d.stages = &stages{dev: d.dev, most: stageMemory / stageSlab}
	}
}

// stageClass returns the class of blocks that hold n bytes.
func stageClass(n int) int { return max(bits.Len(uint(n-1)), stageLow) - stageLow }

// take returns a block for n bytes, or nil.
func (s *stages) take(n int) *p2p.Stage {
	class := stageClass(n)
	if s.free[class] == nil && !s.grow(class) {
		return nil
	}
	b := s.free[class]
	s.free[class], b.Next = b.Next, nil
	return b
}

// put returns a block to its list.
func (s *stages) put(b *p2p.Stage) {
	b.Next = s.free[b.Class]
	s.free[b.Class] = b
}

// grow registers a slab and cuts it into blocks. It returns false at the limit.
func (s *stages) grow(class int) bool {
	if len(s.slabs) >= s.most {
		return false
	}
	mem := make([]byte, stageSlab)
	mr, err := s.dev.Register(mem, 0)
	if err != nil {
		s.most = len(s.slabs) // no more memory can be locked: use the existing slabs
		return false
	}
	s.slabs = append(s.slabs, mr)
	size := 1 << (stageLow + class)
	blocks := make([]p2p.Stage, stageSlab/size)
	for i := range blocks {
		blocks[i] = p2p.Stage{Mem: mem[i*size:][:size:size], LKey: mr.LKey, Class: class}
		s.put(&blocks[i])
	}
	return true
}

// bytes returns the memory of all slabs.
func (s *stages) bytes() int { return len(s.slabs) * stageSlab }

// close ends the registrations. The queues of the device are closed.
func (s *stages) close() error {
	for i, mr := range s.slabs {
		if err := s.dev.Deregister(mr); err != nil {
			return fmt.Errorf("end the registration of %d blocks of %d bytes: %w", len(s.slabs)-i, stageSlab, err)
		}
	}
	s.slabs, s.free = nil, [stageClasses]*p2p.Stage{}
	return nil
}

// transferBuffer finds memory for a put or a get.
func (d *lane) transferBuffer(mem []byte) (mr rdma.MR, direct bool, via *p2p.Stage) {
	if d.sources != nil && len(mem) >= sourceLeast {
		if mr, direct = d.use(mem, UseOneSided); direct {
			return mr, true, nil
		}
	}
	return mr, false, d.stages.take(len(mem))
}

// TransferBuffer and ReleaseStage implement p2p.Sources.
func (r registrar) TransferBuffer(l *p2p.Link, mem []byte) (rdma.MR, bool, *p2p.Stage) {
	return r.e.lanes[l.Dev].transferBuffer(mem)
}

func (r registrar) ReleaseStage(l *p2p.Link, via *p2p.Stage) { r.e.lanes[l.Dev].stages.put(via) }
