package p2p

// Failures in every stage: each operation ends with the error, nothing stays registered, and
// later packets for it are ignored.

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

var errGone = errors.New("the peer is gone")

// maxEvents bounds the events of a conversation; a failure after each of them covers every
// stage.
const maxEvents = 14

// oneEvent executes the first possible event of 2 ranks. With lazy, packets are delivered
// before the devices accept more.
func (j *job) oneEvent() bool {
	for _, take := range []bool{!j.lazy, j.lazy} {
		for from := range 2 {
			switch wi := j.wire(1-from, from); {
			case take && len(wi.wait) > 0:
				j.take(1-from, from)
				j.settle(1 - from)
				return true
			case !take && len(wi.inFlight) > 0:
				j.deliver(1-from, from, 0)
				return true
			}
		}
	}
	for r := range 2 {
		for i := range j.nodes[r].work {
			if j.ready(r, i) {
				j.complete(r, i)
				return true
			}
		}
	}
	return false
}

func TestFailInEveryStage(t *testing.T) {
	seen := map[string]bool{}
	eachWay(t, func(t *testing.T, _ *job, size int) {
		name := t.Name()
		way := ways[0]
		for _, w := range ways {
			if strings.Contains(name, w.name) {
				way = w
			}
		}
		for after := range maxEvents {
			for _, whole := range []bool{false, true} {
				for variant := range 4 {
					early := variant&1 == 0
					j := newJob(t, 2, way.cfg, 4)
					j.slow, j.lazy = true, variant&2 == 0
					j.attr.LocalKeys = strings.Contains(name, "localkeys=true")
					var r *Xfer
					if early {
						r = j.recv(1, 0, 5, size)
					}
					s := j.send(0, 1, 5, size, Synchronous)
					for range after {
						if !early && r == nil && len(j.wire(0, 1).inFlight)+len(j.wire(0, 1).wait) == 0 {
							r = j.recv(1, 0, 5, size)
						} else {
							j.oneEvent()
						}
					}
					if r == nil {
						r = j.recv(1, 0, 5, size)
					}
					where := fmt.Sprintf("after %d events, send %s, receive %s", after, s.Stage(), r.Stage())
					seen[way.name+" "+s.Stage()] = true
					seen[way.name+" "+r.Stage()] = true
					for rank, x := range []*Xfer{s, r} {
						ended := x.Done()
						if whole {
							j.nodes[rank].m.Fail(errGone)
						} else {
							j.nodes[rank].m.FailLink(j.nodes[rank].links[1-rank], errGone)
						}
						if !x.Done() || (!ended && !errors.Is(x.Err, errGone)) || (ended && x.Err != nil) {
							t.Fatalf("%s: rank %d's operation is in stage %s, error %v", where, rank, x.Stage(), x.Err)
						}
						if mem := j.nodes[rank].mem; len(mem.regs) != 0 || mem.registered != mem.deregistered {
							t.Fatalf("%s: rank %d leaves %d regions registered", where, rank, len(mem.regs))
						}
						j.nodes[rank].m.Free(x)
					}
					for j.oneEvent() { // later events are harmless
					}
					for rank := range 2 {
						if mem := j.nodes[rank].mem; len(mem.regs) != 0 {
							t.Fatalf("%s: rank %d registered something after the failure", where, rank)
						}
						if m := j.nodes[rank].m; !whole && m.match.waiting != 0 {
							t.Fatalf("%s: rank %d keeps %d messages", where, rank, m.match.waiting)
						}
					}
				}
			}
		}
	})
	for _, want := range []string{"eager post", "eager ack", "eager posted", "eager done", "segments partial", "segments acked",
		"get rts", "get transfer", "put rts", "put cts", "put transfer", "coop rts", "coop transfer", "spec ready", "spec transfer", "spec fill"} {
		if !seen[want] {
			t.Errorf("no failure was tried with an operation in: %s", want)
		}
	}
}

