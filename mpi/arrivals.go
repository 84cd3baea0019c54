package mpi

// Records of when this rank arrives at collectives and when it leaves them (T2 6.3.1), for
// the profile of arrivals. A blocking call is
//
//	arrive   if the call is to be recorded, store the time and the calling line, in
//	         preallocated memory
//	 └ the call
//	leave    store the time
//
// A non-blocking call arrives when it is started, and leaves when the caller sees that it is
// complete: when Wait returns, or Test reports it. Its request carries the record there
// (requestMore, which is part of the record, so that nothing is allocated for it).
//
// Calls are numbered, so that the ranks' records of one call can be matched, and so that all
// ranks thin out the same ones (prof.SampleWeight). A call that is not recorded costs a check of its
// number. Ranks make the same calls in the same order on a communicator (MPI-4.1 section
// 6.14), so calls are counted there by kind, blocking and non-blocking ones separately. A
// persistent collective counts its own starts, because their order is free; its number
// identifies it. profile_arrivals.go merges the records. Calls on inter-communicators are
// not recorded.

import (
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/prof"
)

// recorder holds the records of a rank. Several goroutines may be in collectives, each with
// its own communicator or persistent collective.
type recorder struct {
	clock *prof.Clock

	mu      sync.Mutex
	comms   map[commID]*commRecorder
	rooms   []*room // those with records
	sites   map[callers]string
	records int // allocated
	lost    int
	closed  bool
}

// commID identifies a communicator, equally at all its ranks. A context may be reused after
// a communicator is freed, and disjoint groups may have the same: together with the ranks,
// it is the same communicator as far as counting calls is concerned.
type commID struct {
	ctx    uint32
	digest uint64
}

// room is the buffer for records that one goroutine makes at a time.
type room struct {
	r      *recorder
	id     commID
	size   int // of the communicator
	each   int // number of calls that a kept record represents
	chunks [][]arrival
}

// tally counts calls.
type tally struct{ n, due uint64 } // so far; the next one to record

// count counts a call; it returns its number and whether to record it.
func (t *tally) count() (n uint64, kept bool) {
	n = t.n
	if t.n++; n != t.due {
		return n, false
	}
	t.due = prof.NextKept(n)
	return n, true
}

// callKinds is the number of kinds of calls in each form: blocking, non-blocking, and then
// each persistent collective is its own form.
const (
	callKinds    = coll.Kinds
	startedForm  = 1
	preparedForm = 2
)

// commRecorder holds the records of one communicator.
type commRecorder struct {
	room
	calls [preparedForm * callKinds]tally
}

// preparedRecorder holds the records of one persistent collective.
type preparedRecorder struct {
	room
	starts tally
	name   string
	kind   int
	bytes  int
}

// arrival is one record.
type arrival struct {
	r        *recorder
	name     string
	from     callers
	n        uint64
	at, left int64
	bytes    int
	kind     int         // including the form
	more     requestMore // of the request, if the call has one
}

// callers are the calls on the stack, the innermost first: enough to reach the line of the
// program from everywhere in this package.
type callers [10]uintptr

// Sizes of buffers for records: a communicator gets a chunk at a time, larger ones if it
// makes many calls; all together are bounded.
const (
	firstChunk, largestChunk = 16, 1024
	mostRecords              = 1 << 16
)

func newRecorder() *recorder {
	return &recorder{clock: prof.NewClock(), comms: map[commID]*commRecorder{}, sites: map[callers]string{}}
}

// arrive begins a blocking call. The result is the argument of leave, and may be nil.
func (c *Comm) arrive(kind coll.Kind, name string, bytes int) *arrival {
	if c.w.watch.recorder == nil {
		return nil
	}
	return c.record(int(kind), name, bytes)
}

// arriveStarted begins a non-blocking call. The result is for its request, and may be nil.
func (c *Comm) arriveStarted(k *collCall) *arrival {
	if c.w.watch.recorder == nil {
		return nil
	}
	return c.record(startedForm*callKinds+int(k.key.kind), k.name, k.payload())
}

// leave ends a successful call. A failed call has no end and is not counted. A request that
// is waited for again has left before.
func (a *arrival) leave(err error) {
	if a != nil && err == nil && a.left == 0 {
		a.left = a.r.clock.Now()
	}
}

// request returns what the request of a call needs to leave it and to unpack its data.
func (a *arrival) request(more *requestMore) *requestMore {
	if a == nil {
		return more
	}
	if a.more = (requestMore{}); more != nil {
		a.more = *more
	}
	a.more.record = a
	return &a.more
}

