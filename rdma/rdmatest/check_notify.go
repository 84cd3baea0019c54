package rdmatest

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting and polling beside a rank that computes. Devices without Caps.Notify, or
// without the events that a check is about, are skipped.

func notifyChecks() []check {
	const sol, anything = rdma.NotifySolicited, rdma.NotifyAny
	return []check{
		{name: "solicited-wakes", on: reliable, run: notify(sol, notifyWakes),
			rule: "armed for NotifySolicited, WaitArmed blocks until a message sent as Solicited has arrived, or Wake was called"},
		{name: "solicited-arm-if-ready", on: reliable, run: notify(sol, armSees),
			rule: "Arm returns 0 if a message has arrived"},
		{name: "solicited-only", on: reliable, run: notify(sol, solicitedOnly),
			rule: "armed for NotifySolicited, other messages do not wake WaitArmed, and solicited ones do not after Disarm"},
		{name: "solicited-beside-wait", on: reliable, run: notify(sol, notifyBesideWait),
			rule: "Wait may be called while another goroutine is in WaitArmed, and is woken as usual"},
		{name: "solicited-loses-no-message", on: reliable, run: notify(sol, notifyLosesNone),
			rule: "a solicited message that arrives after Arm ends the next WaitArmed"},
		{name: "notify-wakes", on: reliable, run: notify(anything, notifyWakes),
			rule: "armed for NotifyAny, WaitArmed blocks until a message has arrived, or Wake was called"},
		{name: "notify-arm-if-ready", on: reliable, run: notify(anything, armSees),
			rule: "Arm returns 0 if a message has arrived"},
		{name: "notify-beside-wait", on: reliable, run: notify(anything, notifyBesideWait),
			rule: "Wait may be called while another goroutine is in WaitArmed, and is woken as usual"},
		{name: "notify-loses-no-message", on: reliable, run: notify(anything, notifyLosesNone),
			rule: "a message that arrives after Arm ends the next WaitArmed"},
		{name: "beside-keeps-lent", on: reliable, run: notify(rdma.NotifyBeside, besideKeepsLent),
			rule: "a Poll beside the application leaves alone what the application has been lent"},
	}
}

// waiter is a queue with the event that it is armed for.
type waiter struct {
	rdma.CQ
	on rdma.Notify
}

func (w waiter) arm() bool { return w.Arm(w.on, time.Hour) > 0 }

// notify skips a check on devices without these events.
func notify(on rdma.Notify, run func(r *rig, cq waiter)) func(*rig) {
	return func(r *rig) {
		if !r.nodes[1].dev.Caps().Notify.Has(on) {
			r.t.Skip("its CQ does not support this (Caps.Notify)")
		}
		r.nodes[1].idle()
		run(r, waiter{r.nodes[1].portTo(0).recvCQ, on})
	}
}

// sendUrgent returns an inline message with the Solicited flag.
func (n *node) sendUrgent(to int) *work {
	w := n.sendInline(to, 8, 0)
	w.solicited = true
	return w
}

// arm arms the queue once nothing is left to poll.
func (n *node) arm(cq waiter) error {
	for end := time.Now().Add(n.rig.hangTimeout); !cq.arm(); n.poll() {
		if time.Now().After(end) {
			return fmt.Errorf("node %d: Arm returns 0 although there is nothing to poll; %s", n.index, n.state())
		}
	}
	return nil
}

// waitArmed waits and returns how long that took.
func (n *node) waitArmed(cq waiter, timeout time.Duration) (time.Duration, error) {
	start := time.Now()
	if err := cq.WaitArmed(timeout); err != nil {
		return 0, fmt.Errorf("node %d: WaitArmed: %w", n.index, err)
	}
	return time.Since(start), nil
}

// keepsPolling is the part of a node that has nothing else to do.
func (n *node) keepsPolling() part { return part{n, func() error { return nil }} }

func (n *node) mustBeWoken(cq waiter) error {
	took, err := n.waitArmed(cq, n.rig.hangTimeout)
	if err == nil && took > n.rig.hangTimeout/2 {
		err = fmt.Errorf("node %d: WaitArmed lasted %v: a lost wake-up", n.index, took)
	}
	return err
}

