package mpi

// Collective reading and writing (MPI-4.1 section 14.4.2). The ranks first tell each other what they
// want, 48 bytes each. If some access the file for all, the aggregators also get the views of the
// others, once for each view. From these everybody computes the same plan (internal/mpiio): a domain of the
// file for each aggregator, and windows of it, one a round. As a view maps positions to offsets in order,
// what a rank has in a window is a range of its data: messages have data only, and a rank whose
// buffer is contiguous sends from it and receives into it.
//
//	round k       sends and receives of round k+1 are posted; those of round k complete
//	 ├ write       the aggregator places the data in its window, and writes it; what nobody has
//	 │             is not written, so nothing is read before
//	 └ read        the aggregator reads its window and sends what each rank wants of it
//
// In the end one reduction makes errors known.

import (
	"errors"
	"io"

	"github.com/muster-mpi/muster/internal/dtype"
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/mpiio"
	"github.com/muster-mpi/muster/internal/p2p"
)

const (
	// aggregatorsPerNode saturate the memory of a host together with the ranks that pack.
	aggregatorsPerNode = 2
	// longPiece is the length of pieces that ranks access themselves: the call of the system is
	// shorter than two more copies.
	longPiece = 16 << 10
)

// moveTogether is a collective access.
func (v *fileView) moveTogether(a fileAccess, pos int64, mem dtype.View) (int64, error) {
	x := &fileExchange{v: v, access: a, mem: mem, mine: mpiio.Request{View: v.view, Pos: pos, N: mem.Len()}}
	together, err := x.agree()
	if err == nil && !together {
		return v.moveAlone(a, pos, mem)
	}
	n := int64(0)
	if err == nil {
		n, err = x.run()
	}
	if err == nil {
		err = v.f.agree(a.Name, x.failed)
	}
	if a.Write && (errors.Is(err, ErrProcFailed) || errors.Is(err, ErrRevoked)) {
		m, alone := v.moveAlone(a, pos, mem) // what this rank has must not be lost with another
		return m, errors.Join(err, alone)
	}
	return n, err
}

// fileExchange is one collective access in which ranks access the file for others.
type fileExchange struct {
	v      *fileView
	access fileAccess
	mem    dtype.View
	mine   mpiio.Request

	parts    []mpiio.Domain
	own      int             // index of this rank's domain, or -1
	requests []mpiio.Request // of all ranks, at an aggregator
	window   int64
	rounds   [2]fileRound // of even and odd numbers
	buffer   []byte       // of the window
	cover    mpiio.Cover
	read     int64 // bytes that this rank has received
	failed   error // of the file
}

// fileRound is one round of an exchange.
type fileRound struct {
	reqs    []Request
	lands   []fileLanding
	staging []byte // data of others in the window, in the order of ranks
	packed  []byte // data of this rank, if its buffer has gaps
}

// fileLanding is data for this rank, which request req receives.
type fileLanding struct {
	part mpiio.Request
	data []byte
	req  int
}

// agree exchanges what the ranks want, and reports whether they exchange data.
func (x *fileExchange) agree() (together bool, err error) {
	v, c := x.v, x.v.f.c
	lo, hi := x.mine.Bounds()
	var encoded []byte
	s := mpiio.Summary{Pos: x.mine.Pos, N: x.mine.N, Lo: lo, Hi: hi, Pieces: v.view.Pieces(x.mine.N)}
	if v.view.IsAlone() || hi < lo { // moveAlone refuses what is outside of any file
		s.View = mpiio.Alone
	} else if v.agreed != v.f.changes {
		encoded = v.view.Append(nil)
		s.View = int64(len(encoded))
	}
	all := make([]mpiio.Summary, c.size)
	if err := allgather(c, x.access.Name, []mpiio.Summary{s}, all); err != nil {
		return false, err
	}
	wish := v.f.hints.CollectiveRead
	if x.access.Write {
		wish = v.f.hints.CollectiveWrite
	}
	terms := mpiio.Terms{Always: wish == "always", Never: wish == "never", LongPiece: longPiece}
	if !terms.Together(all) {
		return false, nil
	}
	x.divide(all)
	if v.agreed != v.f.changes {
		err = x.exchangeViews(encoded, all)
	}
	if x.own >= 0 && err == nil {
		x.requests = make([]mpiio.Request, c.size)
		for r, s := range all {
			x.requests[r] = mpiio.Request{View: v.others[r], Pos: s.Pos, N: s.N}
		}
	}
	return true, err
}

