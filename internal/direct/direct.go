package direct

// Engine has addresses of words of an engine, its state machine and its device. Lengths are
// those of slices.
type Engine struct {
	// The lock: the goroutine that owns it, and whether the owner has it.
	Bias, Inside uintptr
	// Driver is not 0 while a goroutine polls for the others, Failed after a failure, Blocked
	// is the number of links with packets that wait, Connecting of links that wait to be
	// opened.
	Driver, Failed, Blocked, Connecting uintptr
	// Operations and FreeOperations are equal if no operation is pending; Unexpected is the
	// number of messages without a receive.
	Operations, FreeOperations, Unexpected uintptr
	// Sizes counts the eager messages and their bytes by length.
	Sizes uintptr
	// Sent and Came count the messages of the device. Closed is its state, and Unfenced
	// reports that messages may be published without a fence.
	Sent, Came, Closed, Unfenced uintptr
}

// Peer has addresses of the words of the link to a peer, of the ring to it (Out) and of the
// ring from it (In). Shifts and sizes are values. OutPos and InPos are 0 if there is no such
// ring.
type Peer struct {
	SendSeq, RecvSeq, Credit, Consumed, Granted     uintptr
	OneMax, Open, Wait, Held, Recent                uintptr
	Sent, Received, BytesSent, BytesReceived, Eager uintptr
	Gone, Fenced, Sleeper                           uintptr

	OutCells, OutCellCount, OutBytes, OutByteCount uintptr
	OutPos, OutAt, OutCellsSeen, OutBytesSeen      uintptr
	OutHead, OutShift, OutCame, OutStreak          uintptr

	InCells, InCellCount, InBytes, InByteCount      uintptr
	InCell, InLap, InPos, InAt                      uintptr
	InPublishCells, InPublishBytes, InHead, InShift uintptr
	InSent, InStreak, InPause, InAsked, InLate      uintptr
}

// Sizes of the tables of the front.
const (
	MaxComms    = 256
	MaxPeers    = 256
	MaxQueue    = 256
	MaxReceives = 1024
	MaxTypes    = 256
)

// Front is the memory of the front: what the core has told it, and the receives that it has
// not told the core yet.
type Front struct {
	Spin   int64 // polls before a waiter enters Go
	Engine Engine
	// First to Last are the positions of Queue with the addresses of receives that the
	// program has posted, in order; 0 for one that has got its message. A call of the core
	// posts them first.
	First, Last uint64
	Queue       [MaxQueue]uintptr
	Types       [MaxTypes]uint32 // handles of contiguous predefined types, by their last byte
	Comms       [MaxComms]Comm   // MPI_COMM_WORLD, then by the number in the handle
	Peers       [MaxPeers]Peer   // by rank in the world
	Receives    [MaxReceives]Receive
}

// Comm is a communicator. Ranks is the address of the ranks in the world, 0 if they are
// equal to those in the communicator.
type Comm struct {
	Handle  int32
	Context uint32
	Rank    int32
	Size    int32
	Ranks   uintptr
}

// Receive is a receive of the program. Its number is part of the handle of its request.
type Receive struct {
	Buf, Room, Got    uint64 // address and size of the buffer, bytes received
	Context           uint32
	Source, Tag       int32 // -1: any
	State             int32
	GotSource, GotTag int32
	Peer              int32 // rank of the source in the world, -1: any
	Comm              int32 // handle
}

// States of a Receive.
const (
	Free    = iota
	Pending // in Queue
	Done
	InCore // the core has a request for it
)
