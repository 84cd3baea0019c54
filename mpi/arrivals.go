package mpi

// When this rank comes to collectives and when it leaves them (T2 6.3.1), for the
// profile of arrivals. A blocking call goes
//
//	arrive   which call is it? if it is one to record, note the time and the place
//	         in the program, in memory that is there
//	 └ the call
//	leave    note the time
//
// One that does not wait comes when it is started, and leaves when the caller sees that
// it is over: when Wait returns, or Test says so. Its request carries the record there
// (requestMore, which is part of the record, so that nothing is allocated for it).
//
// Calls are numbered, so that the ranks' records of one call find each other, and so that
// all thin out the same ones (prof.Kept). A call that is not recorded costs a look at its
// number. Ranks make the same calls in the same order on a communicator (MPI-4.1 section
// 6.14), so calls are counted there by kind, those that wait and those that do not apart.
// A persistent collective counts its own starts, since their order is free here; it is
// itself told by its number. profile_arrivals.go brings the records together. Calls between
// two groups are not recorded.

import (
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/muster-mpi/muster/internal/coll"
	"github.com/muster-mpi/muster/prof"
)

// recorder is what a rank records. Several goroutines may be in collectives, each on
// a communicator or with a persistent collective of its own.
type recorder struct {
	clock *prof.Clock

	mu      sync.Mutex
	comms   map[commID]*commRecorder
	rooms   []*room // those with records
	sites   map[callers]string
	records int // room that was given out
	lost    int
	closed  bool
}

// commID tells communicators apart, the same at all their ranks. A context may come
// again when a communicator is gone, and groups without common ranks may have the same:
// with the ranks, it is the same communicator as far as counting calls matters.
type commID struct {
	ctx    uint32
	digest uint64
}

// room is where records go that one goroutine makes at a time.
type room struct {
	r      *recorder
	id     commID
	size   int // of the communicator
	each   int // calls that one stands for which was not thinned out
	chunks [][]arrival
}

// tally counts calls.
type tally struct{ n, due uint64 } // so far; the next one to record

// count counts a call: which it is, and whether to record it.
func (t *tally) count() (n uint64, kept bool) {
	n = t.n
	if t.n++; n != t.due {
		return n, false
	}
	t.due = prof.NextKept(n)
	return n, true
}

// callKinds is how many kinds of call there are, of each form: calls that wait, those
// that do not, and then every persistent collective is a form of its own.
const (
	callKinds    = int(coll.Neighbors) + 1
	startedForm  = 1
	preparedForm = 2
)

// commRecorder is what a rank records of one communicator.
type commRecorder struct {
	room
	calls [preparedForm * callKinds]tally
}

// preparedRecorder is what a rank records of one persistent collective.
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
	kind     int         // with the form
	more     requestMore // of the request, if the call has one
}

// callers are the calls on the stack, the innermost first: enough to reach the line of
// the program from everywhere in this package.
type callers [10]uintptr

// Room for records: a communicator gets a chunk at a time, larger ones if it makes many
// calls; all together are bounded.
const (
	firstChunk, largestChunk = 16, 1024
	mostRecords              = 1 << 16
)

func newRecorder() *recorder {
	return &recorder{clock: prof.NewClock(), comms: map[commID]*commRecorder{}, sites: map[callers]string{}}
}

// arrive begins a blocking call. The result may be nil, and is for leave.
func (c *Comm) arrive(kind coll.Kind, name string, bytes int) *arrival {
	if c.w.recorder == nil {
		return nil
	}
	return c.record(int(kind), name, bytes)
}

// arriveStarted begins a call that does not wait. The result may be nil, and is for its
// request.
func (c *Comm) arriveStarted(k *collCall) *arrival {
	if c.w.recorder == nil {
		return nil
	}
	return c.record(startedForm*callKinds+int(k.key.kind), k.name, k.payload())
}

// leave ends a call that went well. One that failed has no exit, and does not count. A
// request that is waited for again has left before.
func (a *arrival) leave(err error) {
	if a != nil && err == nil && a.left == 0 {
		a.left = a.r.clock.Now()
	}
}

// request is what the request of a call needs to leave it, and to unpack what has come.
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

// record is arrive where somebody wants to know.
func (c *Comm) record(kind int, name string, bytes int) *arrival {
	t := c.recorder
	if t == nil {
		if t = c.w.recorder.of(c); t == nil {
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

// start begins a call of a persistent collective. The engine's lock is held.
func (p *preparedRecorder) start() *arrival {
	if p == nil {
		return nil
	}
	n, kept := p.starts.count()
	if !kept {
		return nil
	}
	return p.note(p.kind, n, p.name, p.bytes)
}

// note makes a record of a call that begins now; nil if there is no room.
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

// recordPrepared is for the persistent collective of a number: what its starts are
// recorded in, or nil. Programs that prepare a collective for a call or two, again and
// again, have those thinned out like calls.
func (c *Comm) recordPrepared(k *collCall, number int32) *preparedRecorder {
	if c.w.recorder == nil {
		return nil
	}
	each, kept := prof.Kept(uint64(number))
	t := c.w.recorder.of(c)
	if !kept || t == nil {
		return nil
	}
	p := &preparedRecorder{room: t.room, name: k.name, kind: (preparedForm+int(number))*callKinds + int(k.key.kind), bytes: k.payload()}
	p.each, p.chunks = each, nil
	return p
}

// of finds or makes what is recorded of a communicator; nil if nothing is.
func (r *recorder) of(c *Comm) *commRecorder {
	if c.inter != nil || c.size < 2 {
		return nil
	}
	id := commID{ctx: c.ctx, digest: uint64(c.size)}
	for _, rank := range c.ranks { // FNV-1a, the same in all processes
		id.digest = (id.digest ^ uint64(rank)) * 1099511628211
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

// next is room for a record; nil if there is none.
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

// close gives the records, by the clock of rank 0. Nothing is recorded from now on.
func (r *recorder) close(o prof.Offset) (records []prof.Arrival, lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, t := range r.rooms {
		for _, chunk := range t.chunks {
			for i := range chunk {
				a := &chunk[i]
				weight, _ := prof.Kept(a.n)
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

// site is the line of the program that made a call: the first outside of this package.
// It is worked out once for each way to get here.
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

// isOwn reports whether a function is of this package, and not of its tests.
func isOwn(function string) bool {
	const own = "github.com/muster-mpi/muster/mpi."
	return strings.HasPrefix(function, own)
}

// lastParts is a file with its folder.
func lastParts(file string) string {
	parts := strings.Split(file, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}
