package iwarp

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// A queue pair: one TCP connection. connect.go establishes it, send.go and receive.go
// transfer data; this file has the common parts, and the end.

type queuePair struct {
	dev    *device
	id     ddp.StreamID
	name   rdma.PeerID // of the peer, for completions
	token  uint64      // identifies the queue pair to its peer
	addr   rdma.Addr
	sendCQ *completionQueue
	recvCQ *completionQueue
	recvs  *receiveQueue
	state  pairState
	reason rdma.Status // status of work on a broken queue pair
	cause  error       // why the connection ended, nil if it is unknown
	fd     conn
	watch  uint32 // the events watched for
	stream *ddp.Stream
	terms  terms

	peer    rdma.Addr // the expected peer
	bound   bool      // by Connect; else by the peer that has connected
	greeted bool      // it has connected, and is in the handshake
	early   bool      // it takes work before it is connected
	secret  *secret   // nil: the connection is not encrypted
	works   workRing
	out     outbound
	in      inbound
	closing bool  // by the user
	marks   marks // for Config.Retain
}

type pairState uint8

const (
	unconnected pairState = iota
	connected
	terminating // a Terminate is being sent, nothing else
	draining    // the Terminate was sent; input is discarded until the peer closes
	broken
	closed
)

func (d *device) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q, err := d.newQPLocked(cfg)
	if err != nil {
		return nil, err
	}
	return q, nil
}

func (d *device) newQPLocked(cfg rdma.QPConfig) (*queuePair, error) {
	send, recv, srq, err := soft.QueuesOf[*completionQueue, *receiveQueue](&d.Device, &cfg, rdma.RC)
	if err != nil {
		return nil, err
	}
	q := &queuePair{dev: d, fd: noConn(), name: cfg.Peer, sendCQ: send, recvCQ: recv, recvs: srq}
	if srq == nil {
		q.recvs = d.newReceiveQueue()
		if err := d.OpenOwn(&q.recvs.SRQ); err != nil {
			return nil, err
		}
	}
	depth := cfg.Depth
	if depth <= 0 {
		depth = defaultDepth
	}
	q.works.depth = depth
	var token [8]byte
	if _, err := rand.Read(token[:]); err != nil {
		return nil, fmt.Errorf("iwarp: no random number for the address of a queue pair: %w", err)
	}
	q.setToken(binary.BigEndian.Uint64(token[:]))
	d.last++
	q.id = d.last
	d.queues = append(d.queues, q)
	return q, nil
}

func (q *queuePair) setToken(token uint64) {
	q.token = token
	q.addr = rdma.Addr(fmt.Sprintf("%s/%016x", q.dev.listener.at, token))
}

func (q *queuePair) Addr() rdma.Addr { return q.addr }

// Pending returns the number of requests that the socket has not accepted completely.
func (q *queuePair) Pending() int {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	return int(q.works.first+uint64(q.works.count)-max(q.out.freed, q.works.first)) + q.fd.unsent()
}

// attach assigns an established connection to this queue pair.
func (q *queuePair) attach(fd conn, t terms, initiator bool) error {
	q.dev.cfg.setTimeouts(fd)
	if err := q.dev.StartThread(); err != nil {
		return err
	}
	q.fd, q.terms, q.state = fd, t, connected
	q.dev.sockets.add(q)
	q.stream = ddp.NewStream(ddp.Config{Table: q.dev.Table, Domain: soft.Domain, ID: q.id, Buffers: q,
		Inbound: int(t.ird), Outbound: int(t.ord)})
	q.out.start(t, segmentFor(q.frameLimit(), t.markersOut), q.dev.cfg.Segment)
	if q.secret != nil {
		q.out.most = mostSummed
	}
	// RFC 5044 section 7.1.2: the responder is silent until it has received an FPDU.
	q.out.mute = !initiator
	q.out.ready = initiator && t.ready != 0
	q.in.start(t)
	q.watchFor(readEvent)
	return nil
}

// frameLimit returns the longest frame for the peer. It fits a TCP segment, so that an
// adapter can place each segment on its own (RFC 5044). A peer of this package
// reads a stream, and one long frame costs it less than many short ones.
func (q *queuePair) frameLimit() int {
	if _, _, ours, err := parseAddr(q.peer); ours && err == nil {
		return fpduMax
	}
	return q.fd.maxSegment()
}

// progress sends and receives what is possible now.
func (q *queuePair) progress() {
	if q.fd.none() {
		return
	}
	q.in.completed = false
	q.receive()
	// The user may answer what has come by a request, which would wait behind a response that
	// the socket has taken: two ranks that exchange long messages would do so one by one.
	q.out.deferred = q.in.completed && !q.out.deferred && q.state == connected && q.stream.ResponsesPending()
	q.transmit()
	q.out.burst = 0
	q.rewatch()
}

// runnable reports whether progress may do something without an event of the socket.
func (q *queuePair) runnable() bool {
	if q.out.holding || q.out.deferred {
		return true
	}
	if q.in.starved {
		return !q.fd.none() && q.recvs.Supplies()
	}
	return !q.fd.none() && (q.in.unread || q.fd.ready(q.watch))
}

