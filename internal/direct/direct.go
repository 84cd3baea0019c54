package direct

import "sync/atomic"

// The structs of this file are in memory of the front. Pointers in them lead to words of Go
// objects that are pinned; addresses lead to memory that is not of the Go heap, and their
// tag is the type in C. front/direct_gen.h is generated from them.

// Engine is the words of an engine, its state machine and its device. Lengths are those of
// slices.
type Engine struct {
	// The lock: the goroutine that owns it, and whether the owner has it.
	Bias   *uintptr
	Inside *uint64
	// Driven is set while a goroutine polls for the others, Failed after a failure. Blocked
	// is the number of links with packets that wait, Connecting of links that wait to be
	// opened.
	Driven, Failed      *bool
	Blocked, Connecting *int
	// Operations and FreeOperations are equal if no operation is pending; Unexpected is the
	// number of messages without a receive.
	Operations, FreeOperations, Unexpected *int
	// Sizes counts the eager messages and their bytes by length.
	Sizes *uint64
	// Sent and Came count the messages of the device. Closed is its state, and Unfenced
	// reports that messages may be published without a fence.
	Sent, Came *uint64
	Closed     *bool
	Unfenced   *atomic.Bool
}

// Peer is the words of the link to a peer, of the ring to it and of the ring from it.
type Peer struct {
	SendSeq, RecvSeq                                *uint32
	Credit, Consumed, Granted                       *int64
	OneMax                                          *int
	Open                                            *bool
	Wait, Held                                      *int    // lengths
	Recent                                          *uint64 // the envelopes of the latest messages
	Sent, Received, BytesSent, BytesReceived, Eager *uint64
	Gone, Fenced                                    *bool
	Sleeper                                         *atomic.Uint32
	Out                                             RingOut
	In                                              RingIn
}

// Ring is what both ends of a ring have: its memory, and where the end is in it. Pos is nil
// if there is no such ring.
type Ring struct {
	Cells     uintptr `c:"struct ring_cell *"`
	CellCount uint64
	Bytes     uintptr `c:"uint8_t *"`
	ByteCount uint64
	Head      uintptr `c:"struct ring_head *"`
	Shift     uint64
	Pos, At   *uint64
	Streak    *int
}

// RingOut is the writer's end of a ring.
type RingOut struct {
	Ring
	CellsSeen, BytesSeen, Came *uint64
}

// RingIn is the reader's end of a ring.
type RingIn struct {
	Ring
	Cell                       *uintptr `c:"struct ring_cell **"`
	Lap                        *uint32
	PublishCells, PublishBytes *uint64
	Sent                       *uint64
	Pause                      *int
	Asked                      *uint64
	Late                       *bool
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
	Queue       [MaxQueue]uintptr `c:"struct muster_receive *"`
	Types       [MaxTypes]uint32  // handles of contiguous predefined types, by their last byte
	Comms       [MaxComms]Comm    // MPI_COMM_WORLD, then by the number in the handle
	Peers       [MaxPeers]Peer    // by rank in the world
	Receives    [MaxReceives]Receive
}

// Comm is a communicator. Ranks is the ranks in the world, nil if they are equal to those in
// the communicator.
type Comm struct {
	Handle  int32
	Context uint32
	Rank    int32
	Size    int32
	Ranks   *int32
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

// Constants returns the sizes and states of this package, under the names that they have in C.
func Constants() map[string]int64 {
	return map[string]int64{
		"MAX_COMMS": MaxComms, "MAX_PEERS": MaxPeers, "MAX_QUEUE": MaxQueue, "MAX_RECEIVES": MaxReceives, "MAX_TYPES": MaxTypes,
		"RECEIVE_FREE": Free, "RECEIVE_PENDING": Pending, "RECEIVE_DONE": Done, "RECEIVE_IN_CORE": InCore,
	}
}

// States of a Receive.
const (
	Free    = iota
	Pending // in Queue
	Done
	InCore // the core has a request for it
)
