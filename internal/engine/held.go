package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/pmi"
	"github.com/muster-mpi/muster/rdma"
)

// Held is a rank whose lock the caller holds: Hold returns it, and it is invalid after
// Release. A method that waits releases the lock meanwhile.
type Held struct {
	setup
	mu    spinLock
	m     *p2p.Machine
	home  lane // the first lane
	comps [pollBatch]rdma.Completion
	// ringWrites is scratch space for a packet written into a ring.
	ringWrites [2]rdma.SendWR
	movers     []mover // devices whose polls can transfer data without a completion
	links      linkTable
	waits      waits
	thread     *progressThread // nil until needed: Config.Async, a device that is served or a window
	leaves     bool            // the progress thread must know of the end of this call
	calls      uint64          // that made progress
	colls      collectives
	scratch    scratchPool
	watcher    Watcher // nil: none
	beside     []*Engine

	failed     error
	stopped    bool // failed is not nil, for the C front (direct.go)
	closed     bool
	finalizing bool // the program makes no more calls
	leaving    bool
	deaths     deathWatch
	ft         tolerance
}

// setup is what New has determined and nobody changes: it is read without the lock.
type setup struct {
	engine *Engine
	cfg    Config
	client pmi.Client
	board  *pmi.Board
	rank   int
	size   int
	lanes  []*lane // all lanes, home included
	spin   int
	yields int
	began  time.Time
	cards  *atomic.Pointer[[][]byte] // of all ranks, if this one does not ask the launcher (SetCards)
}

// linkTable holds the links to peers, and those that something is to be done for.
type linkTable struct {
	byRank     map[int]*p2p.Link
	last       *p2p.Link      // the most recently used
	blocked    []*p2p.Link    // with packets that the device has not accepted yet
	connecting []*p2p.Link    // wait to be connected
	timer      *time.Timer    // connects them in the background
	opens      int            // links that are being connected
	opening    sync.WaitGroup // counts them for Close
	cards      int            // cards fetched from the launcher
}

// deathWatch is what a rank has read about dead ranks.
type deathWatch struct {
	seen     uint32       // deaths read from the board so far
	alarm    atomic.Bool  // set when Held.failed is set, or a death has been reported
	timer    *time.Timer  // checks for deaths in the background, see Alarm
	reported map[int]bool // ranks that were reported to the launcher as unreachable; nil: none
}

// Hold takes the lock, for several operations in a row. Release follows.
func (r *Engine) Hold() *Held { return r.lock() }

// Release releases the lock.
func (e *Held) Release() {
	if len(e.links.connecting) > 0 {
		e.openAll()
	}
	e.unlock()
}

func (r *Engine) lock() *Held {
	r.held.mu.lock()
	return &r.held
}

// unlock ends a call. Waits that release the lock for a moment use mu.
func (e *Held) unlock() {
	if e.leaves {
		e.leave()
		return
	}
	e.mu.unlock()
}

// borrow takes the lock for another goroutine than that of a call, if it is free (lock.go).
func (r *Engine) borrow() (*Held, bool) { return &r.held, r.held.mu.borrow() }

// borrowWanted borrows the lock as soon as it is free. The caller returns it with mu.giveBack.
func (r *Engine) borrowWanted() *Held {
	r.held.mu.borrowWanted()
	return &r.held
}