// A failed work request ends the operations of both sides.
func TestWorkRequestFails(t *testing.T) {
	for _, way := range ways[2:] {
		t.Run(way.name, func(t *testing.T) {
			j := newJob(t, 2, way.cfg, 4)
			r, s := j.recv(1, 0, 5, way.size), j.send(0, 1, 5, way.size, Standard)
			for {
				failed := false
				for rank, n := range j.nodes {
					for i := range n.work {
						if n.work[i].wr.Op != rdma.OpPush && !failed {
							j.failWork(rank, i, rdma.StatusPeerGone)
							failed = true
							break
						}
					}
				}
				if failed {
					break
				}
				if !j.oneEvent() {
					t.Fatal("no work request came")
				}
			}
			for len(j.wire(0, 1).inFlight)+len(j.wire(1, 0).inFlight) > 0 {
				j.oneEvent()
			}
			for _, x := range []*Xfer{r, s} {
				if !x.Done() || !errors.Is(x.Err, ErrTransport) {
					t.Fatalf("send=%v: stage %s, error %v, want %v", x.Send, x.Stage(), x.Err, ErrTransport)
				}
			}
			for rank, n := range j.nodes {
				if len(n.mem.regs) != 0 {
					t.Fatalf("rank %d leaves %d regions registered", rank, len(n.mem.regs))
				}
			}
		})
	}
}

// A failed push ends the send.
func TestPushFails(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 8, Rendezvous: "coop"}, 4)
	s := j.send(0, 1, 5, 20, Standard)
	j.failWork(0, 0, rdma.StatusFault)
	if !s.Done() || !errors.Is(s.Err, ErrTransport) || len(j.nodes[0].mem.regs) != 0 {
		t.Fatalf("stage %s, error %v, %d regions", s.Stage(), s.Err, len(j.nodes[0].mem.regs))
	}
	r := j.recv(1, 0, 5, 20)
	j.drain()
	if !errors.Is(r.Err, ErrTransport) {
		t.Fatalf("the receive pulls from a region that is gone: stage %s, error %v", r.Stage(), r.Err)
	}
}

// An inline packet that the device could not send fails the send.
func TestEagerPacketFails(t *testing.T) {
	for _, mode := range []Mode{Standard, Synchronous} {
		for _, taken := range []bool{false, true} {
			j := newJob(t, 2, Config{}, 0)
			j.slow = true
			s := j.send(0, 1, 5, 20, mode)
			if taken {
				j.take(0, 1)
			}
			j.nodes[0].m.HandleCompletion(s.Handle(), rdma.StatusPeerGone, 0)
			if ended := mode == Standard && taken; !s.Done() || (s.Err == nil) != ended {
				t.Fatalf("mode %d, taken %v: stage %s, error %v", mode, taken, s.Stage(), s.Err)
			}
		}
	}
}

// A refused registration fails the operation, and the other side is notified if it waits.
func TestRegistrationRefused(t *testing.T) {
	for _, way := range ways[2:] {
		for _, keys := range []bool{false, true} {
			for refuser := range 2 {
				t.Run(fmt.Sprintf("%s/localkeys=%v/rank=%d", way.name, keys, refuser), func(t *testing.T) {
					j := newJob(t, 2, way.cfg, 4)
					j.attr.LocalKeys = keys
					j.nodes[refuser].mem.refuse = true
					s := j.send(0, 1, 5, way.size, Standard)
					var r *Xfer
					if s.Err == nil {
						r = j.recv(1, 0, 5, way.size)
					}
					j.drain()
					needs := map[string][2]bool{ // which side registers: sender, receiver
						"get": {true, keys}, "put": {keys, true}, "coop": {true, keys}, "spec": {true, keys}}[way.name]
					if needs[refuser] {
						if !errors.Is(s.Err, ErrTransport) || (r != nil && !errors.Is(r.Err, ErrTransport)) {
							t.Fatalf("send: %s, %v; receive: %+v", s.Stage(), s.Err, r)
						}
						x := s
						if refuser == 1 {
							x = r
						}
						if !errors.Is(x.Err, errNoMemory) {
							t.Fatalf("the error %v should name its cause, %v", x.Err, errNoMemory)
						}
					} else {
						j.sent(s, "nothing had to be registered")
						j.got(r, 0, 5, way.size, "nothing had to be registered")
					}
					if j.nodes[0].links[1].Err != nil || j.nodes[1].links[0].Err != nil {
						t.Fatal("the link is still good")
					}
					j.clean()
				})
			}
		}
	}
}