// record is arrive if the job has a profile of arrivals.
func (c *Comm) record(kind int, name string, bytes int) *arrival {
	t := c.recorder
	if t == nil {
		if t = c.w.watch.recorder.of(c); t == nil {
			return nil
		}
		c.recorder = t
	}
	n, kept := t.calls[kind].count()
	if !kept {
		return nil
	}
	return t.note(kind, n, name, bytes)
}

// startLocked begins a call of a persistent collective.
func (p *preparedRecorder) startLocked() *arrival {
	if p == nil {
		return nil
	}
	n, kept := p.starts.count()
	if !kept {
		return nil
	}
	return p.note(p.kind, n, p.name, p.bytes)
}

// note records a call that begins now; it returns nil if the buffer is full.
func (t *room) note(kind int, n uint64, name string, bytes int) *arrival {
	a := t.next()
	if a == nil {
		return nil
	}
	*a = arrival{r: t.r, name: name, n: n, bytes: bytes, kind: kind}
	runtime.Callers(3, a.from[:])
	a.at = t.r.clock.Now()
	return a
}

// recordPrepared returns the recorder for the persistent collective of a number, or nil.
// Programs that prepare many collectives for a call or two have them thinned out like calls.
func (c *Comm) recordPrepared(k *collCall, number int32) *preparedRecorder {
	if c.w.watch.recorder == nil {
		return nil
	}
	each, kept := prof.SampleWeight(uint64(number))
	t := c.w.watch.recorder.of(c)
	if !kept || t == nil {
		return nil
	}
	p := &preparedRecorder{room: t.room, name: k.name, kind: (preparedForm+int(number))*callKinds + int(k.key.kind), bytes: k.payload()}
	p.each, p.chunks = each, nil
	return p
}

// of returns the recorder of a communicator, or nil if nothing is recorded.
func (r *recorder) of(c *Comm) *commRecorder {
	if c.inter != nil || c.size < 2 {
		return nil
	}
	id := commID{ctx: c.ctx, digest: uint64(c.size)}
	if c.ranks != nil {
		for r := range c.size { // FNV-1a, the same in all processes
			id.digest = (id.digest ^ uint64(c.ranks.At(r))) * 1099511628211
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	t := r.comms[id]
	if t == nil {
		t = &commRecorder{room: room{r: r, id: id, size: c.size, each: 1}}
		r.comms[id] = t
	}
	return t
}

// next returns the next free record, or nil if there is none.
func (t *room) next() *arrival {
	if last := len(t.chunks) - 1; last >= 0 && len(t.chunks[last]) < cap(t.chunks[last]) {
		chunk := t.chunks[last][:len(t.chunks[last])+1]
		t.chunks[last] = chunk
		return &chunk[len(chunk)-1]
	}
	length := min(firstChunk<<(2*min(len(t.chunks), 3)), largestChunk)
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	if t.r.closed || t.r.records+length > mostRecords {
		t.r.lost++
		return nil
	}
	t.r.records += length
	if t.chunks == nil {
		t.r.rooms = append(t.r.rooms, t)
	}
	chunk := make([]arrival, 1, length)
	t.chunks = append(t.chunks, chunk)
	return &chunk[0]
}

// close returns the records, by the clock of rank 0, and stops recording.
func (r *recorder) close(o prof.Offset) (records []prof.Arrival, lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, t := range r.rooms {
		for _, chunk := range t.chunks {
			for i := range chunk {
				a := &chunk[i]
				weight, _ := prof.SampleWeight(a.n)
				p := prof.Arrival{Key: prof.CallKey{Comm: t.id.digest ^ uint64(t.id.ctx)<<40, Kind: a.kind, N: a.n}, Routine: a.name, Site: r.site(a.from),
					Size: t.size, Weight: t.each * weight, Bytes: a.bytes, At: o.Of(a.at)}
				if a.left != 0 {
					p.Left = o.Of(a.left)
				}
				records = append(records, p)
			}
		}
	}
	return records, r.lost
}

// site returns the line of the program that made a call: the first outside of this package.
// It is computed once for each call stack.
func (r *recorder) site(from callers) string {
	if s, ok := r.sites[from]; ok {
		return s
	}
	depth := len(from)
	for depth > 0 && from[depth-1] == 0 {
		depth--
	}
	frames := runtime.CallersFrames(from[:depth])
	s := "?"
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.File != "" && !isOwn(f.Function) {
			s = lastParts(f.File) + ":" + strconv.Itoa(f.Line)
			break
		}
	}
	r.sites[from] = s
	return s
}

// isOwn reports whether a function belongs to this package, except its tests.
func isOwn(function string) bool {
	const own = "github.com/muster-mpi/muster/mpi."
	return strings.HasPrefix(function, own)
}

// lastParts returns a file name with its folder.
func lastParts(file string) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
