package coll

import "math/bits"

// Uneven decides for a rank whether its next call uses an algorithm or its arrival-aware
// form (Algorithm.Aware), based on how evenly ranks arrived in recent calls. Both send
// the same messages, so each rank decides on its own.
//
// The measurement needs no messages. If all ranks arrive together, the messages of a
// call complete at a steady rate. If a rank is late, the others wait: for most of the
// call no message completes. A call is therefore uneven if one interval between two
// completions took more than half of its time. The late rank itself sees no such
// interval, and would gain nothing: all others have arrived.
//
//	Next                is called before a call
//	Begin, Event, End   record the events of a measured call and their times
//	Served              records the result of an aware call
//
// If aware calls serve no rank before others, the aware form is suspended for a number
// of calls, which doubles each time up to a limit, as for unused offers (decision 016).

// AwareFrom is the shortest block for which the order matters: shorter ones are complete
// when they are sent, on all devices.
const AwareFrom = 4 << 10

// Thresholds. The aware form is used if one of eight calls is uneven. A rank that has
// suspended it tries again after a number of uneven calls.
const (
	unevenOf     = 16 // measured calls in the history
	unevenFrom   = 2  // uneven calls in the history from which the aware form is used
	unevenVain   = 16 // consecutive aware calls without effect that suspend the aware form
	unevenPause  = 16 // calls
	unevenRest   = 1024
	unevenSample = 4 // every fourth call is measured
)

// Uneven holds the history of a rank for one kind of call. The zero Uneven has no
// history and does not use the aware form.
type Uneven struct {
	calls   uint32
	history uint32 // a bit for each measured call, set if it was uneven
	vain    int    // consecutive aware calls that served no rank before others
	pause   int    // the next one, in calls
	skip    int    // calls that are left of this one

	begun, last, longest int64 // of the call that is measured, in nanoseconds
	measuring            bool
}

// Next reports whether the next call should be aware and whether to measure it.
func (u *Uneven) Next() (aware, measure bool) {
	u.calls++
	measure = !u.measuring && u.calls%unevenSample == 1
	if u.skip > 0 {
		u.skip--
		return false, measure
	}
	return bits.OnesCount32(u.history) >= unevenFrom, measure
}

// Begin starts the measurement of a call.
func (u *Uneven) Begin(now int64) {
	u.begun, u.last, u.longest, u.measuring = now, now, 0, true
}

// Event records the completion of a message.
func (u *Uneven) Event(now int64) {
	u.longest = max(u.longest, now-u.last)
	u.last = now
}

// End ends the measurement.
func (u *Uneven) End(now int64) {
	u.Event(now)
	u.measuring = false
	uneven := uint32(0)
	if total := now - u.begun; total > 0 && u.longest > total/2 {
		uneven = 1
	}
	u.history = (u.history<<1 | uneven) & (1<<unevenOf - 1)
}

// RecordServed records for an aware call how many sends were posted ahead of others.
func (u *Uneven) RecordServed(early int) {
	if early > 0 {
		u.vain, u.pause = 0, 0
		return
	}
	if u.vain++; u.vain >= unevenVain {
		u.pause = min(max(2*u.pause, unevenPause), unevenRest)
		u.skip, u.vain = u.pause, 0
	}
}
