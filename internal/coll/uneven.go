package coll

import "math/bits"

// Uneven decides for a rank whether its next call runs an algorithm or its aware
// form (Algorithm.Aware), from how evenly ranks have come to the latest calls. Both
// send the same messages, so the others need not know.
//
// What is measured costs no message. While ranks come together, the messages of a
// call end one after the other all the time. If somebody is late, those who are not
// wait: for most of the call, nothing ends. So a call is uneven if one pause between
// two ends took more than half of its time. The rank that is late itself sees no
// pause, and has nothing to gain: all others are there.
//
//	Next                asked before a call
//	Begin, Event, End   what happens in one that is measured, with its time
//	Served              what came of one that was aware
//
// Being aware has to pay. If aware calls found nobody to serve before others, it is
// given up for a while, which doubles each time up to a limit, as for offers that
// nobody uses (decision 016).

// The rule. One late call of eight is worth being aware; a rank that has stopped
// looks again after so many calls that were uneven.
const (
	unevenOf     = 16 // measured calls that are looked at
	unevenFrom   = 2  // of them uneven: be aware
	unevenVain   = 16 // aware calls in a row that served nobody early: stop
	unevenPause  = 16 // calls
	unevenRest   = 1024
	unevenSample = 4 // one call of so many is measured
)

// Uneven is what a rank knows of one kind of call. The zero Uneven knows nothing, and
// is not aware.
type Uneven struct {
	calls   uint32
	history uint32 // of the measured calls, a bit for each, set if it was uneven
	vain    int    // aware calls in a row that served nobody before others
	pause   int    // the next one, in calls
	skip    int    // calls that are left of this one

	begun, last, longest int64 // of the call that is measured, in nanoseconds
	measuring            bool
}

// Next begins a call: whether it is to be aware, and whether to measure it.
func (u *Uneven) Next() (aware, measure bool) {
	u.calls++
	measure = !u.measuring && u.calls%unevenSample == 1
	if u.skip > 0 {
		u.skip--
		return false, measure
	}
	return bits.OnesCount32(u.history) >= unevenFrom, measure
}

// Begin, Event and End are for a call that is measured: its beginning, a message of
// it that has ended, and its own end.
func (u *Uneven) Begin(now int64) {
	u.begun, u.last, u.longest, u.measuring = now, now, 0, true
}

// Event hears that a message has ended.
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

// Served hears of every aware call how many sends went before others in it.
func (u *Uneven) Served(early int) {
	if early > 0 {
		u.vain, u.pause = 0, 0
		return
	}
	if u.vain++; u.vain >= unevenVain {
		u.pause = min(max(2*u.pause, unevenPause), unevenRest)
		u.skip, u.vain = u.pause, 0
	}
}
