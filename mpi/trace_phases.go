package mpi

// Phases of a trace: what the engine does beside the calls (engine.Watcher). Records have a
// fixed size and are bounded like those of calls; Finalize joins them to phases.

import (
	"cmp"
	"slices"
	"sync"

	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/internal/trace"
	"github.com/muster-mpi/muster/prof"
)

// tracedPhases records the phases of a rank.
type tracedPhases struct {
	clock *prof.Clock
	limit int
	// retransmitted returns how many packets the devices have sent again; nil: they send
	// none.
	retransmitted func() uint64

	mu      sync.Mutex
	records []phaseRecord
	dropped int
	closed  bool
	// When the network was looked at, and what was found.
	looked int64
	again  uint64
}

// phaseRecord is a step of a message, or the begin or end of another phase.
type phaseRecord struct {
	at       int64
	handle   uint64 // of the message; retransmissions: their number
	bytes    int
	peer     int32
	tag      int32
	what     phaseWhat
	step     p2p.WatchedStep
	sends    bool
	protocol string
}

type phaseWhat uint8

const (
	phaseMessage phaseWhat = iota
	phaseProgress
	phaseProgressEnd
	phaseAsleep
	phaseAsleepEnd
	phaseRetransmitted
)

func (p *tracedPhases) add(r phaseRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.records) >= p.limit {
		p.dropped++
		return
	}
	if len(p.records) == cap(p.records) {
		p.records = slices.Grow(p.records, max(traceChunk, len(p.records)))
	}
	r.at = p.clock.Now()
	p.records = append(p.records, r)
}

// Message implements engine.Watcher.
func (p *tracedPhases) Message(x *p2p.Xfer, step p2p.WatchedStep) {
	r := phaseRecord{handle: x.Handle(), bytes: x.Total(), peer: trace.None, tag: x.Tag, step: step, sends: x.Send, protocol: x.Protocol()}
	if step == p2p.StepRTR {
		r.bytes = len(x.Buf) // the message is not known yet
	}
	if x.Link != nil {
		r.peer = int32(x.Link.Rank)
	}
	p.add(r)
}

// Progress implements engine.Watcher.
func (p *tracedPhases) Progress(drives bool) { p.add(phaseRecord{what: edge(drives, phaseProgress)}) }

// Asleep implements engine.Watcher.
func (p *tracedPhases) Asleep(asleep bool) { p.add(phaseRecord{what: edge(asleep, phaseAsleep)}) }

// edge returns the beginning of a phase, or its end.
func edge(begins bool, begin phaseWhat) phaseWhat {
	if begins {
		return begin
	}
	return begin + 1
}

// lookEvery is the time in ns between two looks at the counters of the network.
const lookEvery = 5_000_000

// lookAtNetwork records retransmissions since it last looked. It is called at the end of
// calls: devices do not report single ones.
func (p *tracedPhases) lookAtNetwork(now int64) {
	if p.retransmitted == nil || now-p.looked < lookEvery {
		return
	}
	p.looked = now
	if n := p.retransmitted(); n > p.again {
		p.add(phaseRecord{what: phaseRetransmitted, handle: n - p.again})
		p.again = n
	}
}

var stepNames = [...]string{p2p.StepRTS: "RTS", p2p.StepRTR: "RTR", p2p.StepTransfer: "transfer"}

// close ends the recording and adds the phases to r; when converts times.
func (p *tracedPhases) close(r *trace.Rank, when func(at int64) int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	r.Dropped += p.dropped
	open := map[uint64]int{} // phases of messages that have not ended
	row := map[phaseWhat]int64{}
	for i := range p.records {
		from := &p.records[i]
		at := when(from.at)
		switch from.what {
		case phaseMessage:
			addStep(r, open, from, at)
		case phaseProgress, phaseAsleep:
			row[from.what] = at + 1 // 0 is none
		case phaseProgressEnd, phaseAsleepEnd:
			if begin := row[from.what-1]; begin != 0 {
				name := trace.RowProgress
				if from.what == phaseAsleepEnd {
					name = trace.RowAsleep
				}
				r.Phases = append(r.Phases, trace.Phase{Row: name, Name: name, Begin: begin - 1, End: at, Peer: trace.None, Tag: -1})
				row[from.what-1] = 0
			}
		case phaseRetransmitted:
			r.Phases = append(r.Phases, trace.Phase{Row: trace.RowNetwork, Name: "retransmissions", Begin: at, End: at, Peer: trace.None, Tag: -1, Count: int(from.handle)})
		}
	}
	// Messages that have not ended have no end to draw.
	r.Phases = slices.DeleteFunc(r.Phases, func(p trace.Phase) bool { return p.End < p.Begin })
	slices.SortStableFunc(r.Phases, func(a, b trace.Phase) int { return cmp.Compare(a.Begin, b.Begin) })
}

// addStep adds a step to the phase of its message.
func addStep(r *trace.Rank, open map[uint64]int, from *phaseRecord, at int64) {
	i, ok := open[from.handle]
	if !ok {
		if from.step >= p2p.StepUnused {
			return
		}
		i = len(r.Phases)
		open[from.handle] = i
		r.Phases = append(r.Phases, trace.Phase{Row: trace.RowProtocol, Begin: at, End: at - 1})
	}
	p := &r.Phases[i]
	p.Peer, p.Tag = int(from.peer), int(from.tag)
	if from.bytes > 0 {
		p.Bytes = from.bytes
	}
	switch from.step {
	case p2p.StepUnused:
		p.Name, p.End = trace.UnusedRTR, at
	case p2p.StepEnd:
		p.End = at
	default:
		p.Name, p.Sends = from.protocol+" receive", from.sends
		if from.sends {
			p.Name = from.protocol + " send"
		}
		p.Steps = append(p.Steps, trace.Step{Name: stepNames[from.step], At: at})
	}
	if from.step >= p2p.StepUnused {
		delete(open, from.handle)
	}
}
