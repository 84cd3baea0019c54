package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/muster-mpi/muster/internal/shmem"
)

// The layout of a segment. Only this file converts raw memory to typed memory. Everything
// that two ranks write is on a separate cache line.

// word is 64 bits that two ranks share.
type word = shmem.Word

const (
	lineBytes = shmem.LineBytes
	pageBytes = 4096

	// segmentMagic is written last, so that a peer that maps a segment too early sees that
	// it is not ready. layoutVersion changes with anything in this file.
	segmentMagic  = 0x3152_5453_554d_4d53
	layoutVersion = 4

	// maxSend is the largest message: a segment of 32 KB and its Head.
	maxSend = 32<<10 + 64

	queueInline = 48
	ringInline  = 56

	smallBlockBytes = 1 << 10
	largeBlockBytes = (maxSend + lineBytes - 1) / lineBytes * lineBytes

	maxRings      = 64 // one word of claim bits
	slotsPerChunk = 64
)

// geometry is the size of each part of a segment. It is stored in the header, because
// peers may have chosen different sizes.
type geometry struct {
	cells       uint32 // of the shared queue; a power of two
	smallBlocks uint32 // at most 64
	largeBlocks uint32 // at most 64
	slots       uint32 // a multiple of slotsPerChunk, at most 65536
	rings       uint32 // at most maxRings
	ringCells   uint32 // a power of two
	ringBytes   uint32 // a power of two, at least 128 KB
	version     uint32
}

type segmentHeader struct {
	magic word
	nonce word
	pid   word
	index uint32
	flags uint32
	geo   geometry

	// sleeper is read by each sender after each message and written only when
	// the owner parks, wakes or closes.
	sleeper atomic.Uint32
	// wakeCount counts the wake-ups of the goroutine that waits beside the owner.
	wakeCount atomic.Uint32
	_         [lineBytes - 8]byte

	tail word // of the shared queue: the next position to claim
	_    [lineBytes - 8]byte

	smallUsed word // one bit per block
	_         [lineBytes - 8]byte
	largeUsed word
	_         [lineBytes - 8]byte
	ringUsed  word // one bit per ring
	_         [lineBytes - 8]byte

	// pullCount counts the pulls that peers have opened on the owner's regions, so that
	// the owner checks one word and not every region.
	pullCount word
	_         [lineBytes - 8]byte

	// base is the address at which the owner has mapped the segment: peers read the nonce
	// there to find out whether the kernel permits it.
	base word
	_    [lineBytes - 8]byte
}

// flagMembarrier in the header: the owner orders its sleeper word against the
// senders' stores by membarrier, so senders need no fence.
const flagMembarrier = 1

// queueCell is an entry of the shared queue. seq is twice the lap when the cell
// is free and one more when it is full, so that zeroed memory is an empty queue.
type queueCell struct {
	seq  word
	meta uint64
	data [queueInline]byte
}

// ringCell is an entry of a ring. tag holds the lap, the kind and the length.
type ringCell struct {
	tag  word
	data [ringInline]byte
}

// ringHead holds the positions that the consumer of a ring publishes to its producer, and
// wanted, which the producer sets when it finds no room.
type ringHead struct {
	cells  word // positions consumed
	bytes  word
	wanted word
	_      [lineBytes - 24]byte
}

// slot is a registration.
type slot struct {
	key    word // 0: none
	base   word
	size   word
	rights word
	_      [lineBytes - 32]byte
	pull   pullState
}

// pullState is the current cooperative copy of a slot, see cooperative.go.
type pullState struct {
	state  word // pullIdle, pullOpening, …, with the epoch above
	cursor word // epoch, and what each side has claimed (pieces.go)
	done   word // epoch and bytes that have arrived
	gave   word // a piece that the owner claimed but could not copy
	length uint64
	source uint64 // address in the owner
	dest   uint64 // address in the puller; between goroutines the key of it
	puller uint64 // index of the puller, and pullerWrites
}

// segment is one rank's segment as seen from here. In heap mode all devices
// share one such value, otherwise each has its own mapping.
type segment struct {
	head  *segmentHeader
	cells []queueCell
	small []byte // process mode
	large []byte // process mode
	slots []slot // process mode
	rings []byte // process mode
	geo   geometry
	mem   []byte // all of it; process mode

	// Heap mode only: parts that would be sparse in a mapping are allocated on first use.
	heap       bool
	blocks     []atomic.Pointer[byte] // small ones, then large ones
	slotChunks []atomic.Pointer[[slotsPerChunk]slot]
	ringChunks []atomic.Pointer[ringMemory]
	// The owner sleeps on wake, the goroutine beside it on beside.
	wake, beside chan struct{}

	// regions holds the registrations of an owner in this process, in memory that peers
	// cannot write. It also keeps the registered memory alive.
	regions []atomic.Pointer[[slotsPerChunk]region]
}

// region is a registration as its owner keeps it. It has the same contents as the slot,
// but a slot is in the segment, where a peer could change its base or size; the owner's
// process must never use those to access its own memory.
type region struct {
	start              atomic.Pointer[byte]
	key                word // 0: none
	base, size, rights word
}

// ringMemory is the memory of a ring.
type ringMemory struct {
	head  *ringHead
	cells []ringCell
	bytes []byte // process mode
	lazy  atomic.Pointer[byte]
}

