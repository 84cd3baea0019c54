package rdmatest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/race"
	"github.com/muster-mpi/muster/rdma"
)

func wrapReference(faults Faults, transports rdma.Transport) Fixture {
	attr := ReferenceAttr()
	attr.Transports = transports
	open := openReference(attr)
	return Fixture{Unconnected: "its peers are objects of one heap", Open: func(t testing.TB, n int) []rdma.Device {
		devs := open(t, n)
		for i := range devs {
			devs[i] = Wrap(devs[i], faults)
		}
		return devs
	}, Exclude: excused()}
}

// TestFaultyDeviceConforms shows that faults stay within what the transport permits.
func TestFaultyDeviceConforms(t *testing.T) {
	if !race.Enabled {
		f := wrapReference(Faults{}, rdma.RD)
		f.Name = "no-faults"
		Run(t, f)
	}
	f := wrapReference(Faults{Seed: 1, Drop: 0.3, Duplicate: 0.3, Reorder: 0.3, Delay: 6}, rdma.RD|rdma.UD)
	f.Name = "all-faults"
	Run(t, f)
}

// stream sends numbered messages from node 0 to node 1 and returns the numbers
// in the order in which they arrive.
func stream(t *testing.T, kind rdma.Transport, faults Faults, count int) (order []int, tally Tally) {
	f := wrapReference(faults, kind)
	r := newRig(t, &f, kind, 2, queueConfig{})
	a, b := r.nodes[0], r.nodes[1]
	b.sink = func(_ int, c *rdma.Completion) error {
		order = append(order, int(binary.LittleEndian.Uint64(c.Data.Bytes())))
		return nil
	}
	for k := range count {
		w := a.send(1, 8, k%40)
		binary.LittleEndian.PutUint64(w.head, uint64(k))
		w.inline = k%2 == 0
		r.post(a, w)
		r.step()
	}
	r.pollUntil("every send has completed, whether the message arrived or not", func() bool { return a.open == 0 })
	r.settle()
	return order, a.dev.(*Faulty).Tally()
}

