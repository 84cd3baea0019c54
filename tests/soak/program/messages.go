package program

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/muster-mpi/muster/mpi"
)

// message is one message of a step.
type message struct {
	from, to, tag, size, mode int
	value                     uint64
}

const tags = 3

// Modes of a send. Those from blocking on need a receive that is posted early.
const (
	isend = iota
	issend
	ibsend
	bsend
	sendInit
	ssendInit
	blocking
	send = iota - 1
	ssend
	irsend
	modes
)

// Ways to receive.
const (
	posted    = iota // before the sends
	wildcards        // the same, from any source and with any tag
	late             // after the sends
	matched          // by matched probes
	probed           // by probes
	ways
)

// messages sends random messages among the ranks of a group. All sends of a rank are started
// before it waits for one, unless all receives are posted early.
func (r *run) messages(random *rand.Rand, g *group) error {
	list := r.plan(random, g)
	me := g.comm.Rank()
	var in, out []message
	for _, m := range list.messages {
		if m.to == me {
			in = append(in, m)
		}
		if m.from == me {
			out = append(out, m)
		}
	}
	order := rand.New(rand.NewPCG(uint64(r.key(g)), uint64(me)))
	way := list.way
	if way == ways {
		way = late + order.IntN(ways-late)
	}
	r.at = fmt.Sprintf("messages on %s, receives %d", g.comm.Name(), way)
	early := way == posted || way == wildcards
	var receives []mpi.Request
	var buffers [][]byte
	if early {
		receives, buffers = r.post(g, in, way == wildcards)
		if list.ready { // ready sends need posted receives
			if err := g.comm.Barrier(); err != nil {
				return err
			}
		}
	}
	sends, err := r.send(g, out)
	if err != nil {
		return err
	}
	switch way {
	case posted:
		err = r.complete(receives, in, buffers, order)
	case wildcards:
		err = r.completeWildcards(receives, in, buffers)
	case late:
		err = receiveLate(g, in)
	default:
		err = receiveProbed(g, in, way)
	}
	if err != nil {
		return err
	}
	if err = mpi.WaitAll(sends...); err != nil || list.way == posted {
		return err
	}
	// A receive from any source must not match a message of the next step.
	return g.comm.Barrier()
}

// exchange is the messages of a step.
type exchange struct {
	messages []message
	way      int  // of all ranks; ways: each as it likes
	ready    bool // sends begin when all receives are posted, and may block
}

func (r *run) plan(random *rand.Rand, g *group) exchange {
	key := r.key(g)
	// The parts of a split communicator have different messages.
	own := rand.New(rand.NewPCG(random.Uint64(), uint64(key)))
	x := exchange{way: own.IntN(ways + 2), messages: make([]message, 1+own.IntN(24))}
	first, last := isend, blocking
	if x.way > wildcards {
		x.way = ways
	} else if x.ready = own.IntN(2) == 0; x.ready {
		first, last = blocking, modes
	}
	n := g.comm.Size()
	for i := range x.messages {
		m := message{own.IntN(n), own.IntN(n), own.IntN(tags), size(own, r.cfg.Largest), first + own.IntN(last-first), mix(key, i)}
		x.messages[i] = m
	}
	return x
}

// post starts the receives of a rank.
func (r *run) post(g *group, in []message, wildcards bool) (requests []mpi.Request, buffers [][]byte) {
	longest := 0
	for _, m := range in {
		longest = max(longest, m.size)
	}
	for _, m := range in {
		n, src, tag := m.size, m.from, m.tag
		if wildcards {
			n, src, tag = longest, mpi.AnySource, mpi.AnyTag
		}
		buf := newBuffer(n)
		q := mpi.Irecv(g.comm, buf, src, tag)
		buffers, requests, r.pending = append(buffers, buf), append(requests, q), append(r.pending, q)
	}
	return requests, buffers
}

