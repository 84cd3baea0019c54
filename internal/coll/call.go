package coll

// Detection of mismatched collective calls. MPI requires all ranks to make the same
// collective calls in the same order (MPI-4.1 section 6.14). Each message and each
// word in shared memory carries a signature: the kind, the root, and a hash of all
// calls so far. A rank detects a mismatch when it receives the next message from a
// rank that differs. The latest calls are kept (nodecoll.History), so that the error
// can name the first call that differs.

import "fmt"

// Form is the variant of a call. Blocking and nonblocking calls do not match each
// other (MPI-4.1 section 6.12).
type Form uint8

const (
	Blocking Form = iota
	Started       // nonblocking
	Prepared      // persistent: the Init call
)

// NoRoot and AnyBytes mark values that may differ between the ranks of a valid call.
const (
	NoRoot   = -1
	AnyBytes = -1
)

// Call holds the properties of a call that all ranks must agree on, in one word: kind
// in 4 bits, form in 2, number of the call in 8, root + 1 in 17, bytes + 1 in 33;
// higher bits are dropped.
type Call uint64

const (
	rootMask = 1<<17 - 1
)

// MakeCall returns a Call. bytes is the length of the data, or of a block if each rank
// has one.
func MakeCall(kind Kind, form Form, root, bytes int) Call {
	return Call(kind) | Call(form)<<4 | Call(root+1)<<14 | Call(bytes+1)<<31
}

func (c Call) Kind() Kind { return Kind(c & 15) }
func (c Call) Form() Form { return Form(c >> 4 & 3) }
func (c Call) Root() int  { return int(c>>14&rootMask) - 1 }
func (c Call) Bytes() int { return int(c>>31) - 1 }

func (c Call) String() string {
	s := c.Kind().CallName()
	switch c.Form() {
	case Started:
		s = "nonblocking " + s
	case Prepared:
		s = "persistent " + s
	}
	if b := c.Bytes(); b >= 0 && c.Kind() != Barrier && c.Kind() != Finalize {
		s += fmt.Sprintf(" of %d bytes", b)
	}
	if r := c.Root(); r >= 0 {
		s += fmt.Sprintf(" with root %d", r)
	}
	return s
}

// Sign is the signature of a call and all calls before it: kind + 1 in 4 bits, root +
// 1 in 6 (63 for all larger ones), the hash in 22. It is never 0.
type Sign uint32

func (s Sign) Kind() Kind { return Kind(s>>28) - 1 }

// SignOf returns a signature with the kind and the root of a call and no history.
func SignOf(c Call) Sign {
	return Sign(c&15+1)<<28 | Sign(min(c>>14&rootMask, 63))<<22
}

// Root returns the root, and false if there is none or it is too large for the field.
func (s Sign) Root() (root int, ok bool) { r := int(s >> 22 & 63); return r - 1, r > 0 && r < 63 }

// Describe returns a description of the call for error texts.
func (s Sign) Describe() string {
	name := s.Kind().CallName()
	if root, ok := s.Root(); ok {
		name += fmt.Sprintf(" with root %d", root)
	}
	return name
}

// SignAfter returns the signature of a call after a history with the given hash. Every
// collective computes it, so it uses only inexpensive operations.
func (c Call) SignAfter(history uint64) Sign {
	bytes := uint64(c >> 31)
	return SignOf(c) | Sign(history^bytes^bytes>>20^uint64(c>>4&3)<<20)&(1<<22-1)
}

// Hash returns the hash of a history with the call appended.
func (c Call) Hash(history uint64) uint64 {
	x := (history ^ uint64(c)) * 0x9E3779B97F4A7C15
	return x ^ x>>32
}

// ShortBytes is the length up to which calls of different length use the same messages or
// rounds, so that a communicator can tolerate them.
const ShortBytes = 511

func short(bytes int) bool { return 0 < bytes && bytes <= ShortBytes }

// Coarse returns the call with one length instead of all short ones.
func (c Call) Coarse() Call {
	if short(c.Bytes()) {
		c = c&(1<<31-1) | (ShortBytes+1)<<31
	}
	return c
}

// LengthIn returns the length of another rank's call by its signature, if the call differs
// from this one, with the signature mine, in nothing but the length, and both are short.
func (c Call) LengthIn(mine, theirs Sign) (bytes int, ok bool) {
	d := mine ^ theirs
	bytes = int(Sign(c>>31)^d) - 1
	return bytes, d < 1<<22 && short(c.Bytes()) && short(bytes)
}

// WithNumber returns the call with its number, of which 8 bits are kept.
func (c Call) WithNumber(number uint64) Call { return c | Call(number&0xff)<<6 }

// Numbered reports whether a call received from another rank has a number.
func (c Call) Numbered(number uint64) bool { return uint64(c>>6)&0xff == number&0xff }
