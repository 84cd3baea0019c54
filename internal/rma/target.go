package rma

// A rank's memory as other ranks access it by request.

// Target is that memory and its lock.
type Target struct {
	Elements
	// Locks is the lock of this rank's memory, if locking is by request.
	Locks Lock
	// Keys is the answer to a request for the keys of the memory.
	Keys []byte
	// Others returns the elements with a code other than 0, or nil.
	Others   func(code uint8) *Elements
	memory   []byte            // region 0
	regions  map[uint64][]byte // attached regions
	attached map[uint64][]byte // attached memory, by its address
	next     uint64
	// faults holds, by origin, the first failure of requests without an answer; the next
	// Flush or Unlock of that origin reports it.
	faults map[int32]Outcome
	out    Answers
}

// Answers lists the answers to send, in order. The data is valid until the next request.
type Answers struct {
	List []Answer
	data []byte
}

// Answer is an answer to a rank.
type Answer struct {
	To, Tag int32
	Data    []byte // AnswerHead bytes, the first of which is the Outcome, and the requested bytes
}

// NewTarget returns the target of a window over memory.
func NewTarget(memory []byte, elements Elements) *Target {
	return &Target{Elements: elements, memory: memory, next: 1}
}

// Attach adds memory and returns its region number, which is never reused.
func (t *Target) Attach(memory []byte) uint64 {
	if t.regions == nil {
		t.regions = make(map[uint64][]byte)
	}
	id := t.next
	t.next++
	t.regions[id] = memory
	return id
}

// Detach removes a region. It returns false if there is none.
func (t *Target) Detach(id uint64) bool {
	_, ok := t.regions[id]
	delete(t.regions, id)
	return ok
}

// AttachAt adds memory that requests name by its address. It returns false if memory is
// attached there already.
func (t *Target) AttachAt(address uint64, memory []byte) bool {
	if _, taken := t.attached[address]; taken {
		return false
	}
	if t.attached == nil {
		t.attached = make(map[uint64][]byte)
	}
	t.attached[address] = memory
	return true
}

// DetachAt removes the memory at an address. It returns false if there is none.
func (t *Target) DetachAt(address uint64) bool {
	_, ok := t.attached[address]
	delete(t.attached, address)
	return ok
}

// attachedAt returns the attached memory from an address on, nil if there is none for length
// bytes.
func (t *Target) attachedAt(address, length uint64) []byte {
	for base, mem := range t.attached {
		if address >= base && address-base <= uint64(len(mem)) && length <= uint64(len(mem))-(address-base) {
			return mem[address-base:]
		}
	}
	return nil
}

// Regions returns the number of attached regions.
func (t *Target) Regions() int { return len(t.regions) }

// Serve serves a request. It returns nil if the request is invalid; the result is valid
// until the next call.
func (t *Target) Serve(from int32, request []byte) *Answers {
	var r Request
	data, ok := r.Decode(request)
	if !ok {
		return nil
	}
	t.out.List = t.out.List[:0]
	switch r.Kind {
	case LockShared, LockExclusive:
		w := Waiting{Origin: from, Tag: r.Tag, Exclusive: r.Kind == LockExclusive}
		if t.Locks.Request(w) {
			t.answer(from, r.Tag, Done, nil)
		}
	case Unlock:
		outcome := t.outcome(from, &r)
		if !t.Locks.Release(func(w Waiting) { t.answer(w.Origin, w.Tag, Done, nil) }) {
			outcome = NotLocked
		}
		t.answer(from, r.Tag, outcome, nil)
	case Keys:
		t.answer(from, r.Tag, Done, t.Keys)
	case Flush:
		t.answer(from, r.Tag, t.outcome(from, &r), nil)
	default:
		t.reach(from, &r, data)
	}
	return &t.out
}

// outcome returns the result of an origin's requests since the last report.
func (t *Target) outcome(from int32, r *Request) Outcome {
	o := t.faults[from]
	if r.Tag != 0 {
		delete(t.faults, from)
	}
	return o
}

// reach serves a request that accesses memory.
func (t *Target) reach(from int32, r *Request, data []byte) {
	was, outcome := t.Access(*r, data)
	t.answer(from, r.Tag, outcome, was)
}

// Access accesses the memory as a request says: Put, Get, Accumulate, GetAccumulate or
// CompareSwap. It returns the bytes that the request asks for, valid until the next call.
func (t *Target) Access(r Request, data []byte) (was []byte, outcome Outcome) {
	mem := t.memory
	switch r.Region {
	case 0:
	case ByAddress:
		mem = t.attachedAt(r.Offset, r.Length)
		r.Offset = 0
	default:
		mem = t.regions[r.Region]
	}
	if r.Offset > uint64(len(mem)) || r.Length > uint64(len(mem))-r.Offset {
		return nil, OutOfBounds
	}
	mem = mem[r.Offset : r.Offset+r.Length]
	switch r.Kind {
	case Put:
		copy(mem, data)
	case Get:
		return mem, Done
	case Accumulate:
		if !t.combine(&r, mem, data) {
			return nil, BadOp
		}
	case GetAccumulate:
		was = t.keep(mem)
		if r.Op != NoOp && !t.combine(&r, mem, data) {
			return was, BadOp
		}
	case CompareSwap:
		was = t.keep(mem)
		if string(mem) == string(data[:r.Length]) {
			copy(mem, data[r.Length:])
		}
	}
	return was, Done
}

// combine is Combine of the elements of a request.
func (t *Target) combine(r *Request, mem, data []byte) bool {
	if r.Code == 0 {
		return t.Combine(r.Op, mem, data)
	}
	var e *Elements
	if t.Others != nil {
		e = t.Others(r.Code)
	}
	return e != nil && e.Combine(r.Op, mem, data)
}

// keep copies the current memory to the answer's buffer.
func (t *Target) keep(mem []byte) []byte {
	was := t.room(len(mem))[AnswerHead:]
	copy(was, mem)
	return was
}

// room returns the answer's buffer for n bytes behind its head. It is as long as the longest
// answer so far: many windows never answer with data.
func (t *Target) room(n int) []byte {
	if len(t.out.data) < AnswerHead+n {
		t.out.data = make([]byte, AnswerHead+n)
	}
	return t.out.data[:AnswerHead+n]
}

// answer adds an answer if the request has a tag, else it records a failure. Only one answer
// of a request has data.
func (t *Target) answer(to, tag int32, outcome Outcome, data []byte) {
	if tag == 0 {
		if _, before := t.faults[to]; outcome != Done && !before {
			if t.faults == nil {
				t.faults = make(map[int32]Outcome)
			}
			t.faults[to] = outcome
		}
		return
	}
	b := t.room(len(data))
	if len(data) > 0 {
		copy(b[AnswerHead:], data) // a copy onto itself after keep
	} else if outcome != Done || len(t.out.List) > 0 {
		b = make([]byte, AnswerHead) // several answers, or a failure: rare
	}
	b[0] = byte(outcome)
	t.out.List = append(t.out.List, Answer{to, tag, b})
}