// send starts the sends of a rank, and completes those that block.
func (r *run) send(g *group, out []message) (requests []mpi.Request, err error) {
	for _, m := range out {
		buf := make([]byte, m.size)
		fill(buf, m.value)
		var q mpi.Request
		switch m.mode {
		case isend:
			q = mpi.Isend(g.comm, buf, m.to, m.tag)
		case issend:
			q = mpi.Issend(g.comm, buf, m.to, m.tag)
		case ibsend:
			q = mpi.Ibsend(g.comm, buf, m.to, m.tag)
		case sendInit:
			q = mpi.SendInit(g.comm, buf, m.to, m.tag).Start()
		case ssendInit:
			q = mpi.SsendInit(g.comm, buf, m.to, m.tag).Start()
		case irsend:
			q = mpi.Irsend(g.comm, buf, m.to, m.tag)
		case bsend:
			err = mpi.Bsend(g.comm, buf, m.to, m.tag)
			clear(buf)
		case send:
			err = mpi.Send(g.comm, buf, m.to, m.tag)
			clear(buf)
		case ssend:
			err = mpi.Ssend(g.comm, buf, m.to, m.tag)
			clear(buf)
		}
		if err != nil {
			return nil, err
		}
		if q.Active() {
			requests, r.pending = append(requests, q), append(r.pending, q)
		}
	}
	return requests, nil
}

func (m message) check(buf []byte, st mpi.Status) error {
	what := fmt.Sprintf("message from %d with tag %d", m.from, m.tag)
	if st.Source != m.from || st.Tag != m.tag {
		return wrong("%s has the status %+v", what, st)
	}
	return checkBytes(buf, st.Bytes, m.size, m.value, what)
}

// complete completes receives with given sources and tags, in one of several ways.
func (r *run) complete(requests []mpi.Request, in []message, buffers [][]byte, order *rand.Rand) error {
	ways := 4
	if r.cfg.Blocking {
		ways = 3
	}
	switch order.IntN(ways) {
	case 0:
		for done, err := range mpi.Completions(context.Background(), requests) {
			if err != nil {
				return err
			}
			if err := in[done.Index].check(buffers[done.Index], done.Status); err != nil {
				return err
			}
		}
	case 1:
		for range requests {
			i, st, err := mpi.WaitAny(requests...)
			if err != nil {
				return err
			}
			if err := in[i].check(buffers[i], st); err != nil {
				return err
			}
		}
	case 2:
		for left := len(requests); left > 0; {
			some, err := mpi.WaitSome(requests...)
			if err != nil {
				return err
			}
			for _, s := range some {
				if err := in[s.Index].check(buffers[s.Index], s.Status); err != nil {
					return err
				}
			}
			left -= len(some)
		}
	default:
		for i, q := range requests {
			st, done, err := q.Test()
			for ; !done && err == nil; st, done, err = q.Test() {
				runtime.Gosched()
			}
			if err != nil {
				return err
			}
			if err := in[i].check(buffers[i], st); err != nil {
				return err
			}
		}
	}
	return nil
}

// next finds the message that a status belongs to, the first of its source and tag, and
// removes it: messages of one source do not overtake each other (MPI-4.1, section 3.5).
func next(in *[]message, st mpi.Status) (message, error) {
	for i, m := range *in {
		if m.from == st.Source && m.tag == st.Tag {
			*in = append((*in)[:i:i], (*in)[i+1:]...)
			return m, nil
		}
	}
	return message{}, wrong("a message with the status %+v, which nobody sent", st)
}

