package rdmatest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/rdma"
)

// Waiting. A Wait may always return early, so the checks verify that it returns in time:
// each waits with a timeout of hangTimeout and fails if a Wait lasts half of that, which
// only a lost wake-up can explain.

func waitChecks() []check {
	const wake = "Wake ends the current Wait, or the next one if there is none"
	return []check{
		{name: "wait-times-out", on: all, run: waitTimesOut,
			rule: "Wait returns when the timeout has passed"},
		{name: "wait-does-not-spin", on: all, run: waitDoesNotSpin,
			rule: "Wait does not spin"},
		{name: "wait-returns-if-ready", on: reliable, run: waitReturnsIfReady,
			rule: "Wait returns at once if Poll has something to do"},
		{name: "wait-wakes-on-arrival", on: reliable, run: waitWakesOnArrival,
			rule: "Wait blocks until Poll may have something to do"},
		{name: "wait-wakes-on-space", on: reliable, run: waitWakesOnSpace,
			rule: "after ErrAgain, Wait blocks until the rest may be posted again"},
		{name: "wait-wakes-on-pull", on: reliable, ops: rdma.Ops(rdma.OpPull, rdma.OpPush), run: waitWakesOnPull,
			rule: "Wait returns when a cooperative copy can continue or has ended"},
		{name: "wait-wakes-before", rule: wake, on: all, run: waitWokenBefore},
		{name: "wait-wakes-during", rule: wake, on: all, run: waitWokenDuring},
		{name: "wait-loses-no-wake", rule: wake, on: all, run: waitLosesNoWake},
		{name: "wait-loses-no-message", on: reliable, run: waitLosesNoMessage,
			rule: "a message that arrives between the last Poll and Wait ends the Wait"},
		{name: "wait-loses-no-message-many", on: rdma.RD, peers: 4, run: waitLosesNoMessageMany,
			rule: "a message that arrives between the last Poll and Wait ends the Wait"},
	}
}

// wait waits on the node's receive queue and returns an error if the Wait took so long
// that a wake-up must have been lost.
func (n *node) wait(to int) error {
	start := time.Now()
	if err := n.portTo(to).recvCQ.Wait(n.rig.hangTimeout); err != nil {
		return fmt.Errorf("node %d: Wait: %w", n.index, err)
	}
	if took := time.Since(start); took > n.rig.hangTimeout/2 {
		return fmt.Errorf("node %d: Wait lasted %v although there was something to do: a lost wake-up", n.index, took)
	}
	return nil
}

// idle polls until the setup has left nothing to do.
func (n *node) idle() {
	for range 50 {
		n.poll()
	}
}

func waitTimesOut(r *rig) {
	n := r.nodes[0]
	n.idle()
	for _, timeout := range []time.Duration{0, time.Nanosecond, time.Millisecond, 20 * time.Millisecond} {
		start := time.Now()
		if err := n.portTo(1).recvCQ.Wait(timeout); err != nil {
			r.t.Errorf("Wait(%v) on an idle queue: %v; a timeout is not an error", timeout, err)
		}
		if took := time.Since(start); took > timeout+r.hangTimeout/2 {
			r.t.Errorf("Wait(%v) lasted %v", timeout, took)
		}
	}
}

// waitDoesNotSpin compares the CPU time of the process with the time waited, after
// messages have arrived: their events must not stay pending. Most of several spans must be
// quiet: the process may have other work in one, and on an oversubscribed machine a
// spinning process may get no CPU in another.
func waitDoesNotSpin(r *rig) {
	n := r.nodes[0]
	if r.kind != rdma.UD { // a UD message may be lost
		r.exchangeOnce()
	}
	n.idle()
	// Most of five waits in a row must be quiet. A busy machine gets more attempts: a
	// Wait that spins passes in none.
	const span, tries, row, most = 40 * time.Millisecond, 25, 5, 2 * time.Millisecond
	var used []time.Duration
	for range tries {
		start := time.Now()
		before, ok := cputime.Used()
		if !ok {
			r.t.Skip("the CPU time of the process is not available")
		}
		for time.Since(start) < span {
			if err := n.portTo(1).recvCQ.Wait(span - time.Since(start)); err != nil {
				r.t.Fatal(err)
			}
			n.poll()
		}
		after, _ := cputime.Used()
		used = append(used, after-before)
		quiet := 0
		for _, d := range used[max(0, len(used)-row):] {
			if d < most {
				quiet++
			}
		}
		if quiet > row/2 {
			return
		}
	}
	r.t.Errorf("waiting on an idle queue for %v, %d times, used this much CPU time: %v", span, tries, used)
}