// divide assigns domains to aggregators.
func (x *fileExchange) divide(all []mpiio.Summary) {
	f := x.v.f
	lo, hi, _ := mpiio.Bounds(all)
	align := max(1, int64(f.hints.Alignment))
	if f.hints.Alignment == 0 {
		align = max(1, f.block)
	}
	x.parts = mpiio.Divide(lo, hi, align, f.aggregators())
	x.own = -1
	for i, d := range x.parts {
		if d.Rank == f.c.rank {
			x.own = i
		}
	}
	x.window = int64(f.hints.BufferSize)
	if x.window <= 0 {
		x.window = defaultBuffer
	}
}

// aggregators returns the ranks that may access the file for others.
func (f *file) aggregators() []int {
	nodes := f.c.nodesOf()
	if n := f.hints.Aggregators; n > 0 {
		return mpiio.Aggregators(nodes, len(nodes), min(n, len(nodes)))
	}
	return mpiio.Aggregators(nodes, aggregatorsPerNode, len(nodes))
}

// exchangeViews sends the view of each rank to all that may become aggregators.
func (x *fileExchange) exchangeViews(encoded []byte, all []mpiio.Summary) error {
	v, c, op := x.v, x.v.f.c, x.access.Name
	var reqs []Request
	var texts [][]byte
	for _, r := range v.f.aggregators() {
		if r != c.rank {
			reqs = append(reqs, isend(c, op, encoded, r, engine.FileTag, p2p.Standard))
			continue
		}
		texts = make([][]byte, c.size)
		for from := range texts {
			if from != c.rank {
				texts[from] = make([]byte, all[from].View)
				reqs = append(reqs, irecvBytes[byte](c, op, texts[from], from, engine.FileTag))
			}
		}
	}
	if err := completeAll(reqs, nil); err != nil {
		return err
	}
	v.others = make([]mpiio.View, len(texts))
	for r, text := range texts {
		v.others[r] = v.view
		if r != c.rank {
			var err error
			if v.others[r], err = mpiio.Decode(text); err != nil {
				return v.f.failure(op, -1, err)
			}
		}
	}
	v.agreed = v.f.changes
	return nil
}

// run makes all rounds, and returns the number of bytes of this rank.
func (x *fileExchange) run() (int64, error) {
	rounds := mpiio.Rounds(x.parts, x.window)
	x.post(0)
	for k := range rounds {
		if x.access.Write && k+1 < rounds {
			x.post(k + 1)
		}
		if err := x.complete(k); err != nil {
			return 0, err
		}
		if !x.access.Write && k+1 < rounds {
			x.post(k + 1)
		}
	}
	if x.access.Write {
		return x.mine.N, nil
	}
	return x.read, nil
}

// post starts the messages of a round.
func (x *fileExchange) post(k int64) {
	round := &x.rounds[k%2]
	round.reqs, round.lands, round.packed = round.reqs[:0], round.lands[:0], round.packed[:0]
	for i, d := range x.parts {
		lo, hi := d.Window(k, x.window)
		part := x.mine.ClipTo(lo, hi)
		if part.N == 0 || i == x.own {
			continue
		}
		if x.access.Write {
			round.reqs = append(round.reqs, x.send(x.dataOf(round, part), d.Rank))
		} else {
			data := x.roomFor(part)
			round.lands = append(round.lands, fileLanding{part, data, len(round.reqs)})
			round.reqs = append(round.reqs, x.receive(data, d.Rank))
		}
	}
	if x.own < 0 {
		return
	}
	lo, hi := x.parts[x.own].Window(k, x.window)
	if x.access.Write {
		x.postReceives(round, lo, hi)
	} else {
		x.readWindow(round, lo, hi)
	}
}

func (x *fileExchange) send(data []byte, to int) Request {
	return isend(x.v.f.c, x.access.Name, data, to, engine.FileTag, p2p.Standard)
}

func (x *fileExchange) receive(data []byte, from int) Request {
	return irecvBytes[byte](x.v.f.c, x.access.Name, data, from, engine.FileTag)
}

// dataOf returns a part of the data of this rank: in its buffer, or packed.
func (x *fileExchange) dataOf(round *fileRound, part mpiio.Request) []byte {
	at := part.Pos - x.mine.Pos
	if flat, ok := x.mem.Contiguous(); ok {
		return flat[at : at+part.N]
	}
	n := len(round.packed)
	if cap(round.packed) < n+int(part.N) { // what was packed before stays where it is
		round.packed, n = make([]byte, 0, 2*cap(round.packed)+int(part.N)), 0
	}
	round.packed = round.packed[:n+int(part.N)]
	x.mem.Pack(round.packed[n:], at)
	return round.packed[n:]
}

// roomFor returns memory for a part of the data of this rank: in its buffer, or to be unpacked.
func (x *fileExchange) roomFor(part mpiio.Request) []byte {
	if flat, ok := x.mem.Contiguous(); ok {
		at := part.Pos - x.mine.Pos
		return flat[at : at+part.N]
	}
	return make([]byte, part.N)
}

