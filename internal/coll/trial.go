package coll

import "math/bits"

// Arrival-aware algorithms by default. Some have the messages of the default algorithm, and
// each rank uses them on its own (uneven.go). All ranks must change to the others at the
// same call. They agree by votes, which the messages of their calls carry: no message is
// added.
//
//	call n     is timed by every rank
//	call n+1   the ranks vote with their times. Messages carry the largest vote that their
//	           sender has, so that when the call ends every rank has the largest of all
//	call n+2   the same for the shortest time
//
// The votes of calls n+1 and n+2 reach all ranks if every rank needs data of every other
// (CarriesVotes). Only blocking calls vote and are timed: they end in the same order on all
// ranks. So all ranks have the same samples after the same calls, and the decision is a
// function of them.
//
// No clocks are compared. In a call that needs data of all ranks, the last rank to arrive
// leaves after the time that the algorithm takes, and the first one has waited for the last
// as well. So the longest and the shortest time show how uneven arrival was, and a shorter
// time of either shows what an algorithm gains.

// Arrivals holds what the ranks of a communicator know about their arrival. It is the same
// on all ranks, except for the times that have not been voted on.
//
//	Begin   before a blocking call
//	End     after it
type Arrivals struct {
	// Vote is the vote of this rank before a call, and the largest one after it.
	Vote uint8

	history uint8    // a bit for each of the latest samples, set if arrival was uneven
	queue   []*Trial // with times that have not been voted on, in order
	longest uint8    // of the first of the queue, 0 if it has not been voted on
	trials  map[trialKey]*Trial

	// The call under way.
	voting bool
	timing bool
	last   *Trial // the ranks vote on its shortest time
}

// trialKey identifies calls of one kind and of similar size. It has only what all ranks
// have in common: plans are evicted by each rank on its own.
type trialKey struct {
	kind  Kind
	full  bool
	class int
}

// Trial tries an arrival-aware algorithm for calls of one kind and of similar size, and
// uses it while that pays:
//
//	watch     the default algorithm, until arrival is uneven
//	measure   the default algorithm, for trialSamples samples
//	try       the arrival-aware algorithm, for as many
//	use       the arrival-aware algorithm, until arrival is even again, or for a number of
//	          calls, after which the default is measured again
//
// If the arrival-aware algorithm does not save time, it is not tried again for a number of
// calls, which doubles each time up to a limit, as for Uneven.
type Trial struct {
	tries bool // there is an arrival-aware algorithm
	full  bool // its calls carry votes

	state trialState
	skip  int // calls that are not timed: they open connections or build schedules
	wait  int // calls before the next change of state
	pause int // after the last vain trial, in calls
	hold  int // of the last use, in calls
	calls int

	samples  times // of this state
	measured times // of the default algorithm

	queued bool
	time   uint8 // of the call that is in the queue
	during trialState
}

type trialState uint8

const (
	trialWatch trialState = iota
	trialMeasure
	trialTry
	trialUse
)

// Thresholds. A trial takes about 26 calls of the arrival-aware algorithm: 2.5 % of the calls
// after a vain one, and 0.3 % after several.
const (
	trialFirst   = 8 // calls at the beginning that are not timed
	trialChange  = 2 // the same after a change of algorithm
	trialEvery   = 8 // while arrival is even, every eighth call is timed
	trialSamples = 12
	unevenBy     = timeOctave // longest and shortest time from which a call is uneven: one is twice the other
	unevenMost   = 4          // uneven samples of the latest eight from which arrival is uneven
	trialPause   = 1024
	trialHold    = 1024
	trialRest    = 8192 // limit of pause and hold
)

// CarriesVotes reports whether the votes of all ranks reach all ranks in a call: every rank
// needs data of every other, and no block is empty.
func (s *Shape) CarriesVotes() bool {
	r := table[s.Kind]
	if r.out == Nothing {
		return r.awaits
	}
	bytes, known := s.Message()
	return r.awaits && r.out != OwnBlock && known && bytes > 0 && s.Recv.Lens == nil
}

// Trial returns the trial of a call. tries means that there is an arrival-aware algorithm
// to try. It is nil for calls that show nothing.
func (a *Arrivals) Trial(s *Shape, tries bool) *Trial {
	key := trialKey{full: s.CarriesVotes()} // all calls with nothing to try have one
	switch {
	case tries:
		bytes, _ := s.Message()
		key.kind, key.class = s.Kind, bits.Len(uint(bytes))
	case !key.full:
		return nil
	}
	t := a.trials[key]
	if t == nil {
		if a.trials == nil {
			a.trials = make(map[trialKey]*Trial)
		}
		t = &Trial{tries: tries, full: key.full, skip: trialFirst}
		a.trials[key] = t
	}
	return t
}

// Uneven reports whether ranks often arrive at different times.
func (a *Arrivals) Uneven() bool { return bits.OnesCount8(a.history) >= unevenMost }

