package p2p

// Helpers for unit tests with two ranks.

import (
	"bytes"
	"testing"
)

// job is a world of a test.
type job struct {
	*world
	t    *testing.T
	lazy bool // for oneEvent
}

func newJob(t *testing.T, ranks int, cfg Config, segment int) *job {
	t.Helper()
	return &job{world: newWorld(ranks, cfg, testAttr(segment), 1<<16), t: t}
}

// owner is the Owner of every operation, so that its completion is reported.
func (j *job) start(rank int, x *Xfer) *Xfer {
	x.Owner = &Waiter{}
	if x.Send {
		j.nodes[rank].m.Send(x)
	} else {
		j.nodes[rank].m.Recv(x)
	}
	if !x.Send && j.cfg.Speculate == "always" {
		j.offer(rank, x)
	}
	j.settle(rank)
	return x
}

// offer makes a receive send its RTR and delivers it to the sender, with all earlier packets.
func (j *job) offer(rank int, x *Xfer) {
	j.nodes[rank].m.Offer(x)
	j.settle(rank)
	if x.stage != stageReady {
		return
	}
	wi := j.wire(rank, x.Link.Rank)
	for len(wi.wait) > 0 {
		j.take(rank, x.Link.Rank)
		j.settle(rank)
	}
	for len(wi.inFlight) > 0 {
		j.deliver(rank, x.Link.Rank, 0)
	}
}

// send starts a send of n bytes that are all tag+1, so that messages differ.
func (j *job) send(from, to, tag, n int, mode Mode) *Xfer {
	nd := j.nodes[from]
	x := nd.m.New()
	x.Buf, x.Link, x.Source, x.Tag, x.Mode, x.Send = nd.mem.buffer(n), nd.links[to], int32(from), int32(tag), mode, true
	for i := range x.Buf {
		x.Buf[i] = byte(tag + 1)
	}
	return j.start(from, x)
}

func (j *job) recv(at, src, tag, n int) *Xfer {
	nd := j.nodes[at]
	x := nd.m.New()
	x.Buf, x.Source, x.Tag = nd.mem.buffer(n), int32(src), int32(tag)
	if src != AnySource {
		x.Link = nd.links[src]
	}
	return j.start(at, x)
}

// got checks that a receive has completed with a message of send.
func (j *job) got(x *Xfer, src, tag, n int, why string) {
	j.t.Helper()
	if !x.Done() || x.Err != nil {
		j.t.Fatalf("%s: receive is in stage %s, error %v", why, x.Stage(), x.Err)
	}
	if int(x.Source) != src || int(x.Tag) != tag || x.Len != n {
		j.t.Fatalf("%s: got source %d, tag %d, %d bytes, want source %d, tag %d, %d bytes",
			why, x.Source, x.Tag, x.Len, src, tag, n)
	}
	if !bytes.Equal(x.Buf[:n], bytes.Repeat([]byte{byte(tag + 1)}, n)) {
		j.t.Fatalf("%s: wrong bytes %x", why, x.Buf[:n])
	}
}

// sent checks that a send has completed without an error.
func (j *job) sent(x *Xfer, why string) {
	j.t.Helper()
	if !x.Done() || x.Err != nil {
		j.t.Fatalf("%s: send is in stage %s, error %v", why, x.Stage(), x.Err)
	}
}

func (j *job) pending(x *Xfer, stage, why string) {
	j.t.Helper()
	if x.Stage() != stage {
		j.t.Fatalf("%s: stage is %s, want %s (error %v)", why, x.Stage(), stage, x.Err)
	}
}

// clean checks that all resources are released.
func (j *job) clean() {
	j.t.Helper()
	if j.fault != "" {
		j.t.Fatal("the device saw: " + j.fault)
	}
	for r, n := range j.nodes {
		if len(n.mem.regs) != 0 {
			j.t.Fatalf("rank %d leaves %d regions registered", r, len(n.mem.regs))
		}
		if n.mem.registered != n.mem.deregistered {
			j.t.Fatalf("rank %d registered %d and gave back %d regions", r, n.mem.registered, n.mem.deregistered)
		}
		if len(n.work) != 0 || n.m.CountUnexpected() != 0 {
			j.t.Fatalf("rank %d leaves %d requests and %d messages", r, len(n.work), n.m.CountUnexpected())
		}
		for _, l := range n.links {
			if len(l.held) != 0 || len(l.partial) != 0 {
				j.t.Fatalf("rank %d leaves %d held packets and %d partial messages of rank %d",
					r, len(l.held), len(l.partial), l.Rank)
			}
		}
	}
}

// ways are the protocols, as a configuration and a size.
var ways = []struct {
	name string
	cfg  Config
	size int
}{
	{"eager", Config{EagerLimit: 64}, 3},
	{"segments", Config{EagerLimit: 64}, 10},
	{"get", Config{EagerLimit: 8, Rendezvous: "get"}, 20},
	{"put", Config{EagerLimit: 8, Rendezvous: "put"}, 20},
	{"coop", Config{EagerLimit: 8, Rendezvous: "coop"}, 20},
	{"spec", Config{EagerLimit: 8, Speculate: "always"}, 20}, // with an early receive; otherwise get
}
