package pmi

// The board consists of a header, one row per rank, and the counters of each rank
// (board_metrics.go), and its slots (board_slots.go). All are 64-bit words with atomic
// access, so the same code works between processes (on mapped memory) and between
// goroutines (on the heap).
//
// A row has two halves with one writer each:
//
//	rank's half      seq, state, peer+tag, context, since, progress, bounded, comm, noticed, pid, op
//	launcher's half  died, n-th death, host, status
//
// A rank writes only before it blocks and after it has woken up, never on the path of a
// message. A sequence number protects its half: it is odd during a change. The launcher's
// half is written once, the flag last.

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Board is the status page of a job. All methods may be called on a nil Board, which is
// empty.
type Board struct {
	words []uint64
	size  int
	close func() error // nil on the heap
	dying sync.Mutex   // serializes the writing of deaths
	own   bool         // only this rank sees it
}

// WaitState describes what a rank waits for.
type WaitState struct {
	Op      string // the call: "Recv", in check mode "Recv (a.go:10)"; the first 56 bytes are kept
	Comm    string // the communicator's name; the first 32 bytes are kept
	Peer    int32  // rank in the world, or PeerAny, or PeerNone
	Tag     int32  // or TagAny, or TagNone
	Context uint32 // distinguishes communicators of the same name
	Sending bool   // Peer is the destination, not the source
	Since   int64  // Unix time in nanoseconds; 0: now
	// Other is a message that waits to be received and differs in source or tag from what the
	// rank waits for; 0: none.
	Other Unreceived
}

// Unreceived is a message that no receive has matched.
type Unreceived uint64

// MakeUnreceived returns a message from a rank of the world.
func MakeUnreceived(source int, tag int32) Unreceived {
	return Unreceived(uint64(source+1)<<32 | uint64(uint32(tag)))
}

// Source returns the rank in the world; -1: there is no message.
func (u Unreceived) Source() int { return int(u>>32) - 1 }
func (u Unreceived) Tag() int32  { return int32(u) }

const (
	PeerAny  = -1 // any rank of the communicator can end the wait
	PeerNone = -2 // the wait is for no single rank: a collective call
	TagAny   = -1
	TagNone  = -2
)

// RowState is the state of a rank.
type RowState uint8

const (
	RowAbsent  RowState = iota // has not joined the job, or does not use Muster
	RowRunning                 // computes, or communicates without blocking
	RowWaiting                 // blocks in the call described by Row.Wait
	RowLeft                    // has finished
)

// Row is the state of a rank on the board.
type Row struct {
	Rank     int
	State    RowState
	Wait     WaitState // if State is RowWaiting
	Progress uint64    // changes whenever the rank begins or ends a wait
	Since    int64     // time of the last change of Progress, Unix time in nanoseconds; 0: unknown
	PID      int       // its process; 0: unknown
	Started  bool      // initialization is complete and the program runs
}

// Death describes how a rank failed.
type Death struct {
	Rank   int
	Host   string // the first 64 bytes are kept
	Status string // "exit status 3", "killed by SIGKILL"; the first 248 bytes are kept
}

// Layout, in words.
const (
	boardMagic   = 0x3862746d // "mtb8": a change of the layout changes the digit
	headerWords  = 32         // magic and size; words that change have separate cache lines
	wordMagic    = 0
	wordDeaths   = 8
	wordArrived  = 16 // see gate.go
	wordCalls    = 17 // in the cache line of wordArrived, which an arrival changes anyway
	wordReleased = 24
	rowWords     = 64
	opBytes      = 56
	commBytes    = 32
	hostBytes    = 64
	statusBytes  = 248
	rowSeq       = 0
	rowState     = 1 // state, and Sending in bit 8
	rowPeerTag   = 2
	rowContext   = 3
	rowSince     = 4
	rowProgress  = 5
	rowBounded   = 6 // goroutines of the rank that wait with a context that can end
	rowOther     = 7 // Unreceived
	rowComm      = 9
	rowAsleep    = 13 // see gate.go
	rowNoticed   = 14 // 1: this rank has noticed the first death
	rowPID       = 15 // process that has joined as this rank, and startedFlag
	startedFlag  = 1 << 32
	rowDied      = 16 // 1 when the rest of the half is valid
	rowNthDeath  = 17 // row n: 1 + the rank that was the n-th to fail
	rowHost      = 18
	rowStatus    = rowHost + hostBytes/8
	rowOp        = rowStatus + statusBytes/8 // the rank writes it
	sendingFlag  = 1 << 8
	boardMaxSize = 1 << 22
	rowTries     = 200
)

func boardWords(size int) int { return headerWords + size*(rowWords+metricWords+Slots*slotWords) }

// NewBoard creates a board on the heap, for ranks that are goroutines.
func NewBoard(size int) *Board {
	b := &Board{words: make([]uint64, boardWords(size)), size: size}
	b.format()
	return b
}

// NewOwnBoard creates a board that only one rank sees. It has the failures of the job, which its
// owner writes; what ranks of a host do together on a board they do by messages.
func NewOwnBoard(size int) *Board {
	b := NewBoard(size)
	b.own = true
	return b
}