func TestFaultKinds(t *testing.T) {
	const count = 1000
	for _, c := range []struct {
		name   string
		kind   rdma.Transport
		faults Faults
		check  func(order []int, tally Tally) error
	}{
		{"nothing", rdma.UD, Faults{}, func(order []int, tally Tally) error {
			if len(order) != count || !slices.IsSorted(order) || tally != (Tally{Messages: count}) {
				return fmt.Errorf("%d of %d messages arrived, in order %v, tally %+v", len(order), count, slices.IsSorted(order), tally)
			}
			return nil
		}},
		{"drop", rdma.UD, Faults{Drop: 0.2}, func(order []int, tally Tally) error {
			if len(order) != count-tally.Dropped || tally.Dropped < 120 || tally.Dropped > 280 || !slices.IsSorted(order) {
				return fmt.Errorf("%d of %d messages arrived, tally %+v; about 200 should be lost", len(order), count, tally)
			}
			return nil
		}},
		{"duplicate", rdma.UD, Faults{Duplicate: 0.2}, func(order []int, tally Tally) error {
			if len(order) != count+tally.Duplicated || tally.Duplicated < 120 || tally.Duplicated > 280 {
				return fmt.Errorf("%d messages arrived, tally %+v; about 200 of %d should be duplicated", len(order), tally, count)
			}
			return nil
		}},
		{"reorder", rdma.UD, Faults{Reorder: 0.2}, func(order []int, tally Tally) error {
			sorted := slices.Sorted(slices.Values(order))
			if len(slices.Compact(sorted)) != count || slices.IsSorted(order) || tally.Reordered < 120 {
				return fmt.Errorf("%d messages arrived, in order: %v, tally %+v", len(order), slices.IsSorted(order), tally)
			}
			return nil
		}},
		{"delay", rdma.RD, Faults{Delay: 9}, func(order []int, tally Tally) error {
			if len(order) != count || !slices.IsSorted(order) || tally.Delayed < 500 {
				return fmt.Errorf("%d of %d messages arrived, in order: %v, tally %+v", len(order), count, slices.IsSorted(order), tally)
			}
			return nil
		}},
		{"what RD forbids", rdma.RD, Faults{Drop: 0.5, Duplicate: 0.5, Reorder: 0.5}, func(order []int, tally Tally) error {
			if len(order) != count || !slices.IsSorted(order) {
				return fmt.Errorf("%d of %d messages arrived, in order: %v", len(order), count, slices.IsSorted(order))
			}
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(stream(t, c.kind, c.faults, count)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFaultsRepeat(t *testing.T) {
	faults := Faults{Seed: 7, Drop: 0.1, Duplicate: 0.1, Reorder: 0.3, Delay: 3}
	first, _ := stream(t, rdma.UD, faults, 300)
	second, _ := stream(t, rdma.UD, faults, 300)
	if !slices.Equal(first, second) {
		t.Error("the same seed produced different faults")
	}
	faults.Seed++
	if third, _ := stream(t, rdma.UD, faults, 300); slices.Equal(first, third) {
		t.Error("another seed produced the same faults")
	}
}

func TestKillEndsAllWork(t *testing.T) {
	f := wrapReference(Faults{}, rdma.RD)
	r := newRig(t, &f, rdma.RD, 3, queueConfig{})
	a, victim, witness := r.nodes[0], r.nodes[1], r.nodes[2]
	region := newGuarded(1000, 0, 1)
	mr := a.register(region.mem, rdma.Cooperative)
	push := a.access(rdma.OpPush, 1, region.mem, 0, 0, mr.RKey)
	r.post(a, push) // no pull will match it
	there := victim.register(make([]byte, 100), rdma.RemoteRead)
	here, _ := a.local(100, 0, 2)
	r.post(victim, victim.send(0, 8, 10)) // in flight when the peer disappears
	r.settle(victim)

	a.dev.(*Faulty).Kill(victim.ports[0].qp.Addr())
	works := []*work{
		push,
		a.send(1, 8, 100),
		a.sendInline(1, 8, 0),
		a.access(rdma.OpRead, 1, here.mem, 0, there.Base, there.RKey),
	}
	r.post(a, works[1:]...)
	r.post(a, a.sendInline(2, 8, 0))
	r.pollUntil("all work for the peer that is gone has completed", func() bool {
		return !slices.ContainsFunc(works, func(w *work) bool { return !w.done })
	}, a, witness)
	for _, w := range works {
		if w.status != rdma.StatusPeerGone {
			t.Errorf("%v for a peer that is gone completes with %v", w.op, w.status)
		}
	}
	r.post(victim, victim.sendInline(0, 8, 0))
	r.settle()
	if len(a.arrived) != 0 {
		t.Errorf("%d messages arrived from a peer that is gone", len(a.arrived))
	}
	if len(witness.arrived) != 1 {
		t.Errorf("%d messages arrived at a peer that is not gone, instead of 1", len(witness.arrived))
	}
	if err := here.checkUnchanged(); err != nil {
		t.Errorf("a Read from a peer that is gone: %v", err)
	}
}

func TestKillAfterCountsMessages(t *testing.T) {
	f := wrapReference(Faults{}, rdma.RD)
	r := newRig(t, &f, rdma.RD, 2, queueConfig{})
	a, victim := r.nodes[0], r.nodes[1]
	a.dev.(*Faulty).KillAfter(victim.ports[0].qp.Addr(), 5)
	sends, lost := 0, 0
	for range 6 {
		w := a.sendInline(1, 8, 0)
		r.post(a, w)
		r.post(victim, victim.sendInline(0, 8, 0))
		r.settle()
		sends++
		if w.done {
			lost++
		}
	}
	if got := len(victim.arrived) + len(a.arrived); got != 5 || sends-lost != len(victim.arrived) {
		t.Errorf("%d messages passed before the peer was gone, %d of %d sends failed; it should be 5, and every other send", got, lost, sends)
	}
}

func TestKillEndsWait(t *testing.T) {
	f := wrapReference(Faults{}, rdma.RD)
	f.hangTimeout = 5 * time.Second
	r := newRig(t, &f, rdma.RD, 2, queueConfig{})
	a, victim := r.nodes[0], r.nodes[1]
	region := make([]byte, 100)
	mr := a.register(region, rdma.Cooperative)
	push := a.access(rdma.OpPush, 1, region, 0, 0, mr.RKey)
	r.post(a, push)
	addr := victim.ports[0].qp.Addr()
	r.together(part{a, func() error {
		return a.await(1, func() bool { return push.done })
	}}, part{nil, func() error {
		time.Sleep(5 * time.Millisecond) // until the other part is in Wait, which nothing shows
		a.dev.(*Faulty).Kill(addr)
		return nil
	}})
	if push.status != rdma.StatusPeerGone {
		t.Errorf("the awaited request completes with %v", push.status)
	}
}
