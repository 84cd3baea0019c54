package rdmatest

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Waiting for solicited events beside a rank that computes. Devices without
// rdma.SolicitedCQ are skipped.

func solicitedChecks() []check {
	return []check{
		{name: "solicited-wakes", on: reliable, run: solicited(solicitedWakes),
			rule: "WaitSolicited blocks until a message sent as Solicited has arrived, or Wake was called"},
		{name: "solicited-arm-if-ready", on: reliable, run: solicited(solicitedSees),
			rule: "ArmSolicited returns false if a message has arrived"},
		{name: "solicited-only", on: reliable, run: solicited(solicitedOnly),
			rule: "other messages do not wake WaitSolicited, and solicited ones do not after Disarm"},
		{name: "solicited-beside-wait", on: reliable, run: solicited(solicitedBesideWait),
			rule: "Wait may be called while another goroutine is in WaitSolicited, and is woken as usual"},
		{name: "solicited-loses-no-message", on: reliable, run: solicited(solicitedLosesNone),
			rule: "a solicited message that arrives after ArmSolicited ends the next WaitSolicited"},
	}
}

// solicited skips a check on devices without SolicitedCQ.
func solicited(run func(r *rig, cq rdma.SolicitedCQ)) func(*rig) {
	return func(r *rig) {
		cq, ok := r.nodes[1].portTo(0).recvCQ.(rdma.SolicitedCQ)
		if !ok {
			r.t.Skip("its CQ is not a SolicitedCQ")
		}
		r.nodes[1].idle()
		run(r, cq)
	}
}

// sendUrgent returns an inline message with the Solicited flag.
func (n *node) sendUrgent(to int) *work {
	w := n.sendInline(to, 8, 0)
	w.solicited = true
	return w
}

// arm calls ArmSolicited once nothing is left to poll.
func (n *node) arm(cq rdma.SolicitedCQ) error {
	for end := time.Now().Add(n.rig.hangTimeout); !cq.ArmSolicited(); n.poll() {
		if time.Now().After(end) {
			return fmt.Errorf("node %d: ArmSolicited returns false although there is nothing to poll; %s", n.index, n.state())
		}
	}
	return nil
}

// waitArmed waits and returns how long that took.
func (n *node) waitArmed(cq rdma.SolicitedCQ, timeout time.Duration) (time.Duration, error) {
	start := time.Now()
	if err := cq.WaitSolicited(timeout); err != nil {
		return 0, fmt.Errorf("node %d: WaitSolicited: %w", n.index, err)
	}
	return time.Since(start), nil
}

func (n *node) mustBeWoken(cq rdma.SolicitedCQ) error {
	took, err := n.waitArmed(cq, n.rig.hangTimeout)
	if err == nil && took > n.rig.hangTimeout/2 {
		err = fmt.Errorf("node %d: WaitSolicited lasted %v: a lost wake-up", n.index, took)
	}
	return err
}

func solicitedWakes(r *rig, cq rdma.SolicitedCQ) {
	a, b := r.nodes[0], r.nodes[1]
	for round := range 4 {
		r.together(part{a, func() error {
			time.Sleep(3 * time.Millisecond) // so that the other side waits
			if round%2 == 1 {
				cq.Wake()
				return nil
			}
			return a.submit(a.sendUrgent(1))
		}}, part{b, func() error {
			if err := b.arm(cq); err != nil {
				return err
			}
			return b.mustBeWoken(cq)
		}})
		r.together(part{b, func() error { return b.await(0, func() bool { return len(b.arrived) > round/2 }) }})
	}
}

func solicitedSees(r *rig, cq rdma.SolicitedCQ) {
	a, b := r.nodes[0], r.nodes[1]
	r.together(part{a, func() error { return a.submit(a.sendInline(1, 8, 0)) }})
	for end := time.Now().Add(r.hangTimeout / 2); cq.ArmSolicited(); {
		if time.Now().After(end) { // a network may be slow, but not that slow
			r.t.Fatal("a message has arrived, but ArmSolicited returns true")
		}
	}
	r.together(part{b, func() error { return b.await(0, func() bool { return len(b.arrived) == 1 }) }})
}

// solicitedOnly tolerates one early return, which the rule permits.
func solicitedOnly(r *rig, cq rdma.SolicitedCQ) {
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
			r.together(part{b, func() error { return b.await(0, func() bool { return len(b.arrived) > before }) }})
		}
		if woken > 1 {
			r.t.Errorf("%d of %d waits ended early (disarmed: %v)", woken, tries, disarm)
		}
	}
}

// solicitedBesideWait runs a WaitSolicited in a second goroutine while the node itself
// waits for messages.
func solicitedBesideWait(r *rig, cq rdma.SolicitedCQ) {
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

// solicitedLosesNone bounces messages between two nodes that wait for each of them.
func solicitedLosesNone(r *rig, _ rdma.SolicitedCQ) {
	const rounds = 1000
	play := func(n *node, first bool) part {
		to, count := 1-n.index, 0
		n.sink = func(int, *rdma.Completion) error { count++; return nil }
		cq := n.portTo(to).recvCQ.(rdma.SolicitedCQ)
		return part{n, func() error {
			for i := range rounds {
				if first || i > 0 {
					if err := n.submit(n.sendUrgent(to)); err != nil {
						return err
					}
				}
				for n.poll(); count <= i; n.poll() {
					if !cq.ArmSolicited() {
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