func waitReturnsIfReady(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	// A responder that has received nothing yet may be silent (RFC 5044 section 7.1.2), and
	// nobody drives a while b waits.
	r.post(b, b.sendInline(0, 8, 0))
	r.pollUntil("the first message has arrived", func() bool { return len(a.arrived) == 1 })
	b.idle()
	for range 3 {
		r.post(a, a.sendInline(1, 8, 0))
	}
	for range 100 {
		r.step(a)
	}
	b.batch = 1 // the second and third remain
	for i := range 3 {
		for len(b.arrived) == i {
			if err := b.wait(0); err != nil {
				r.t.Fatalf("with %d of 3 messages left: %v", 3-i, err)
			}
			r.step(b)
			r.step(a)
		}
	}
	// The own completion is something to do as well.
	w := a.send(1, 8, 10)
	r.post(a, w)
	for range 100 {
		r.step(b)
	}
	for !w.done {
		if err := a.wait(1); err != nil {
			r.t.Fatalf("with a send that the peer has received: %v", err)
		}
		r.step()
	}
}

// part is the work of one goroutine, and the node it drives, if any.
type part struct {
	n   *node
	run func() error
}

// together runs the parts concurrently. A node whose part is done keeps polling until all
// are: its last messages may depend on it.
func (r *rig) together(parts ...part) {
	r.t.Helper()
	var wg sync.WaitGroup
	var missing atomic.Int64
	missing.Store(int64(len(parts)))
	errs := make([]error, len(parts))
	for i, p := range parts {
		wg.Go(func() {
			errs[i] = p.run()
			missing.Add(-1)
			for p.n != nil && missing.Load() > 0 {
				p.n.poll()
				time.Sleep(50 * time.Microsecond)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		r.t.Fatal(err)
	}
}

// await polls and waits until cond holds.
func (n *node) await(to int, cond func() bool) error {
	deadline := time.Now().Add(n.rig.hangTimeout)
	for !cond() {
		n.poll()
		if n.wrong != nil {
			return n.wrong
		}
		if cond() {
			break
		}
		if err := n.wait(to); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("node %d: not finished after %v of polling and waiting", n.index, n.rig.hangTimeout)
		}
	}
	return nil
}

// submit posts work and waits when the queue is full.
func (n *node) submit(ws ...*work) error {
	for len(ws) > 0 {
		k, err := n.offer(ws)
		ws = ws[k:]
		if err = ignoreAgain(err); err != nil {
			return err
		}
		if len(ws) > 0 {
			n.poll()
			if n.wrong != nil {
				return n.wrong
			}
			// A Poll may have made room; only a second ErrAgain means wait.
			if k, err = n.offer(ws); k == 0 && errors.Is(err, rdma.ErrAgain) {
				if err := n.wait(ws[0].to); err != nil {
					return err
				}
			} else if err = ignoreAgain(err); err != nil {
				return err
			}
			ws = ws[k:]
		}
	}
	return nil
}

func ignoreAgain(err error) error {
	if errors.Is(err, rdma.ErrAgain) {
		return nil
	}
	return err
}

func waitWakesOnArrival(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	b.idle()
	for round := range 5 {
		w := a.send(1, 8, []int{0, 3000}[round%2])
		r.together(part{a, func() error {
			time.Sleep(3 * time.Millisecond) // so that the other side is in Wait
			if err := a.submit(w); err != nil {
				return err
			}
			return a.await(1, func() bool { return w.done })
		}}, part{b, func() error {
			return b.await(0, func() bool { return len(b.arrived) > round })
		}})
	}
}

// waitWakesOnSpace runs a sender that waits on a full queue and a receiver that empties it
// now and then.
func waitWakesOnSpace(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	const messages, pauses = 2000, 10
	size := min(1000, a.attr.MaxSend)
	count := b.countArrivals()
	r.together(part{a, func() error {
		for range messages {
			if err := a.submit(a.send(1, 0, size)); err != nil {
				return err
			}
		}
		return a.await(1, func() bool { return a.open == 0 })
	}}, part{b, func() error {
		for part := 1; part <= pauses; part++ {
			time.Sleep(2 * time.Millisecond) // the queue fills, the sender waits
			if err := b.await(0, func() bool { return *count >= messages*part/pauses }); err != nil {
				return err
			}
		}
		return nil
	}})
}

func waitWakesOnPull(r *rig) {
	owner, puller := r.nodes[0], r.nodes[1]
	for round := range 6 {
		j := r.newJoint(owner, puller, 700000, 0, 700000, round)
		early, late := time.Duration(0), time.Duration(0)
		if round%2 == 0 {
			early = 2 * time.Millisecond
		} else {
			late = 2 * time.Millisecond
		}
		r.together(part{owner, func() error {
			time.Sleep(early)
			if err := owner.submit(j.push); err != nil {
				return err
			}
			return owner.await(1, func() bool { return j.push.done })
		}}, part{puller, func() error {
			time.Sleep(late)
			if err := puller.submit(j.pull); err != nil {
				return err
			}
			return puller.await(0, func() bool { return j.pull.done })
		}})
		j.end(r)
	}
}

func waitWokenBefore(r *rig) {
	n := r.nodes[0]
	n.idle()
	for range 3 {
		n.portTo(1).recvCQ.Wake()
		if err := n.wait(1); err != nil {
			r.t.Fatalf("after Wake: %v", err)
		}
	}
	// It still works after two Wakes, and after a Wake without a waiter.
	n.portTo(1).recvCQ.Wake()
	n.portTo(1).recvCQ.Wake()
	if err := n.wait(1); err != nil {
		r.t.Fatalf("after two Wakes: %v", err)
	}
}

func waitWokenDuring(r *rig) {
	n := r.nodes[0]
	n.idle()
	for range 5 {
		r.together(part{nil, func() error {
			time.Sleep(3 * time.Millisecond)
			n.portTo(1).recvCQ.Wake()
			return nil
		}}, part{n, func() error { return n.wait(1) }})
	}
}

// waitLosesNoWake alternates with a waiter by Wake alone. The waker is fast enough to hit
// every moment of going to sleep.
func waitLosesNoWake(r *rig) {
	n := r.nodes[0]
	cq := n.portTo(1).recvCQ
	const rounds = 2000
	var ball, back atomic.Int64
	r.together(part{nil, func() error {
		for i := int64(1); i <= rounds; i++ {
			stop := time.Now().Add(r.hangTimeout) // of a round: all of them take long on a busy machine
			ball.Store(i)
			cq.Wake()
			for k := 0; back.Load() != i; k++ {
				if k%100 == 99 {
					time.Sleep(time.Microsecond)
				}
				if time.Now().After(stop) {
					return fmt.Errorf("after %d of %d rounds the waiter is still asleep", i, rounds)
				}
			}
		}
		return nil
	}}, part{n, func() error {
		for i := int64(1); i <= rounds; i++ {
			for ball.Load() != i {
				if err := n.wait(1); err != nil {
					return err
				}
				n.poll()
			}
			back.Store(i)
		}
		return nil
	}})
}

// waitLosesNoMessage plays ping-pong between two nodes that wait at once.
func waitLosesNoMessage(r *rig) {
	a, b := r.nodes[0], r.nodes[1]
	const rounds = 2000
	play := func(n *node, first bool) part {
		to := 1 - n.index
		count := n.countArrivals()
		return part{n, func() error {
			for i := range rounds {
				if first {
					if err := n.submit(n.sendInline(to, 8, 0)); err != nil {
						return err
					}
				}
				if err := n.await(to, func() bool { return *count > i }); err != nil {
					return err
				}
				if !first {
					if err := n.submit(n.sendInline(to, 8, 0)); err != nil {
						return err
					}
				}
			}
			return nil
		}}
	}
	r.together(play(a, true), play(b, false))
}

// waitLosesNoMessageMany runs three nodes that send to a fourth, which waits whenever it
// has nothing to do; each sender waits for an answer before it sends again.
func waitLosesNoMessageMany(r *rig) {
	const rounds = 500
	server := r.nodes[0]
	var asked []int
	server.sink = func(from int, _ *rdma.Completion) error { asked = append(asked, from); return nil }
	parts := []part{{server, func() error {
		for served := 0; served < rounds*(len(r.nodes)-1); {
			if err := server.await(1, func() bool { return len(asked) > 0 }); err != nil {
				return err
			}
			now := asked
			asked = nil // more may arrive while these are answered
			for _, from := range now {
				if err := server.submit(server.sendInline(from, 8, 0)); err != nil {
					return err
				}
				served++
			}
		}
		return nil
	}}}
	for _, n := range r.nodes[1:] {
		count := n.countArrivals()
		parts = append(parts, part{n, func() error {
			for i := range rounds {
				if err := n.submit(n.sendInline(0, 8, 0)); err != nil {
					return err
				}
				if err := n.await(0, func() bool { return *count > i }); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	r.together(parts...)
}