// After a peer has failed, its complete messages can be received; incomplete or only
// announced ones cannot, and no receive waits for them.
func TestMessagesOfFailedPeer(t *testing.T) {
	for _, taken := range []bool{false, true} {
		j := newJob(t, 3, Config{EagerLimit: 16, Rendezvous: "get"}, 4)
		j.send(0, 1, 1, 3, Synchronous) // whole
		j.send(0, 1, 2, 10, Standard)   // three packets, of which two arrive
		j.deliver(0, 1, 0)
		j.deliver(0, 1, 0)
		j.deliver(0, 1, 0)
		j.send(2, 1, 4, 20, Standard) // from another peer
		j.drain2(2, 1)
		m := j.nodes[1].m
		var g *Msg
		if taken {
			g = m.Take(0, 0, 2)
			if g == nil || g.Total != 10 {
				t.Fatalf("mprobe found %+v", g)
			}
		}
		m.FailLink(j.nodes[1].links[0], errGone)
		r := j.recv(1, 0, 1, 3)
		j.got(r, 0, 1, 3, "a message that had come whole")
		if len(j.wire(1, 0).inFlight) != 0 {
			t.Fatal("nothing is sent to a peer that is gone")
		}
		if taken {
			r = m.New()
			r.Buf = make([]byte, 10)
			m.Claim(r, g)
		} else {
			r = j.recv(1, 0, 2, 10)
		}
		if !errors.Is(r.Err, errGone) {
			t.Fatalf("taken %v: a message that had come in part: stage %s, error %v", taken, r.Stage(), r.Err)
		}
		r = j.recv(1, AnySource, AnyTag, 20)
		j.drain()
		j.got(r, 2, 4, 20, "the other peer's message")
		s := j.send(1, 0, 5, 3, Standard)
		if !errors.Is(s.Err, errGone) {
			t.Fatalf("a send to a peer that is gone: stage %s, error %v", s.Stage(), s.Err)
		}
		if j.nodes[1].m.SendNow(j.nodes[1].links[0], 0, 1, 5, nil) {
			t.Fatal("SendNow to a peer that is gone")
		}
		late := &Link{Attr: &j.attr, Err: errGone}
		for _, l := range []*Link{j.nodes[1].links[0], late} {
			m.SetUp(late)
			if m.SendNow(l, 0, 1, 5, nil) || m.SendOne(l, 0, 1, 5, nil) != nil {
				t.Fatal("a fast path to a peer that is gone")
			}
		}
	}
}

// drain2 delivers the packets from one rank to another.
func (j *job) drain2(from, to int) {
	for len(j.wire(from, to).inFlight) > 0 {
		j.deliver(from, to, 0)
	}
}

// After the job has failed, further segments of a message whose receive was ended are
// dropped, and the next message is complete.
func TestSegmentsOfEndedReceive(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 64}, 4)
	r := j.recv(1, 0, 5, 10)
	j.send(0, 1, 5, 10, Standard)
	j.deliver(0, 1, 0)
	j.pending(r, "partial", "one of three segments is here")
	j.nodes[1].m.Fail(errGone)
	if r.Err != errGone {
		t.Fatalf("error is %v", r.Err)
	}
	before := string(r.Buf)
	j.drain()
	if string(r.Buf) != before {
		t.Fatal("a segment was written into the buffer of a receive that had ended")
	}
	r = j.recv(1, 0, 6, 10)
	j.send(0, 1, 6, 10, Standard)
	j.drain()
	j.got(r, 0, 6, 10, "the next message")
	j.clean()
}

// cancel reports whether a receive was cancelled, or will be.
func cancel(m *Machine, x *Xfer) bool {
	cancelled, pending := m.Cancel(x)
	return cancelled || pending
}

func TestCancel(t *testing.T) {
	eachWay(t, func(t *testing.T, j *job, size int) {
		r := j.recv(1, AnySource, AnyTag, size)
		if m := j.nodes[1].m; !cancel(m, r) || !r.Done() || !r.Cancelled || cancel(m, r) {
			t.Fatal("a receive that waits can be cancelled, once")
		}
		s := j.send(0, 1, 5, size, Synchronous)
		if cancel(j.nodes[0].m, s) {
			t.Fatal("a send cannot be cancelled")
		}
		j.drain()
		r = j.recv(1, 0, 5, size)
		if !r.Done() && cancel(j.nodes[1].m, r) {
			t.Fatal("a receive that has met its message cannot be cancelled")
		}
		j.drain()
		j.got(r, 0, 5, size, "the receive after a cancelled one")
		j.sent(s, "its send")
		j.clean()
	})
}

func TestRefuse(t *testing.T) {
	j := newJob(t, 2, Config{}, 0)
	m := j.nodes[0].m
	x := m.New()
	x.Owner = &Waiter{}
	m.Refuse(x, errGone)
	if !x.Done() || x.Err != errGone || len(m.Out.Done) != 1 {
		t.Fatalf("stage %s, error %v, %d reported", x.Stage(), x.Err, len(m.Out.Done))
	}
}