// IsShared reports whether all ranks of the host see the board.
func (b *Board) IsShared() bool { return b != nil && !b.own }

func (b *Board) format() {
	atomic.StoreUint64(&b.words[wordMagic], uint64(b.size)<<32|boardMagic)
}

// Size returns the number of rows.
func (b *Board) Size() int {
	if b == nil {
		return 0
	}
	return b.size
}

// Close unmaps the board. The board must not be used during or after the call.
func (b *Board) Close() error {
	if b == nil || b.close == nil {
		return nil
	}
	return b.close()
}

func (b *Board) row(rank int) []uint64 {
	if b == nil || uint(rank) >= uint(b.size) {
		return nil
	}
	at := headerWords + rank*rowWords
	return b.words[at : at+rowWords : at+rowWords]
}

// Waiting records that a rank is about to block. Repeating it with the same arguments
// while the rank still waits changes nothing, not even Since: a rank that wakes up
// spuriously and blocks again has made no progress. Nor has one that wakes up for another
// message than it waits for, so w.Other alone changes nothing else. Calls for one rank must
// not run concurrently.
func (b *Board) Waiting(rank int, w WaitState) {
	r := b.row(rank)
	if r == nil {
		return
	}
	state := uint64(RowWaiting)
	if w.Sending {
		state |= sendingFlag
	}
	peerTag := uint64(uint32(w.Peer))<<32 | uint64(uint32(w.Tag))
	if atomic.LoadUint64(&r[rowState]) == state && atomic.LoadUint64(&r[rowPeerTag]) == peerTag &&
		atomic.LoadUint64(&r[rowContext]) == uint64(w.Context) && sameText(r[rowOp:rowOp+opBytes/8], w.Op) {
		atomic.StoreUint64(&r[rowOther], uint64(w.Other))
		return
	}
	if w.Since == 0 {
		w.Since = time.Now().UnixNano()
	}
	atomic.AddUint64(&r[rowSeq], 1)
	atomic.StoreUint64(&r[rowState], state)
	atomic.StoreUint64(&r[rowPeerTag], peerTag)
	atomic.StoreUint64(&r[rowContext], uint64(w.Context))
	atomic.StoreUint64(&r[rowOther], uint64(w.Other))
	atomic.StoreUint64(&r[rowSince], uint64(w.Since))
	storeText(r[rowOp:rowOp+opBytes/8], w.Op)
	storeText(r[rowComm:rowComm+commBytes/8], w.Comm)
	atomic.AddUint64(&r[rowProgress], 1)
	atomic.AddUint64(&r[rowSeq], 1)
}

// WaitingBounded adds n to the number of goroutines of a rank that wait with a context
// that can end: while there is one, the rank may proceed although no message comes.
func (b *Board) WaitingBounded(rank, n int) {
	if r := b.row(rank); r != nil {
		atomic.AddUint64(&r[rowBounded], uint64(n))
	}
}

// MarkJoined records the process that has joined the job as a rank. The rank started by the
// launcher may be a shell, and this process one of its children.
func (b *Board) MarkJoined(rank, pid int) {
	if r := b.row(rank); r != nil {
		atomic.StoreUint64(&r[rowPID], uint64(pid))
	}
	b.Running(rank)
}

// MarkStarted records that a rank has completed its initialization and runs the program.
func (b *Board) MarkStarted(rank int) {
	if r := b.row(rank); r != nil {
		atomic.OrUint64(&r[rowPID], startedFlag)
	}
	b.Running(rank)
}

// Running records that a rank no longer waits. If it did not wait, this is one load.
func (b *Board) Running(rank int) { b.setState(rank, RowRunning) }

// MarkLeft records that a rank has finished.
func (b *Board) MarkLeft(rank int) { b.setState(rank, RowLeft) }

func (b *Board) setState(rank int, to RowState) {
	r := b.row(rank)
	if r == nil || atomic.LoadUint64(&r[rowState]) == uint64(to) {
		return
	}
	atomic.AddUint64(&r[rowSeq], 1)
	atomic.StoreUint64(&r[rowState], uint64(to))
	atomic.StoreUint64(&r[rowSince], uint64(time.Now().UnixNano()))
	atomic.AddUint64(&r[rowProgress], 1)
	atomic.AddUint64(&r[rowSeq], 1)
}

// Deaths returns the number of failed ranks. It is one atomic load, suitable for polling.
func (b *Board) Deaths() uint32 {
	if b == nil {
		return 0
	}
	return uint32(atomic.LoadUint64(&b.words[wordDeaths]))
}

// Death returns the i-th failure of the job, from 0: the first is the cause to report.
func (b *Board) Death(i int) (Death, bool) {
	r := b.row(i)
	if r == nil || i >= int(b.Deaths()) {
		return Death{}, false
	}
	return b.Dead(int(atomic.LoadUint64(&r[rowNthDeath])) - 1)
}