func (r *run) completeWildcards(requests []mpi.Request, in []message, buffers [][]byte) error {
	for i, q := range requests { // in the order in which they were posted
		st, err := q.Wait()
		if err != nil {
			return err
		}
		m, err := next(&in, st)
		if err == nil {
			err = m.check(buffers[i], st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func receiveLate(g *group, in []message) error {
	for _, m := range in {
		buf := newBuffer(m.size)
		st, err := mpi.Recv(g.comm, buf, m.from, m.tag)
		if err != nil {
			return err
		}
		if err := m.check(buf, st); err != nil {
			return err
		}
	}
	return nil
}

func receiveProbed(g *group, in []message, way int) error {
	for range len(in) {
		var st mpi.Status
		var buf []byte
		if way == matched {
			found, probe, err := g.comm.Mprobe(mpi.AnySource, mpi.AnyTag)
			if err != nil {
				return err
			}
			buf = newBuffer(probe.Bytes)
			if st, err = mpi.Mrecv(found, buf); err != nil {
				return err
			}
		} else {
			probe, err := g.comm.Probe(mpi.AnySource, mpi.AnyTag)
			if err != nil {
				return err
			}
			buf = newBuffer(probe.Bytes)
			if st, err = mpi.Recv(g.comm, buf, probe.Source, probe.Tag); err != nil {
				return err
			}
		}
		m, err := next(&in, st)
		if err == nil {
			err = m.check(buf, st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shift sends to the rank at a distance and receives from the one at the same distance.
func (r *run) shift(random *rand.Rand, g *group) error {
	key, n, me := r.key(g), g.comm.Size(), g.comm.Rank()
	own := rand.New(rand.NewPCG(random.Uint64(), uint64(key)))
	distance, bytes, form := own.IntN(n), size(own, r.cfg.Largest), own.IntN(4)
	to, from := (me+distance)%n, (me-distance+n)%n
	in, out := newBuffer(bytes), make([]byte, bytes)
	fill(out, mix(key, me))
	var st mpi.Status
	var err error
	switch form {
	case 0:
		st, err = mpi.Sendrecv(g.comm, out, to, 1, in, from, 1)
	case 1:
		q := mpi.Isendrecv(g.comm, out, to, 1, in, from, 1)
		r.pending = append(r.pending, q)
		st, err = q.Wait()
	default:
		copy(in, out)
		if form == 2 {
			st, err = mpi.SendrecvReplace(g.comm, in[:bytes], to, 1, from, 1)
		} else {
			q := mpi.IsendrecvReplace(g.comm, in[:bytes], to, 1, from, 1)
			r.pending = append(r.pending, q)
			st, err = q.Wait()
		}
	}
	if err != nil {
		return err
	}
	return checkBytes(in, st.Bytes, bytes, mix(key, from), fmt.Sprintf("message from %d, form %d", from, form))
}

// sendParts sends a message in parts to the next rank.
func (r *run) sendParts(random *rand.Rand, g *group) error {
	key, n, me := r.key(g), g.comm.Size(), g.comm.Rank()
	own := rand.New(rand.NewPCG(random.Uint64(), uint64(key)))
	parts := 1 + own.IntN(8)
	bytes := parts * min(size(own, r.cfg.Largest/parts), 50_000)
	if n < 2 || bytes == 0 {
		return nil
	}
	in, out := newBuffer(bytes), make([]byte, bytes)
	send := mpi.PsendInit(g.comm, out, parts, (me+1)%n, 2)
	recv := mpi.PrecvInit(g.comm, in[:bytes], parts, (me+n-1)%n, 2)
	r.drains = append(r.drains, func() { _, _ = send.Wait() }, func() { _, _ = recv.Wait() })
	for round := range 1 + own.IntN(3) {
		if err := recv.Start(); err != nil {
			return err
		}
		if err := send.Start(); err != nil {
			return err
		}
		fill(out, mix(key, me, round))
		for _, p := range own.Perm(parts) {
			if err := send.Ready(p); err != nil {
				return err
			}
		}
		if _, err := recv.Wait(); err != nil {
			return err
		}
		if _, err := send.Wait(); err != nil {
			return err
		}
		if err := checkBytes(in, bytes, bytes, mix(key, (me+n-1)%n, round), fmt.Sprintf("message in %d parts", parts)); err != nil {
			return err
		}
	}
	return nil
}
