package rma

// The format of a request: a header, then its data. All integers are little-endian. It is
// a message of its own, so its length is known.
//
//	0     1   2  3     4       8       16     24        32
//	kind  op  el -     tag     region  offset length    | data, or compare and value
//
// El is the code of the elements, 0 for those of the window. Tag is that of the answer, 0
// for none. An answer is an Outcome in AnswerHead bytes, followed by the requested bytes.

import (
	"encoding/binary"
	"fmt"
)

// Kind is the kind of a request.
type Kind uint8

const (
	Put           Kind = iota + 1
	Get                // answer: the bytes
	Accumulate         // by Op
	GetAccumulate      // answer: the previous bytes; then by Op
	CompareSwap        // data: expected and new bytes; answer: the previous bytes
	Flush              // answer: all requests before it have been served
	LockShared         // answer: when it is granted
	LockExclusive      // the same
	Unlock             // answer, if requested: all requests before it have been served
	Keys               // answer: the keys of the target's memory (Target.Keys)
	kindCount
)

var kindNames = [kindCount]string{"", "put", "get", "accumulate", "get-accumulate", "compare-and-swap", "flush", "lock shared", "lock exclusive", "unlock", "keys"}

func (k Kind) String() string {
	if k > 0 && k < kindCount {
		return kindNames[k]
	}
	return fmt.Sprintf("request %d", uint8(k))
}

// Request is the header of a request.
type Request struct {
	Kind   Kind
	Op     Op
	Code   uint8 // of the elements: Elements.Code
	Tag    int32
	Region uint64 // memory of the target: 0, the result of Attach, or ByAddress
	Offset uint64 // in bytes; an address with ByAddress
	Length uint64 // in bytes
}

// ByAddress is the Region of attached memory that the request names by its address in the
// target, as bindings of C do.
const ByAddress = ^uint64(0)

// HeaderLen is the length of a header.
const HeaderLen = 32

// Encode writes the header to b.
func (r *Request) Encode(b []byte) {
	_ = b[HeaderLen-1]
	b[0], b[1], b[2], b[3] = byte(r.Kind), byte(r.Op), r.Code, 0
	binary.LittleEndian.PutUint32(b[4:], uint32(r.Tag))
	binary.LittleEndian.PutUint64(b[8:], r.Region)
	binary.LittleEndian.PutUint64(b[16:], r.Offset)
	binary.LittleEndian.PutUint64(b[24:], r.Length)
}

// Decode reads a header and returns the data behind it. ok is false for an invalid request.
func (r *Request) Decode(b []byte) (data []byte, ok bool) {
	if len(b) < HeaderLen {
		return nil, false
	}
	r.Kind, r.Op, r.Code = Kind(b[0]), Op(b[1]), b[2]
	r.Tag = int32(binary.LittleEndian.Uint32(b[4:]))
	r.Region = binary.LittleEndian.Uint64(b[8:])
	r.Offset = binary.LittleEndian.Uint64(b[16:])
	r.Length = binary.LittleEndian.Uint64(b[24:])
	data = b[HeaderLen:]
	want := uint64(0)
	switch r.Kind {
	case Put, Accumulate, GetAccumulate:
		want = r.Length
		if r.Op == NoOp && r.Kind == GetAccumulate {
			want = 0
		}
	case CompareSwap:
		want = 2 * r.Length
	case Get, Flush, LockShared, LockExclusive, Unlock, Keys:
	default:
		return nil, false
	}
	return data, r.Tag >= 0 && uint64(len(data)) == want && r.Length <= MaxPiece
}

// MaxPiece is the most that one request accesses; larger accesses are split, as MPI
// guarantees atomicity only per element (MPI-4.1 section 12.7.1).
const MaxPiece = 8 << 10

// RequestMax is the longest request, AnswerMax the longest answer.
const (
	RequestMax = HeaderLen + 2*MaxPiece
	AnswerMax  = AnswerHead + MaxPiece
)

// AnswerHead is the length of an answer's header. It keeps the bytes behind it aligned for
// any element.
const AnswerHead = 8

// Outcome is the result of a request.
type Outcome uint8

const (
	Done        Outcome = iota
	OutOfBounds         // the target has no such memory
	BadOp               // the operation is not defined for its elements
	NotLocked           // Unlock without a lock
)

var outcomeNames = [...]string{"done", "the target has no such memory", "the operation is not defined for the elements of the window", "the memory was not locked"}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "an unknown outcome"
}
