package p2p

import (
	"errors"
	"fmt"
	"testing"
)

// eachWay runs a test with every protocol, on devices with and without local keys.
func eachWay(t *testing.T, fn func(t *testing.T, j *job, size int)) {
	for _, way := range ways {
		for _, keys := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/localkeys=%v", way.name, keys), func(t *testing.T) {
				j := newJob(t, 2, way.cfg, 4)
				j.attr.LocalKeys = keys
				fn(t, j, way.size)
			})
		}
	}
}

func TestReceiveFirst(t *testing.T) {
	eachWay(t, func(t *testing.T, j *job, size int) {
		r := j.recv(1, 0, 5, size)
		s := j.send(0, 1, 5, size, Standard)
		j.drain()
		j.got(r, 0, 5, size, "a receive that was posted first")
		j.sent(s, "its send")
		j.clean()
	})
}

func TestSendFirst(t *testing.T) {
	eachWay(t, func(t *testing.T, j *job, size int) {
		s := j.send(0, 1, 5, size, Standard)
		j.drain()
		r := j.recv(1, AnySource, AnyTag, size+5)
		j.drain()
		j.got(r, 0, 5, size, "a receive that came late, with room to spare")
		j.sent(s, "its send")
		j.clean()
	})
}

// MPI-4.1 section 3.2.4: a receive that is too short gets the data that fits, and an error.
func TestTruncation(t *testing.T) {
	eachWay(t, func(t *testing.T, j *job, size int) {
		for _, early := range []bool{false, true} {
			for _, room := range []int{0, 1, size - 1} {
				var r *Xfer
				if early {
					r = j.recv(1, 0, 5, room)
				}
				s := j.send(0, 1, 5, size, Standard)
				j.drain()
				if !early {
					r = j.recv(1, 0, 5, room)
					j.drain()
				}
				j.sent(s, "the send does not care about the receiver's room")
				if !errors.Is(r.Err, ErrTruncated) || r.Len != room {
					t.Fatalf("room for %d of %d bytes: length %d, error %v", room, size, r.Len, r.Err)
				}
				r.Err = nil
				j.got(r, 0, 5, room, "what fits is delivered")
				j.clean()
			}
		}
	})
}

// A synchronous send completes only after its receive has started (MPI-4.1 section 3.4).
func TestSynchronous(t *testing.T) {
	eachWay(t, func(t *testing.T, j *job, size int) {
		s := j.send(0, 1, 5, size, Synchronous)
		j.drain()
		if s.Done() {
			t.Fatal("a synchronous send has ended without a receive")
		}
		r := j.recv(1, 0, 5, size)
		j.drain()
		j.got(r, 0, 5, size, "the receive of a synchronous message")
		j.sent(s, "a synchronous send that was matched")

		r = j.recv(1, 0, 6, size)
		s = j.send(0, 1, 6, size, Synchronous)
		j.drain()
		j.got(r, 0, 6, size, "a receive that waited for a synchronous message")
		j.sent(s, "a synchronous send to a receive that waited")
		j.clean()
	})
}

// An empty message is matched like any other, with every protocol.
func TestEmptyMessage(t *testing.T) {
	for _, force := range append(Rendezvous(), "") {
		for _, limit := range []int{8, -1} { // -1: not even empty messages are eager
			for _, mode := range []Mode{Standard, Synchronous} {
				j := newJob(t, 2, Config{EagerLimit: limit, Rendezvous: force}, 4)
				s1 := j.send(0, 1, 5, 0, mode)
				j.drain()
				r1 := j.recv(1, 0, 5, 10)
				r2 := j.recv(1, 0, 6, 0)
				s2 := j.send(0, 1, 6, 0, mode)
				j.drain()
				why := fmt.Sprintf("empty message, rendezvous %q, limit %d, mode %d", force, limit, mode)
				j.got(r1, 0, 5, 0, why)
				j.got(r2, 0, 6, 0, why)
				j.sent(s1, why)
				j.sent(s2, why)
				j.clean()
			}
		}
	}
}

// A synchronous message of several segments is acknowledged when the first has been matched.
// If the device has not copied the others by then, it still needs the buffer and the send
// must not complete.
func TestAckBeforeLastSegment(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 64}, 4)
	j.slow = true
	r := j.recv(1, 0, 5, 10)
	s := j.send(0, 1, 5, 10, Synchronous)
	j.take(0, 1)
	j.deliver(0, 1, 0)
	j.take(1, 0)
	j.deliver(1, 0, 0)
	j.pending(s, "acked", "the ACK is here, two segments are not taken")
	j.drain()
	j.sent(s, "all segments are taken")
	j.got(r, 0, 5, 10, "its receive")
	j.clean()
}

// A link to the rank itself works like any other.
func TestSelf(t *testing.T) {
	eachWay(t, func(t *testing.T, j *job, size int) {
		s := j.send(0, 0, 5, size, Standard)
		r := j.recv(0, 0, 5, size)
		j.drain()
		j.got(r, 0, 5, size, "a message to oneself")
		j.sent(s, "its send")
		j.clean()
	})
}

// The packets of a message that a full device rejects wait in the engine; the stateless send
// is then adopted and completes with the last of them.
func TestAdopt(t *testing.T) {
	j := newJob(t, 2, Config{EagerLimit: 64}, 4)
	j.slow = true
	n := j.nodes[0]
	buf := n.mem.buffer(10)
	if !n.m.SendNow(n.links[1], 0, 0, 5, buf) {
		t.Fatal("a short message with credit can be sent without state")
	}
	j.settle(0)
	x := n.m.Adopt(n.links[1])
	wait := j.wire(0, 1).wait
	wait[len(wait)-1].ID = x.Handle()
	j.take(0, 1)
	j.take(0, 1)
	j.pending(x, "post", "one segment is left")
	j.take(0, 1)
	j.sent(x, "the last segment was taken")
	r := j.recv(1, 0, 5, 10)
	j.drain()
	if !r.Done() || r.Len != 10 {
		t.Fatalf("the receive is in stage %s with %d bytes", r.Stage(), r.Len)
	}
	j.clean()
}
