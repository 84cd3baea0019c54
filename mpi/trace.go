package mpi

// The trace of a job (Config.Trace), a Hook:
//
//	join       clocks are compared, as for the profile of arrivals (profile_arrivals.go)
//	calls      each is a record of fixed size in the rank's own memory, up to
//	           Config.Advanced.TraceLimit; later ones are counted
//	Finalize   clocks are compared again; rank 0 sends the time of the beginning; each rank
//	           numbers its messages and encodes its records, and rank 0 writes the texts
//
// The first records are kept and not the last, because messages are matched by counting
// them from the beginning.

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/trace"
	"github.com/muster-mpi/muster/prof"
)

// traceChunk is the number of records that are allocated at a time.
const traceChunk = 1 << 10

// tracer records the calls of a rank.
type tracer struct {
	clock *prof.Clock
	limit int
	file  string // at rank 0
	sites siteTable
	fromC atomic.Bool    // the calls come from C
	outer atomic.Uintptr // to where the call of C that is under way returns

	cores tracedCores

	mu      sync.Mutex
	chunks  [][]traceRecord
	n       int
	dropped int
	closed  bool
	comms   []*Comm // those that records refer to
	indices map[*Comm]int32
	last    *Comm // the one of the latest call, which is usually that of the next
	index   int32 // of last
	packing int64 // ns in which data was packed for the next call

	phases tracedPhases
}

// traceRecord is a call: 96 bytes. Ranks are those of the communicator.
type traceRecord struct {
	name             string
	site             *callSite // nil: not known
	begin, end       int64
	bytes, fromBytes int
	peer, tag        int32
	from, fromTag    int32
	comm             int32 // index in tracer.comms
	by               int32 // index of the call that completed the operation, or -1
	calls            int32 // unsuccessful tests in a row are one record
	packing          int32 // ns in which data of layouts was copied for it
	kind             CallKind
	starts           bool
	received         bool // from, fromTag and fromBytes describe a message
	failed           bool
	useful           bool // a test that completed or found something
}

// receives notes the message that the call has received, if any.
func (r *traceRecord) receives(st Status, err error) {
	r.from, r.fromTag, r.fromBytes = int32(st.Source), int32(st.Tag), st.Bytes
	r.received = err == nil && st.Source >= 0 && !st.Cancelled
}

// checkTrace returns an error if the name of the trace is invalid.
func checkTrace(file string) error {
	if !strings.HasSuffix(file, ".json") && !strings.HasSuffix(file, ".json.gz") {
		return errors.New("want the name of a file that ends in .json or .json.gz")
	}
	return nil
}

// openTrace returns the tracer of a rank, or nil. Rank 0 creates the file, so that a bad name
// is reported before the work.
func openTrace(cfg *Config, rank int, inProcess bool) (*tracer, error) {
	if cfg.Trace == "" {
		return nil, nil
	}
	t := &tracer{clock: prof.NewClock(), limit: cfg.Advanced.TraceLimit, indices: map[*Comm]int32{}, cores: newTracedCores(inProcess)}
	t.phases = tracedPhases{clock: t.clock, limit: t.limit}
	if rank != 0 {
		return t, nil
	}
	var err error
	if t.file, err = filepath.Abs(cfg.Trace); err == nil { // the program may change its working directory
		err = os.WriteFile(t.file, nil, 0o666)
	}
	if err != nil {
		return nil, fmt.Errorf("mpi: Config.Trace (MUSTER_TRACE) is %q: %w; name a file that can be written", cfg.Trace, err)
	}
	return t, nil
}

func (t *tracer) record(id uint64) *traceRecord {
	return &t.chunks[(id-1)/traceChunk][(id-1)%traceChunk]
}

// commIndex returns the index of a communicator in comms.
func (t *tracer) commIndex(c *Comm) int32 {
	if c != t.last {
		i, ok := t.indices[c]
		if !ok {
			i = int32(len(t.comms))
			t.comms, t.indices[c] = append(t.comms, c), i
		}
		t.last, t.index = c, i
	}
	return t.index
}

// enter notes the call of C that is under way.
func (t *tracer) enter(_ string, pc uintptr) { t.outer.Store(pc) }