// rewatch registers the events that Wait is to wait for.
func (q *queuePair) rewatch() {
	if q.fd.none() {
		return
	}
	var want uint32
	if !q.in.starved && q.state != terminating { // otherwise nothing would read
		want |= readEvent
	}
	if q.out.blocked {
		want |= writeEvent
	}
	q.watchFor(want)
}

func (q *queuePair) watchFor(want uint32) {
	q.dev.sockets.watch(q.fd, q.watch, want)
	q.watch = want
}

// fault ends the stream because of something the peer sent: RFC 5040 section 5.4 requires
// that the peer is informed of the reason. The faulty segment begins with raw.
func (q *queuePair) fault(f ddp.Fault, raw []byte, size int) {
	q.countRefusedWrite(f, raw, size)
	q.cause = explainFault(f)
	m, t, ok := q.stream.Terminate(f, raw, size)
	if !ok || q.state != connected {
		q.lose(rdma.StatusFault)
		return
	}
	q.state, q.reason = terminating, rdma.StatusFault
	q.out.terminate(m, &t)
	q.flush(f)
	q.transmit()
}

// lose ends the connection without a Terminate.
func (q *queuePair) lose(why rdma.Status) {
	if q.state >= draining {
		q.closeSocket()
		q.state = broken
		q.reportDisconnect()
		return
	}
	q.reason = why
	q.closeSocket()
	q.state = broken
	q.flushReceives(ddp.NoFault)
	if !q.retained() {
		q.flushWorks()
	}
	q.reportDisconnect()
}

// abandon ends a queue pair that could not be connected, with the work that waits for it.
func (q *queuePair) abandon() {
	q.state, q.reason = broken, rdma.StatusPeerGone
	q.flushWorks()
	q.reportDisconnect()
}

// reportDisconnect reports the end of the connection, also to a user that only receives. If
// the peer has refused an access of ours, that does not count against it (see strikes.go).
func (q *queuePair) reportDisconnect() {
	if !q.closing {
		q.recvCQ.Push(rdma.Completion{Peer: q.name, Op: rdma.OpDisconnected, Status: q.workStatus(rdma.OpSend)})
	}
}

// flush completes all work with the reason why the connection ended.
func (q *queuePair) flush(f ddp.Fault) {
	q.flushReceives(f)
	q.flushWorks()
}

// flushReceives returns an interrupted receive, with the status that matches the fault.
func (q *queuePair) flushReceives(f ddp.Fault) {
	q.stream.Flush(func(wr rdma.RecvWR) {
		switch status := rdma.StatusFault; {
		case q.recvs.Lends:
			lentBuffer{queue: q.recvs, id: wr.ID}.end()
		default:
			if f == ddp.FaultTooLong {
				status = rdma.StatusTooLong
			}
			q.recvCQ.Push(rdma.Completion{ID: wr.ID, Peer: q.name, Op: rdma.OpRecv, Status: status})
		}
	}, func(uint64, bool) {})
}

// flushWorks completes the remaining work.
func (q *queuePair) flushWorks() {
	for q.works.count > 0 {
		if w := q.works.at(q.works.first); !w.done {
			q.complete(w, q.workStatus(w.op), 0)
		}
		q.works.retire(q.dev)
	}
}

// workStatus returns the status of work on a broken queue pair. A refused access breaks
// the connection (RFC 5040 section 5.4): accesses then end with the refusal, messages with
// a fault.
func (q *queuePair) workStatus(op rdma.Op) rdma.Status {
	if q.reason == rdma.StatusRemoteAccess && op == rdma.OpSend {
		return rdma.StatusFault
	}
	return q.reason
}

// complete completes work. Successful inline work generates no completion.
func (q *queuePair) complete(w *work, status rdma.Status, n int) {
	w.done = true
	if w.flags&rdma.Inline != 0 && status == rdma.StatusOK {
		return
	}
	q.sendCQ.Push(rdma.Completion{ID: w.id, Peer: q.name, Op: w.op, Status: status, Len: uint64(n)})
}

// closeSocket closes the socket.
func (q *queuePair) closeSocket() {
	q.release()
	if !q.fd.none() {
		q.watchFor(0)
		q.dev.sockets.remove(q)
		q.fd.close()
		q.fd = noConn()
	}
}

func (q *queuePair) Close() error {
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	q.close()
	return nil
}

func (q *queuePair) close() {
	if q.state == closed {
		return
	}
	q.closing = true
	if q.out.holding {
		q.transmit()
	}
	if q.stream != nil && q.state < draining {
		q.reason = rdma.StatusFlushed
		q.flush(ddp.NoFault)
	}
	if q.retained() || q.state == unconnected {
		q.reason = rdma.StatusFlushed
		q.flushWorks()
	}
	if q.state == connected {
		// Unread data would make TCP reset the connection, and the peer would lose what it
		// has not read of ours.
		q.fd.shutdown()
		q.state = draining
		q.discard()
	}
	q.closeSocket()
	q.state = closed
	q.dev.queues = slices.DeleteFunc(q.dev.queues, func(other *queuePair) bool { return other == q })
}