// Begin counts a call and reports whether it uses the arrival-aware algorithm, whether its
// messages carry Vote, and whether it is timed.
func (a *Arrivals) Begin(t *Trial) (aware, voting, timed bool) {
	t.next(a.Uneven())
	a.Vote, a.last = 0, nil
	a.voting = t.full && len(a.queue) > 0
	switch {
	case !a.voting:
	case a.longest == 0:
		a.Vote = a.queue[0].time
	default:
		a.last = a.queue[0]
		a.last.queued = false
		a.queue = a.queue[:copy(a.queue, a.queue[1:])]
		a.Vote = -a.last.time // the largest is that of the shortest time
	}
	a.timing = t.timed(a.history == 0)
	return t.aware(), a.voting, a.timing
}

// End ends a call, which took this rank ns nanoseconds if it was timed.
func (a *Arrivals) End(t *Trial, ns int64) {
	switch {
	case a.last != nil:
		a.sample(a.last, int(a.longest), int(-a.Vote))
		a.longest = 0
	case a.voting:
		a.longest = a.Vote
	}
	if a.timing {
		t.time, t.during, t.queued = timeCode(ns), t.state, true
		a.queue = append(a.queue, t)
	}
}

// sample takes the longest and the shortest time of a call.
func (a *Arrivals) sample(t *Trial, longest, shortest int) {
	if t.full { // in others some ranks leave early even if all arrive together
		a.history <<= 1
		if longest-shortest >= unevenBy {
			a.history |= 1
		}
	}
	if t.during == t.state {
		t.sample(longest + shortest)
	}
}

func (t *Trial) aware() bool { return t.state >= trialTry }

// next changes the state before a call.
func (t *Trial) next(uneven bool) {
	t.wait = max(t.wait-1, 0)
	switch {
	case t.state == trialWatch && t.tries && uneven && t.wait == 0:
		t.enter(trialMeasure, 0)
	case t.state == trialUse && (!uneven || t.wait == 0):
		t.enter(trialWatch, 0)
	}
}

// timed counts a call and reports whether to time it.
func (t *Trial) timed(calm bool) bool {
	t.calls++
	if t.skip > 0 {
		t.skip--
		return false
	}
	return !t.queued && (!calm || t.state == trialMeasure || t.state == trialTry || t.calls%trialEvery == 0)
}

// sample adds a sample, and changes the state after enough of them.
func (t *Trial) sample(time int) {
	if t.state != trialMeasure && t.state != trialTry {
		return
	}
	if t.samples.add(time); t.samples.n < trialSamples {
		return
	}
	switch {
	case t.state == trialMeasure:
		t.measured = t.samples
		t.enter(trialTry, 0)
	case t.samples.below(&t.measured):
		t.pause, t.hold = 0, min(max(2*t.hold, trialHold), trialRest)
		t.enter(trialUse, t.hold)
	default:
		t.hold, t.pause = 0, min(max(2*t.pause, trialPause), trialRest)
		t.enter(trialWatch, t.pause)
	}
}

func (t *Trial) enter(state trialState, wait int) {
	if t.aware() != (state >= trialTry) {
		t.skip = trialChange
	}
	t.state, t.wait, t.samples = state, wait, times{}
}

// times are the logarithms of times, so that single long calls matter little.
type times struct{ n, sum, squares int }

func (s *times) add(time int) {
	s.n++
	s.sum += time
	s.squares += time * time
}

// below reports whether times are shorter than as many others, by more than chance: by
// three standard deviations of the difference, and by 9 % of the longest or the shortest
// time of a call.
func (s *times) below(o *times) bool {
	less := o.sum - s.sum
	spread := s.n*(s.squares+o.squares) - s.sum*s.sum - o.sum*o.sum
	return less >= s.n && s.n*less*less >= 3*3*spread
}

// timeOctave is the difference of the codes of a time and its double.
const timeOctave = 8

// timeCode returns a time in eighths of an octave: 1 for 8 ns and less, 255 for 30 s and
// more. A vote of 0 is none.
func timeCode(ns int64) uint8 {
	n := uint64(max(ns, timeOctave))
	octave := bits.Len64(n) - 4
	return uint8(min(octave*timeOctave+int(n>>octave)-timeOctave+1, 255))
}

// trialCost is how many times the estimate of the default the estimate of an algorithm may
// be for a trial: waiting hides some of its cost, but not much more.
const trialCost = 2

// AwareOf returns the arrival-aware algorithm to try for a call whose default is by: that
// with the lowest estimate, if it is not out of proportion. It is the same on all ranks.
func AwareOf(s *Shape, m *Model, by Ranked) (aware Ranked, ok bool) {
	bytes, known := s.Message()
	if by.Algorithm.Name == papShmDirect || by.Algorithm.Name == papDirect {
		return aware, false
	}
	if !known || bytes == 0 || s.Nodes == nil || by.Algorithm.Aware != "" && bytes >= AwareFrom { // each rank chooses that on its own
		return aware, false
	}
	for _, name := range []string{papShmDirect, papDirect} {
		a, err := Find(s.Kind, name)
		if err != nil || name == by.Algorithm.Aware {
			continue
		}
		if fits, _ := Applicable(a, s); !fits {
			continue
		}
		cost := a.costOn(s, m, a.Default())
		if float32(cost) <= float32(trialCost*by.Cost) && (!ok || float32(cost) < float32(aware.Cost)) {
			aware, ok = Ranked{a, a.Default(), cost}, true
		}
	}
	return aware, ok
}