// linesOfC returns the lines of the program in C that has called, by return address.
func (t *tracer) linesOfC() map[uintptr]string {
	t.sites.mu.Lock()
	defer t.sites.mu.Unlock()
	lines, objects, s := map[uintptr]string{}, prof.NewObjects(), prof.Summary{}
	var pcs []uintptr
	for _, site := range t.sites.all {
		if site.pc == 0 || slices.Contains(pcs, site.pc) {
			continue
		}
		c := prof.CallSite{LongestAt: len(pcs)} // Resolve sorts
		c.Object, c.Offset = objects.Locate(site.pc - 1)
		s.Sites, pcs = append(s.Sites, c), append(pcs, site.pc)
	}
	s.Resolve()
	for i := range s.Sites {
		lines[pcs[s.Sites[i].LongestAt]] = s.Sites[i].Site
	}
	return lines
}

// Begin implements Hook. An id is one more than the index of the record; 0 is none.
func (t *tracer) Begin(c Call) uint64 {
	var site *callSite
	if !t.fromC.Load() {
		site = t.sites.siteOf(c.Name, c.Kind)
	} else if pc := t.outer.Load(); pc != 0 {
		site = t.sites.foreign(pc, c.Name, c.Kind)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.n == t.limit {
		t.dropped++
		return 0
	}
	if t.n%traceChunk == 0 && t.n/traceChunk == len(t.chunks) {
		t.chunks = append(t.chunks, make([]traceRecord, traceChunk))
	}
	t.n++
	// The clock is read with the lock held, so records are in the order of their times.
	*t.record(uint64(t.n)) = traceRecord{name: c.Name, site: site, begin: t.clock.Now(), bytes: c.Bytes, peer: int32(c.Peer), tag: int32(c.Tag),
		comm: t.commIndex(c.Comm), by: -1, kind: c.Kind, starts: c.Starts}
	if t.packing != 0 {
		t.record(uint64(t.n)).addPacking(t.packing)
		t.packing = 0
	}
	return uint64(t.n)
}

// End implements Hook.
func (t *tracer) End(id uint64, st Status, err error) {
	if id == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record(id)
	r.end = t.clock.Now()
	r.failed = err != nil
	t.phases.lookAtNetwork(r.end)
	switch r.kind {
	case CallRecv, CallSendrecv, CallMatch:
		if !r.starts {
			r.receives(st, err)
		}
		r.useful = r.kind != CallMatch || r.received
	case CallProbe:
		r.useful = st.Source >= 0
	case CallTest:
	default:
		r.useful = true
	}
	if !r.useful && id > 1 && id == uint64(t.n) {
		if last := t.record(id - 1); !last.useful && last.end != 0 && last.name == r.name && last.comm == r.comm {
			last.end = r.end
			last.calls = max(last.calls, 1) + 1
			t.n--
		}
	}
}

// Complete implements Hook.
func (t *tracer) Complete(start, by uint64, st Status, err error) {
	if start == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.record(start)
	r.by = int32(by) - 1
	r.failed = r.failed || err != nil
	if r.kind == CallRecv || r.kind == CallSendrecv {
		r.receives(st, err)
	}
	if by != 0 {
		t.record(by).useful = true
	}
}

// close ends the recording, and adds the records to r by the clock of rank 0, since base.
func (t *tracer) close(r *trace.Rank, o prof.Offset, base int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	r.Dropped = t.dropped
	for _, c := range t.comms {
		r.Comms = append(r.Comms, trace.Comm{Name: c.Name(), Context: c.ctx, Ranks: tracedRanks(c)})
	}
	r.Events = make([]trace.Event, t.n)
	labels, linesOfC := trace.Labels{}, t.linesOfC()
	for i := range r.Events {
		from := t.record(uint64(i + 1))
		e, c := &r.Events[i], Call{Comm: t.comms[from.comm]}
		label := trace.Label{Name: from.name, Kind: from.kind.String()}
		if from.site != nil {
			if label.Site = from.site.line; from.site.pc != 0 {
				label.Site = linesOfC[from.site.pc]
			}
		}
		*e = trace.Event{Label: labels.Of(label), Begin: o.Of(from.begin) - base, Comm: from.comm,
			Peer: int32(c.World(int(from.peer))), Tag: from.tag, Bytes: from.bytes, Calls: from.calls, From: trace.None, Starts: from.starts, By: from.by, Packing: from.packing}
		if e.End = e.Begin; from.end != 0 {
			e.End = o.Of(from.end) - base
		}
		e.Sends = (from.kind == CallSend || from.kind == CallSendrecv) && e.Peer >= 0 && !from.failed
		if from.received {
			e.From, e.FromTag, e.FromBytes = int32(c.World(int(from.from))), from.fromTag, from.fromBytes
		}
	}
	r.Number()
	t.phases.close(r, func(at int64) int64 { return o.Of(at) - base })
}

// tracedRanks returns the ranks of a communicator in the world, or nil if it has all of
// them in order.
func tracedRanks(c *Comm) []int {
	all := c.size == c.w.comm.size
	ranks := make([]int, c.size)
	for r := range ranks {
		ranks[r] = c.world(r)
		all = all && ranks[r] == r
	}
	if all {
		return nil
	}
	return ranks
}

// reportTrace collects the records of all ranks at rank 0, which writes them.
func (w *World) reportTrace() error {
	if w.watch.tracer == nil {
		return nil
	}
	text, err := w.traceText()
	if err != nil {
		return nil // a rank has failed; the next call finds out
	}
	if w.comm.rank != 0 {
		_ = w.sendPart(text, 0) // likewise
		return nil
	}
	return w.writeTrace(text)
}

// traceText returns what this rank contributes to the trace.
func (w *World) traceText() ([]byte, error) {
	if err := w.compareClocks(&w.watch.profile.clock.EndAt, &w.watch.profile.clock.EndAdd); err != nil {
		return nil, err
	}
	base := w.watch.profile.clock.At
	b := binary.LittleEndian.AppendUint64(nil, uint64(base))
	if w.comm.rank != 0 {
		if err := w.recvBytes(b, parent(w.comm.rank)); err != nil {
			return nil, err
		}
		base = int64(binary.LittleEndian.Uint64(b))
	}
	for _, child := range children(w.comm.rank, w.comm.size) {
		if err := w.sendBytes(b, child); err != nil {
			return nil, err
		}
	}
	counters := w.counters(w.e.Counters())
	r := &trace.Rank{Rank: w.comm.rank, Host: w.client.Host(), Node: w.client.Node(w.comm.rank), Offset: w.watch.profile.clock.Add, Error: w.watch.profile.clockError, Counters: map[string]uint64{}}
	w.watch.tracer.cores.addTo(r)
	w.watch.tracer.close(r, w.watch.profile.clock, base)
	for name, v := range counters.Values {
		if v != 0 {
			r.Counters[string(name)] = v
		}
	}
	return trace.Append(nil, r), nil
}

// writeTrace writes the texts of all ranks, in the order of ranks. After an error it still
// receives them, because each rank waits until its text has been received. If a rank has
// failed, the file ends early and is not valid.
func (w *World) writeTrace(mine []byte) error {
	f, err := os.Create(w.watch.tracer.file)
	buffered := bufio.NewWriter(f)
	var out io.Writer = buffered
	finish := buffered.Flush
	if strings.HasSuffix(w.watch.tracer.file, ".gz") {
		zip := gzip.NewWriter(buffered)
		out, finish = zip, func() error { return errors.Join(zip.Close(), buffered.Flush()) }
	}
	write := func(text []byte) {
		if err == nil {
			_, err = out.Write(text)
		}
	}
	write([]byte(trace.Header))
	write(mine)
	for r := 1; r < w.comm.size; r++ {
		text, failed := w.recvPart(r)
		if failed != nil {
			return errors.Join(w.comm.refuse(ErrOther, "Finalize", "write the trace: %w", failed), f.Close())
		}
		write(text)
	}
	write([]byte(trace.Footer))
	if err == nil {
		err = finish()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		return nil
	}
	return &Error{Class: ErrOther, Op: "Finalize", Comm: w.comm.Name(), Rank: w.comm.rank, Peer: ProcNull, Tag: noTag,
		Err:  fmt.Errorf("rank %d cannot write the trace: %w", w.comm.rank, err),
		Hint: "the file is missing or incomplete; free space for it, or name a file on another disk with --trace (MUSTER_TRACE)"}
}