func notifyWakes(r *rig, cq waiter) {
	a, b := r.nodes[0], r.nodes[1]
	for round := range 4 {
		r.together(part{a, func() error {
			time.Sleep(3 * time.Millisecond) // so that the other side waits
			if round%2 == 1 {
				cq.Wake()
				return nil
			}
			w := a.sendInline(1, 8, 0)
			w.solicited = cq.on == rdma.NotifySolicited
			return a.submit(w)
		}}, part{b, func() error {
			if err := b.arm(cq); err != nil {
				return err
			}
			return b.mustBeWoken(cq)
		}})
		r.together(a.keepsPolling(), part{b, func() error { return b.await(0, func() bool { return len(b.arrived) > round/2 }) }})
	}
}

func armSees(r *rig, cq waiter) {
	a, b := r.nodes[0], r.nodes[1]
	r.together(part{a, func() error { return a.submit(a.sendInline(1, 8, 0)) }})
	for end := time.Now().Add(r.hangTimeout / 2); cq.arm(); cq.Disarm() {
		r.step(a)
		if time.Now().After(end) { // a network may be slow, but not that slow
			r.t.Fatal("a message has arrived, but Arm does not return 0")
		}
	}
	r.together(a.keepsPolling(), part{b, func() error { return b.await(0, func() bool { return len(b.arrived) == 1 }) }})
}

// solicitedOnly tolerates one early return, which the rule permits.
func solicitedOnly(r *rig, cq waiter) {
	a, b := r.nodes[0], r.nodes[1]
	const timeout, tries = 30 * time.Millisecond, 4
	for _, disarm := range []bool{false, true} {
		woken := 0
		for range tries {
			before := len(b.arrived)
			r.together(part{a, func() error {
				time.Sleep(timeout / 3)
				if disarm {
					return a.submit(a.sendUrgent(1))
				}
				return a.submit(a.sendInline(1, 8, 0))
			}}, part{b, func() error {
				if err := b.arm(cq); err != nil {
					return err
				}
				if disarm {
					cq.Disarm()
				}
				took, err := b.waitArmed(cq, timeout)
				if took < timeout {
					woken++
				}
				return err
			}})
			r.together(a.keepsPolling(), part{b, func() error { return b.await(0, func() bool { return len(b.arrived) > before }) }})
		}
		if woken > 1 {
			r.t.Errorf("%d of %d waits ended early (disarmed: %v)", woken, tries, disarm)
		}
	}
}

// notifyBesideWait runs a WaitArmed in a second goroutine while the node itself
// waits for messages.
func notifyBesideWait(r *rig, cq waiter) {
	a, b := r.nodes[0], r.nodes[1]
	gone := make(chan error, 1)
	go func() {
		_, err := b.waitArmed(cq, r.hangTimeout)
		gone <- err
	}()
	for round := range 20 {
		r.together(part{a, func() error {
			time.Sleep(time.Millisecond)
			return a.submit(a.sendInline(1, 8, 0))
		}}, part{b, func() error { return b.await(0, func() bool { return len(b.arrived) > round }) }})
	}
	cq.Wake()
	if err := <-gone; err != nil {
		r.t.Error(err)
	}
}

// notifyLosesNone bounces messages between two nodes that wait for each of them.
func notifyLosesNone(r *rig, one waiter) {
	const rounds = 1000
	play := func(n *node, first bool) part {
		to, count := 1-n.index, n.countArrivals()
		cq := waiter{n.portTo(to).recvCQ, one.on}
		return part{n, func() error {
			for i := range rounds {
				if first || i > 0 {
					if err := n.submit(n.sendUrgent(to)); err != nil {
						return err
					}
				}
				for n.poll(); *count <= i; n.poll() {
					if !cq.arm() {
						continue
					}
					if err := n.mustBeWoken(cq); err != nil {
						return err
					}
				}
			}
			if !first { // the last answer
				return n.submit(n.sendUrgent(to))
			}
			return nil
		}}
	}
	r.together(play(r.nodes[0], true), play(r.nodes[1], false))
}

// besideKeepsLent receives messages beside an application that still reads one.
func besideKeepsLent(r *rig, cq waiter) {
	a, b := r.nodes[0], r.nodes[1]
	var held []loan
	b.sink = func(_ int, c *rdma.Completion) error {
		held = append(held, loan{c.Data.Bytes(), append([]byte{}, c.Data.Bytes()...)})
		return nil
	}
	for i := range 20 {
		if err := a.submit(a.sendInline(1, 8, 64)); err != nil {
			r.t.Fatal(err)
		}
		cq.SetBeside(i > 0)
		r.pollUntil("the message has arrived", func() bool { return len(held) > i }, a, b)
		cq.SetBeside(false)
		r.step(a)
		if err := held[0].check(); err != nil {
			r.t.Fatalf("a message that Poll lent changed after %d Polls beside it: %v", i, err)
		}
	}
}