// Dead reports whether a rank has failed, and how.
func (b *Board) Dead(rank int) (Death, bool) {
	r := b.row(rank)
	if r == nil || atomic.LoadUint64(&r[rowDied]) != 1 {
		return Death{}, false
	}
	return Death{
		Rank:   rank,
		Host:   loadText(r[rowHost : rowHost+hostBytes/8]),
		Status: loadText(r[rowStatus : rowStatus+statusBytes/8]),
	}, true
}

// MarkDead publishes the failure of a rank to all ranks. Only the first failure of a rank
// counts. The launcher calls it.
func (b *Board) MarkDead(d Death) {
	r := b.row(d.Rank)
	if r == nil {
		return
	}
	b.dying.Lock()
	defer b.dying.Unlock()
	if atomic.LoadUint64(&r[rowDied]) != 0 {
		return
	}
	storeText(r[rowHost:rowHost+hostBytes/8], d.Host)
	storeText(r[rowStatus:rowStatus+statusBytes/8], d.Status)
	atomic.StoreUint64(&r[rowDied], 1)
	// Every rank can write to the board, so the count may be invalid.
	if nth := b.row(int(b.Deaths())); nth != nil {
		atomic.StoreUint64(&nth[rowNthDeath], uint64(d.Rank)+1)
	}
	atomic.AddUint64(&b.words[wordDeaths], 1)
}

// MarkNoticed records that a rank has noticed a failure and returns errors from now on.
func (b *Board) MarkNoticed(rank int) {
	if r := b.row(rank); r != nil {
		atomic.StoreUint64(&r[rowNoticed], 1)
	}
}

// HasNoticed reports whether a rank has called Noticed.
func (b *Board) HasNoticed(rank int) bool {
	r := b.row(rank)
	return r != nil && atomic.LoadUint64(&r[rowNoticed]) != 0
}

// Row returns the state of a rank.
func (b *Board) Row(rank int) Row {
	out := Row{Rank: rank}
	r := b.row(rank)
	if r == nil {
		return out
	}
	for try := 0; ; try++ {
		seq := atomic.LoadUint64(&r[rowSeq])
		// The writer may have been descheduled or killed during the change. After
		// rowTries-100 ms a torn row is better than none, because it is only printed.
		last := try == rowTries
		if seq&1 != 0 && !last {
			if try < 100 {
				runtime.Gosched()
			} else {
				time.Sleep(time.Millisecond)
			}
			continue
		}
		state := atomic.LoadUint64(&r[rowState])
		peerTag := atomic.LoadUint64(&r[rowPeerTag])
		out.State = RowState(state)
		out.Progress = atomic.LoadUint64(&r[rowProgress])
		out.Since = int64(atomic.LoadUint64(&r[rowSince]))
		pid := atomic.LoadUint64(&r[rowPID])
		out.PID, out.Started = int(uint32(pid)), pid&startedFlag != 0
		out.Wait = WaitState{}
		if out.State == RowWaiting {
			out.Wait = WaitState{
				Op:      loadText(r[rowOp : rowOp+opBytes/8]),
				Comm:    loadText(r[rowComm : rowComm+commBytes/8]),
				Peer:    int32(peerTag >> 32),
				Tag:     int32(peerTag),
				Context: uint32(atomic.LoadUint64(&r[rowContext])),
				Sending: state&sendingFlag != 0,
				Since:   out.Since,
				Other:   Unreceived(atomic.LoadUint64(&r[rowOther])),
			}
		}
		if last || atomic.LoadUint64(&r[rowSeq]) == seq {
			return out
		}
	}
}

// Pulse returns the sum of the progress of all ranks, and whether every rank that has not
// left waits, with no context that can end a wait. It allocates nothing, so it can be
// called often.
func (b *Board) Pulse() (progress uint64, blocked bool) {
	for rank := range b.Size() {
		r := b.row(rank)
		progress += atomic.LoadUint64(&r[rowProgress])
		switch RowState(atomic.LoadUint64(&r[rowState])) {
		case RowWaiting:
			if atomic.LoadUint64(&r[rowBounded]) != 0 {
				return progress, false
			}
			blocked = true
		case RowAbsent, RowRunning:
			return progress, false
		}
	}
	return progress, blocked
}

// Snapshot appends all rows to dst[:0] and returns it.
func (b *Board) Snapshot(dst []Row) []Row {
	dst = dst[:0]
	for rank := range b.Size() {
		dst = append(dst, b.Row(rank))
	}
	return dst
}

// Texts are stored in words, first byte lowest, padded with zeros and truncated to the
// available space.

func textWord(s string, at int) uint64 {
	var w uint64
	for i := min(len(s), at+8) - 1; i >= at; i-- {
		w = w<<8 | uint64(s[i])
	}
	return w
}

func storeText(words []uint64, s string) {
	for i := range words {
		atomic.StoreUint64(&words[i], textWord(s, i*8))
	}
}

func sameText(words []uint64, s string) bool {
	for i := range words {
		if atomic.LoadUint64(&words[i]) != textWord(s, i*8) {
			return false
		}
	}
	return true
}

func loadText(words []uint64) string {
	var b strings.Builder
	for i := range words {
		for w := atomic.LoadUint64(&words[i]); w != 0; w >>= 8 {
			b.WriteByte(byte(w))
		}
	}
	return b.String()
}