// allocate returns the n bytes beside the cells of a ring in heap mode. They are allocated
// for the first message that needs them: short ones do not.
func (m *ringMemory) allocate(n int) []byte {
	if b := m.lazy.Load(); b != nil {
		return sliceAt(b, uint64(n))
	}
	m.lazy.CompareAndSwap(nil, &shmem.AlignedBytes(n)[0])
	return sliceAt(m.lazy.Load(), uint64(n))
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

func (g geometry) ringStride() int {
	return roundUp(lineBytes+int(g.ringCells)*lineBytes+int(g.ringBytes), pageBytes)
}

// parts are the offsets of the parts of a mapped segment.
type parts struct{ cells, small, large, slots, rings, end int }

func (g geometry) parts() parts {
	var p parts
	p.cells = pageBytes
	p.small = p.cells + int(g.cells)*lineBytes
	p.large = p.small + int(g.smallBlocks)*smallBlockBytes
	p.slots = roundUp(p.large+int(g.largeBlocks)*largeBlockBytes, pageBytes)
	p.rings = roundUp(p.slots+int(g.slots)*int(unsafe.Sizeof(slot{})), pageBytes)
	p.end = p.rings + int(g.rings)*g.ringStride()
	return p
}

// newHeapSegment returns a segment in ordinary memory. Header and cells are separate, because
// the allocator has a size of 32 KB, and the next one is 40 KB.
func newHeapSegment(g geometry) *segment {
	return &segment{
		geo: g, heap: true,
		head:       (*segmentHeader)(unsafe.Pointer(&shmem.AlignedBytes(int(unsafe.Sizeof(segmentHeader{})))[0])),
		cells:      unsafe.Slice((*queueCell)(unsafe.Pointer(&shmem.AlignedBytes(int(g.cells) * lineBytes)[0])), g.cells),
		blocks:     make([]atomic.Pointer[byte], g.smallBlocks+g.largeBlocks),
		slotChunks: make([]atomic.Pointer[[slotsPerChunk]slot], g.slots/slotsPerChunk),
		ringChunks: make([]atomic.Pointer[ringMemory], g.rings),
		wake:       make(chan struct{}, 1),
		beside:     make(chan struct{}, 1),
	}
}

// layOut maps the parts onto mem, which has the length of the geometry and is aligned to a
// cache line.
func layOut(mem []byte, g geometry) *segment {
	p := g.parts()
	s := &segment{geo: g, mem: mem}
	s.head = (*segmentHeader)(unsafe.Pointer(&mem[0]))
	s.cells = unsafe.Slice((*queueCell)(unsafe.Pointer(&mem[p.cells])), g.cells)
	s.small = mem[p.small:p.large:p.large]
	s.large = mem[p.large:p.slots:p.slots]
	s.slots = unsafe.Slice((*slot)(unsafe.Pointer(&mem[p.slots])), g.slots)
	s.rings = mem[p.rings:p.end:p.end]
	return s
}

// headerOf reads the header of a mapping before its geometry is known.
func headerOf(mem []byte) *segmentHeader { return (*segmentHeader)(unsafe.Pointer(&mem[0])) }

// addressOf returns the address of a word, as another process passes it to the kernel.
func addressOf(w *word) uint64 { return uint64(uintptr(unsafe.Pointer(w))) }

// ring returns the memory of ring i. In heap mode the first call allocates it, which is by
// the sender that has claimed it.
func (s *segment) ring(i int) *ringMemory {
	if !s.heap {
		stride := s.geo.ringStride()
		return layOutRing(s.rings[i*stride:(i+1)*stride], s.geo)
	}
	if r := s.ringChunks[i].Load(); r != nil {
		return r
	}
	r := &ringMemory{
		head:  (*ringHead)(unsafe.Pointer(&shmem.AlignedBytes(lineBytes)[0])),
		cells: unsafe.Slice((*ringCell)(unsafe.Pointer(&shmem.AlignedBytes(int(s.geo.ringCells) * lineBytes)[0])), s.geo.ringCells),
	}
	if !s.ringChunks[i].CompareAndSwap(nil, r) {
		r = s.ringChunks[i].Load()
	}
	return r
}

func layOutRing(mem []byte, g geometry) *ringMemory {
	at := lineBytes + int(g.ringCells)*lineBytes
	return &ringMemory{
		head:  (*ringHead)(unsafe.Pointer(&mem[0])),
		cells: unsafe.Slice((*ringCell)(unsafe.Pointer(&mem[lineBytes])), g.ringCells),
		bytes: mem[at : at+int(g.ringBytes) : at+int(g.ringBytes)],
	}
}

// slot returns registration i, or nil in heap mode if that slot was never used.
func (s *segment) slot(i int) *slot {
	if !s.heap {
		return &s.slots[i]
	}
	if c := s.slotChunks[i/slotsPerChunk].Load(); c != nil {
		return &c[i%slotsPerChunk]
	}
	return nil
}

// region returns the registration of an owner in this process in slot i, or nil if that
// slot was never used.
func (s *segment) region(i int) *region {
	if i/slotsPerChunk >= len(s.regions) {
		return nil
	}
	if c := s.regions[i/slotsPerChunk].Load(); c != nil {
		return &c[i%slotsPerChunk]
	}
	return nil
}

// heapBlock returns block i of n bytes, the at-th of all. The first call allocates it, which
// is by the sender that has claimed it.
func (s *segment) heapBlock(at, n int) []byte {
	b := s.blocks[at].Load()
	if b == nil {
		b = &shmem.AlignedBytes(n)[0]
		s.blocks[at].Store(b)
	}
	return sliceAt(b, uint64(n))
}

// sliceAt returns the n bytes at p.
func sliceAt(p *byte, n uint64) []byte { return unsafe.Slice(p, n) }