// postReceives starts to receive what others have in the window of this rank.
func (x *fileExchange) postReceives(round *fileRound, lo, hi int64) {
	round.staging = round.stage(x.total(lo, hi))
	at := int64(0)
	for r, q := range x.requests {
		if part := q.ClipTo(lo, hi); part.N > 0 && r != x.v.f.c.rank {
			round.reqs = append(round.reqs, x.receive(round.staging[at:at+part.N], r))
			at += part.N
		}
	}
}

// total returns the number of bytes that others have in a range.
func (x *fileExchange) total(lo, hi int64) (n int64) {
	for r, q := range x.requests {
		if r != x.v.f.c.rank {
			n += q.ClipTo(lo, hi).N
		}
	}
	return n
}

func (r *fileRound) stage(n int64) []byte {
	if int64(cap(r.staging)) < n {
		return make([]byte, n)
	}
	return r.staging[:n]
}

// complete ends a round.
func (x *fileExchange) complete(k int64) error {
	round := &x.rounds[k%2]
	statuses := make([]Status, len(round.reqs))
	if err := completeAll(round.reqs, statuses); err != nil {
		return err
	}
	for _, l := range round.lands {
		n := int64(statuses[l.req].Bytes)
		x.read += n
		if _, ok := x.mem.Contiguous(); !ok {
			x.mem.Unpack(l.data[:n], l.part.Pos-x.mine.Pos)
		}
	}
	if x.access.Write && x.own >= 0 {
		lo, hi := x.parts[x.own].Window(k, x.window)
		x.writeWindow(round, lo, hi)
	}
	return nil
}

// writeWindow places the data of all ranks in the window, and writes what there is.
func (x *fileExchange) writeWindow(round *fileRound, lo, hi int64) {
	if lo == hi {
		return
	}
	window := x.windowOf(lo, hi)
	x.cover.Reset(hi - lo)
	at := int64(0)
	for r, q := range x.requests {
		part := q.ClipTo(lo, hi)
		if part.N == 0 {
			continue
		}
		var data []byte
		if r == x.v.f.c.rank {
			data = x.dataOf(round, part)
		} else {
			data = round.staging[at : at+part.N]
			at += part.N
		}
		q.View.MapOnto(window, lo).Unpack(data, part.Pos)
		for off, n := range q.View.Extents(part.Pos, part.N) {
			x.cover.Add(off-lo, n)
		}
	}
	for off, n := range x.cover.Runs() {
		if m, err := x.v.f.writeAt(window[off:off+n], lo+off); err != nil && x.failed == nil {
			x.failed = x.v.f.failure(x.access.Name, lo+off+int64(m), err)
			return
		}
	}
}

func (x *fileExchange) windowOf(lo, hi int64) []byte {
	if int64(cap(x.buffer)) < hi-lo {
		x.buffer = alignedBytes(hi - lo)
	}
	return x.buffer[:hi-lo]
}

// readWindow reads the window, and starts to send what others want of it.
func (x *fileExchange) readWindow(round *fileRound, lo, hi int64) {
	first, last := hi, lo
	for _, q := range x.requests {
		if part := q.ClipTo(lo, hi); part.N > 0 {
			begin, end := part.Bounds()
			first, last = min(first, begin), max(last, end)
		}
	}
	if first >= last {
		return
	}
	window := x.windowOf(first, last)
	got, err := x.v.f.readAt(window, first)
	if err != nil && err != io.EOF && x.failed == nil {
		x.failed = x.v.f.failure(x.access.Name, first+int64(got), err)
	}
	end := first + int64(got)
	round.staging = round.stage(x.total(lo, hi))
	at := int64(0)
	for r, q := range x.requests {
		part := q.ClipTo(lo, hi)
		if part.N == 0 {
			continue
		}
		there := part.ClipTo(lo, end)
		if r == x.v.f.c.rank {
			x.takeOwn(round, window, first, there)
			continue
		}
		data := round.staging[at : at+there.N]
		at += there.N
		q.View.MapOnto(window, first).Pack(data, there.Pos)
		round.reqs = append(round.reqs, x.send(data, r))
	}
}

// takeOwn copies what this rank wants from its window.
func (x *fileExchange) takeOwn(round *fileRound, window []byte, first int64, part mpiio.Request) {
	from := x.v.view.MapOnto(window, first)
	x.read += part.N
	if flat, ok := x.mem.Contiguous(); ok {
		at := part.Pos - x.mine.Pos
		from.Pack(flat[at:at+part.N], part.Pos)
		return
	}
	data := make([]byte, part.N)
	from.Pack(data, part.Pos)
	x.mem.Unpack(data, part.Pos-x.mine.Pos)
}
