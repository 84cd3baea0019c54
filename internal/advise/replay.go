package advise

// The replay: events in the order of their times, because transfers that are ready first pass
// the ports first.
//
//	begin      a rank begins a call. Transfers of which both calls have begun pass the ports,
//	           and collectives that all have entered are complete
//	advance    a rank whose call has all that it waits for goes on to the next one

import (
	"container/heap"
	"math"

	"github.com/muster-mpi/muster/internal/trace"
)

// replay is a run of a program.
type replay struct {
	*whatIf
	ports  ports
	begun  [][]float64 // by call; NaN: not yet
	passed []float64   // by transfer, likewise
	joined []entered   // by collective
	next   []int       // call of each rank
	clock  []float64   // when it has ended all before
	queue  begins
	seen   int

	forTransfer, forGroup map[int32][]int32    // the ranks that wait for it
	forCall               map[trace.At][]int32 // the collectives that wait until it begins
}

// entered is how many calls of a collective have begun, and when the last of them did.
type entered struct {
	calls int
	at    float64
}

// begin is when a call begins, or the receive that is posted before it.
type begin struct {
	at     float64
	number int // of begins with equal times, the first goes first
	rank   int32
	posts  bool // only its receive
}

// begins is a heap.
type begins []begin

func (b begins) Len() int { return len(b) }
func (b begins) Less(i, k int) bool {
	if b[i].at != b[k].at {
		return b[i].at < b[k].at
	}
	return b[i].number < b[k].number
}
func (b begins) Swap(i, k int) { b[i], b[k] = b[k], b[i] }
func (b *begins) Push(x any)   { *b = append(*b, x.(begin)) }
func (b *begins) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}

// run replays the program and returns the time of its end. ok is false if calls wait for each
// other, so that the change is impossible.
func (w *whatIf) run() (end float64, ok bool) {
	p := &replay{whatIf: w, ports: newPorts(w.countHosts()), passed: make([]float64, len(w.transfers)), joined: make([]entered, len(w.groups)),
		next: make([]int, len(w.steps)), clock: make([]float64, len(w.steps)), forTransfer: map[int32][]int32{}, forGroup: map[int32][]int32{}, forCall: map[trace.At][]int32{}}
	for i := range p.passed {
		p.passed[i] = math.NaN()
	}
	for r := range w.steps {
		begun := make([]float64, len(w.steps[r]))
		for i := range begun {
			begun[i] = math.NaN()
		}
		p.begun = append(p.begun, begun)
		p.schedule(r)
	}
	for len(p.queue) > 0 {
		b := heap.Pop(&p.queue).(begin)
		p.begin(int(b.rank), b.at, b.posts)
	}
	for r := range w.steps {
		if p.next[r] < len(w.steps[r]) {
			return 0, false
		}
		end = max(end, p.clock[r])
	}
	return end, true
}

// schedule makes a rank begin its next call.
func (p *replay) schedule(r int) {
	if p.next[r] == len(p.steps[r]) {
		return
	}
	s := &p.steps[r][p.next[r]]
	if s.ahead {
		p.push(begin{at: p.clock[r], rank: int32(r), posts: true})
	}
	p.push(begin{at: p.clock[r] + s.compute, rank: int32(r)})
}

func (p *replay) push(b begin) {
	p.seen++
	b.number = p.seen
	heap.Push(&p.queue, b)
}

func (p *replay) begin(r int, at float64, posts bool) {
	call := callAt(r, p.next[r])
	s := &p.steps[r][call.Event]
	if posts || !s.ahead {
		p.post(s.in, at)
	}
	if posts {
		return
	}
	p.begun[r][call.Event] = at
	p.post(s.out, at)
	if s.group >= 0 {
		p.enter(call)
	}
	p.advance(r)
}

// post notes that one of the calls of a transfer has begun. If the other has not, the transfer
// has passed at minus infinity.
func (p *replay) post(number int32, at float64) {
	if number < 0 {
		return
	}
	x := &p.transfers[number]
	if x.start != x.send && math.IsNaN(p.passed[number]) {
		p.passed[number] = math.Inf(-1)
		return
	}
	p.passed[number] = p.ports.pass(x, at)
	p.wake(p.forTransfer, number)
}

// wake goes on with the ranks that wait for a transfer or a collective.
func (p *replay) wake(waiting map[int32][]int32, number int32) {
	ranks := waiting[number]
	delete(waiting, number)
	for _, r := range ranks {
		p.advance(int(r))
	}
}

// enter goes on with the collectives that wait for a call to begin.
func (p *replay) enter(call trace.At) {
	groups := p.forCall[call]
	delete(p.forCall, call)
	for _, g := range groups {
		if p.complete(g) {
			p.wake(p.forGroup, g)
		}
	}
}

// complete reports whether all calls of a collective have begun. If not, it waits for one of them.
func (p *replay) complete(number int32) bool {
	g, calls := &p.joined[number], p.groups[number]
	for ; g.calls < len(calls); g.calls++ {
		a := calls[g.calls]
		t := p.begun[a.Rank][a.Event]
		if math.IsNaN(t) {
			p.forCall[a] = append(p.forCall[a], number)
			return false
		}
		if g.calls == 0 || t > g.at {
			g.at = t
		}
	}
	return true
}

// advance ends the call of a rank if it has all that it waits for.
func (p *replay) advance(r int) {
	s := &p.steps[r][p.next[r]]
	ready := p.begun[r][p.next[r]] + s.inside
	for _, d := range s.deps {
		passed := p.passed[d.transfer]
		if math.IsNaN(passed) || math.IsInf(passed, -1) {
			p.forTransfer[d.transfer] = append(p.forTransfer[d.transfer], int32(r))
			return
		}
		ready = max(ready, passed+d.time)
	}
	if g := s.group; g >= 0 {
		if p.joined[g].calls < len(p.groups[g]) {
			others := p.forGroup[g]
			if len(others) > 0 || !p.complete(g) {
				p.forGroup[g] = append(others, int32(r))
				return
			}
		}
		ready = max(ready, p.joined[g].at+s.after)
	}
	p.clock[r] = max(p.clock[r], ready+s.tail)
	p.next[r]++
	p.schedule(r)
}
