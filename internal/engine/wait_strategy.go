package engine

// The strategy of all waits: what a goroutine does between two polls. A wait polls with
// the lock held, then yields the core between polls, then parks until an event.
//
//	result of the poll     the waiter polls again, drainPolls times in a row: one poll
//	                       takes what one run of datagrams brought, and where ranks share
//	                       cores the next time slice is far away
//	another goroutine      it gets the lock between two polls
//	wants the lock
//	spin polls without     where ranks share cores after the first poll with a result: the
//	result: yield          awaited message comes from a rank that needs this core; and after
//	                       few polls if each of them is a system call
//	yields polls after     the wait is long, and other processes need the core; also after a
//	that: park             yield to a thread that computes, unless ranks share cores;
//	                       if goroutines of this process bring the messages, the waiter
//	                       parks at once (rdma.Attr.WaitEarly)

import (
	"runtime"
	"slices"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// drainPolls bounds the polls with a result in a row after which a waiter yields.
const drainPolls = 64

// waitStep is what a waiter does after a poll.
type waitStep uint8

const (
	stepPoll   waitStep = iota // poll again
	stepUnlock                 // let another goroutine have the lock
	stepYield                  // yield the core
	stepPark                   // sleep until an event
)

// strategy is the state of one wait.
type strategy struct {
	spin   int // polls without a result before the waiter yields
	yields int // yields before it parks
	first  int // idle after a poll with a result

	idle   int           // polls without a result since then
	busy   int           // polls with a result in a row
	long   time.Duration // when it yielded or parked for the first time, 0 before
	polled time.Duration // when the last yield ended
}

// polls returns the numbers of polls and yields of a wait before it parks.
func (cfg *Config) polls() (spin, yields int) {
	spin, yields = 1000, 500
	switch {
	case slices.ContainsFunc(cfg.Lanes, func(l LaneConfig) bool { return l.Device.Attr().WaitEarly }):
		spin, yields = 1, 0
	case cfg.Oversubscribed:
		spin = 2
	}
	if cfg.Spin > 0 {
		spin = cfg.Spin
	}
	if cfg.Yield > 0 {
		yields = cfg.Yield
	}
	return spin, yields
}

// spinNetwork bounds the polls of a software network before a waiter yields. Each is a
// system call or more, so it delays the next poll as much as a yield on a core of its own,
// while a thousand in a row, nearly a millisecond, keep a peer or a progress thread from its
// work if the kernel has placed it on the same core. Between two hosts on two cores a round
// trip of 1 MB took 12 % longer with a thousand polls.
const spinNetwork = 20

// pollsOf returns the number of polls before a waiter yields if it polls a device like this.
func (cfg *Config) pollsOf(attr *rdma.Attr) int {
	spin, _ := cfg.polls()
	if attr.Served && cfg.Spin == 0 {
		spin = min(spin, spinNetwork)
	}
	return spin
}

// pollsPerYield returns the number of polls of all lanes before a waiter yields.
func (e *Held) pollsPerYield() int {
	spin := e.home.spin
	for _, d := range e.lanes {
		if d.silence < silentAfter {
			spin = min(spin, d.spin)
		}
	}
	return spin
}

// newStrategy returns the strategy of a wait that begins now.
func (e *Held) newStrategy() strategy {
	s := strategy{spin: e.pollsPerYield(), yields: e.yields}
	if e.cfg.Oversubscribed {
		s.first = s.spin
	}
	return s
}

// next returns the step after a poll. found reports that it had a result, wanted that
// another goroutine wants the lock.
func (s *strategy) next(found, wanted bool) waitStep {
	if found {
		s.idle = s.first
		if s.busy++; s.busy < drainPolls && !wanted {
			return stepPoll
		}
	}
	s.busy = 0
	idle := s.idle
	s.idle++
	switch {
	case wanted:
		return stepUnlock
	case idle < s.spin:
		return stepPoll
	case idle < s.spin+s.yields:
		return stepYield
	}
	return stepPark
}

// noteProgress records progress without a result: part of a large message has been transferred.
func (s *strategy) noteProgress() { s.idle = s.first }

// busyCore is the time of a yield after which a waiter parks, unless ranks are known to share
// cores: a thread that computes has this core, and returns it a tick later. A waiter that parks
// is woken by the event and preempts that thread. Between two hosts, with a computing process on
// each core, half a round trip of 1 MB took 12 to 18 ms with yields, and takes 9 ms, as without
// these processes. Where ranks share cores the next message comes from the thread that was
// yielded to (decision 117).
const busyCore = time.Millisecond

// deathsEvery is the number of yields between two checks for dead ranks; a power of two.
const deathsEvery = 64

// pause executes a step. Callers that can park do so themselves; for others stepPark is
// stepYield.
func (e *Held) pause(s *strategy, step waitStep) {
	switch step {
	case stepPoll:
	case stepUnlock:
		e.mu.handOver()
		e.mu.lock()
	default:
		e.waitsLong(s)
		e.waits.stats.yields++
		beside := e.beside
		e.mu.unlock()
		pollBeside(beside)
		e.yieldCore(s.idle)
		e.mu.lock()
		now := e.clock()
		e.waits.stats.gap(now - s.polled)
		if now-s.polled > busyCore && !e.cfg.Oversubscribed {
			s.idle = max(s.idle, s.spin+s.yields) // park next
		}
		s.polled = now
		if s.idle&(deathsEvery-1) == 0 {
			e.checkDeaths()
		}
	}
}

// waitsLong records when a wait yields or parks for the first time.
func (e *Held) waitsLong(s *strategy) {
	if s.long == 0 {
		s.long = e.clock()
		s.polled = s.long
		e.waits.stats.begun++
		e.waits.stats.begins += s.long
	}
}

// endWait counts a wait that has yielded or parked. Every wait that calls pause or waitsLong
// ends with it.
func (e *Held) endWait(s *strategy) {
	if s.long != 0 {
		e.waits.stats.total += e.clock() - s.long
		e.waits.stats.times++
		e.waits.stats.begun--
		e.waits.stats.begins -= s.long
	}
}

// clock returns the time since the rank has started, which is not 0.
func (s *setup) clock() time.Duration { return time.Since(s.began) + 1 }

// yieldCore yields the core: to threads of other ranks by sched_yield, and to
// goroutines of this process by the Go scheduler. sched_yield is many times less
// expensive, so runtime.Gosched is called only now and then.
func (s *setup) yieldCore(n int) {
	if s.cfg.InProcess || n&15 == 0 {
		runtime.Gosched()
	}
	if !s.cfg.InProcess {
		yieldThread()
	}
}
