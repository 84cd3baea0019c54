package engine

// Memory of a lane's own that is registered for good, for puts and gets whose buffers have
// not earned a registration: the shell's part of p2p/stage.go. Blocks are of a power of two,
// cut from slabs that are made when they are needed, and come back to the list of their length:
//
//	Place    counts the use (sources.go); often: the buffer itself; else take
//	take     the first free block, or a new slab while there may be more
//	ReleaseStage  back to the list
//
// What is longer than stageMost, or finds no block because too much is under way, is
// registered by the cache as before. There the copy costs as much as the registration.

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
	// stageMemory bounds all slabs of a lane: a window of 64 of the longest.
	stageMemory = 64 * stageMost
)

// stages are the blocks of a lane.
type stages struct {
	dev   rdma.Device
	free  [stageClasses]*p2p.Stage
	slabs []rdma.MR
	most  int // slabs
}

// openStages gives a lane such memory, if its device pins what it moves. That is so too where
// no buffer is ever registered for short messages (FrequentNever): then all of them are copied.
func (d *lane) openStages() {
	if d.attr.LocalKeys && d.attr.Pins {
		d.stages = &stages{dev: d.dev, most: stageMemory / stageSlab}
	}
}

// stageClass is the list of blocks that hold n bytes.
func stageClass(n int) int { return max(bits.Len(uint(n-1)), stageLow) - stageLow }

// take gives a block for n bytes, nil if there is none.
func (s *stages) take(n int) *p2p.Stage {
	class := stageClass(n)
	if s.free[class] == nil && !s.grow(class) {
		return nil
	}
	b := s.free[class]
	s.free[class], b.Next = b.Next, nil
	return b
}

// put takes a block back.
func (s *stages) put(b *p2p.Stage) {
	b.Next = s.free[b.Class]
	s.free[b.Class] = b
}

// grow registers a slab and cuts it. It is false if there is as much as there may be.
func (s *stages) grow(class int) bool {
	if len(s.slabs) >= s.most {
		return false
	}
	mem := make([]byte, stageSlab)
	mr, err := s.dev.Register(mem, 0)
	if err != nil {
		s.most = len(s.slabs) // no more may be locked: those that there are must do
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

// bytes is the memory of all slabs.
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

// place finds memory for a put or a get.
func (d *lane) transferBuffer(mem []byte) (mr rdma.MR, direct bool, via *p2p.Stage) {
	if d.sources != nil && len(mem) >= sourceLeast {
		if mr, direct = d.use(mem, UseOneSided); direct {
			return mr, true, nil
		}
	}
	return mr, false, d.stages.take(len(mem))
}

// Place and ReleaseStage are for the machine.
func (r registrar) TransferBuffer(l *p2p.Link, mem []byte) (rdma.MR, bool, *p2p.Stage) {
	return r.e.lanes[l.Dev].transferBuffer(mem)
}

func (r registrar) ReleaseStage(l *p2p.Link, via *p2p.Stage) { r.e.lanes[l.Dev].stages.put(via) }
