package hybrid

// How two peers change between datagrams and a connection. This is one end of it, a state
// machine: want and leave are called by the policy, handleNotice for notices of the peer,
// handleConnect, endFence and handleDisconnect by the devices. The resulting actions are appended to
// steps, in order.
//
// Setup. One end offers with the address of its queue pair, the other accepts with its own,
// both connect, and each notifies the other that it is ready. If offers cross, the address
// decides: the end that is first ignores the other's offer.
//
// Moving. Each direction moves by itself, because only its sender knows its outstanding
// requests and only its receiver knows what it has delivered:
//
//	fence   The sender accepts no more work for that peer, and posts an empty Read by
//	        datagram. Datagrams are ordered and answered in order, so when that Read
//	        completes, everything before it has been delivered and all Writes are placed.
//	moved   The sender reports how many messages it has ever sent by datagram.
//	seen    The receiver answers when its user has received that many. A fence is not
//	        enough: what was delivered may still be in a queue of the old device, and the
//	        user of two queues would receive messages of the connection first.
//
// Then the sender continues over the connection. The receiver never holds messages back, so
// no message needs memory there that the devices have not promised. The price is two round
// trips during which requests to that peer return ErrAgain; moves are rare.
//
// Breaking. A connection may end unexpectedly: a refused access ends it by rule (RFC 5040
// section 5.4), a cable may be cut. TCP delivers a prefix of what was sent, so one number
// determines what has arrived. Both ends empty their queues and report how many messages they
// have ever received over connections. Each end then repeats by datagram what the other has
// not received (replay.go), and the peers continue with datagrams. The peer has failed only
// if a missing message was not kept. Only one end may notice: a reset by a firewall reaches
// only the sender of a packet. The other end learns of it by the first end's notice.
//
// Leaving. The end that wants to leave accepts no more work for the peer and sends down. The
// other end then breaks the connection, and everything else is as after a loss. The end that
// leaves must not close it by itself: its kernel could ack messages that it no longer reads,
// and the peer, which still sends, would not keep them.

// path is one of the two paths to a peer.
type path uint8

const (
	byDatagram path = iota
	byConnection
	paths
)

// phase is the state of the connection to a peer.
type phase uint8

const (
	noConnection phase = iota // no connection
	offering                  // we have offered one
	connecting                // it is being set up
	awaiting                  // established here, and not yet confirmed by the peer
	joined                    // it carries messages, or is about to
	leaving                   // the peer was asked to break it
	breaking                  // it broke, and its last messages are collected
	broken                    // waiting for the peer's count
	replaying                 // sending again by datagram what the peer has not received
	failed                    // messages were lost: the peer has failed
)

// kind is the kind of a notice.
type kind uint8

const (
	offer       kind = 1 + iota // with the address of a queue pair
	accept                      // with the address of a queue pair
	refuse                      // there is no room for another connection
	ready                       // the connection is established here
	setupFailed                 // it could not be established here
	moved                       // a direction has left datagrams, after count messages
	seen                        // all of them have been received
	down                        // break the connection
	ended                       // the connection has ended, after count messages were received
	noticeKinds
)

// step is an action to be carried out.
type step struct {
	do    action
	kind  kind
	epoch uint32
	count uint64
}

type action uint8

const (
	sendNotice action = iota // send kind and count to the peer
	open                     // create a queue pair
	connect                  // connect it to the one that the peer has named
	shut                     // close it, if there is one
	read                     // an empty Read by datagram: a fence
	collect                  // receive what is left in the queues of the connection, then call endCollect
	replay                   // repeat the requests after message count by datagram, then call endReplay
)

// end is the state machine of one end.
type end struct {
	phase   phase
	first   bool   // our offer wins over the peer's
	planned bool   // the connection ends because the policy of an end wants it
	epoch   uint32 // of the current connection, or of the last one; notices with another epoch are stale

	// Our direction.
	path   path // current path of messages
	moving bool // on the way from datagrams to the connection
	fences uint16
	sent   [paths]uint64 // messages ever sent

	// The peer's direction.
	shown    [paths]uint64 // messages ever received by the user
	count    uint64
	pending  bool // the peer leaves datagrams, and not all of count were received
	isReady  bool // the peer's side is established
	lost     bool // the connection was lost before it carried anything
	isBroken bool // the peer's side is broken
	got      uint64
	dropped  uint64 // the oldest messages to the peer that cannot be sent again

	steps []step
}

func (e *end) todo(s step) { e.steps = append(e.steps, s) }

// notify sends the peer a notice about the current connection.
func (e *end) notify(w kind, count uint64) {
	e.todo(step{do: sendNotice, kind: w, epoch: e.epoch, count: count})
}

// blocked reports whether nothing can be sent to the peer for the moment.
func (e *end) blocked() bool { return e.moving || e.path == byConnection && e.phase != joined }

// changes reports whether a change is in progress, which needs polls of both ends.
func (e *end) changes() bool {
	return e.moving || e.pending || e.phase != noConnection && e.phase != joined && e.phase != failed
}

// want requests a connection.
func (e *end) want() {
	if e.phase != noConnection {
		return
	}
	e.begin(offering, e.epoch+1)
	e.notify(offer, 0)
}

// begin resets the state for a new connection.
func (e *end) begin(p phase, epoch uint32) {
	e.phase, e.epoch = p, epoch
	e.isReady, e.lost, e.isBroken, e.planned, e.pending, e.moving = false, false, false, false, false, false
	e.todo(step{do: open})
}

// leave requests the end of a connection.
func (e *end) leave() {
	if e.phase == joined {
		e.phase, e.planned = leaving, true
		e.notify(down, 0)
	}
}

// handleNotice handles a notice of the peer. room reports whether another connection is
// possible, for an offer.
func (e *end) handleNotice(w kind, epoch uint32, count uint64, room bool) {
	if w == offer {
		e.answerOffer(epoch, room)
		return
	}
	if epoch != e.epoch {
		return // of an earlier connection
	}
	switch w {
	case accept:
		if e.phase == offering {
			e.phase = connecting
			e.todo(step{do: connect})
		}
	case refuse:
		if e.phase == offering {
			e.drop()
		}
	case ready:
		if e.isReady = true; e.phase == awaiting {
			e.join()
		}
	case setupFailed:
		if e.phase == connecting || e.phase == awaiting {
			e.drop()
		}
	case moved:
		if e.carries() {
			e.count, e.pending = count, true
			e.reportSeen()
		}
	case seen:
		if e.moving {
			e.path, e.moving = byConnection, false
		}
	case down:
		e.planned = e.planned || e.carries()
		e.broke()
	case ended:
		e.isBroken, e.got = true, count
		e.broke()
		e.settle()
	}
}

// answerOffer answers an offer.
func (e *end) answerOffer(epoch uint32, room bool) {
	switch {
	case e.phase == offering && e.first:
		return // the peer will accept ours
	case e.phase == offering:
		e.todo(step{do: shut})
	case e.phase != noConnection || !room:
		e.todo(step{do: sendNotice, kind: refuse, epoch: epoch})
		return
	}
	e.begin(connecting, epoch)
	e.notify(accept, 0)
	e.todo(step{do: connect})
}

// carries reports whether the connection may carry messages of the peer.
func (e *end) carries() bool { return e.phase == joined || e.phase == leaving }

// handleConnect handles the result of connecting.
func (e *end) handleConnect(ok bool) {
	switch {
	case e.phase != connecting:
	case !ok:
		e.notify(setupFailed, 0)
		e.drop()
	default:
		e.phase = awaiting
		if e.notify(ready, 0); e.isReady {
			e.join()
		}
	}
}

// drop closes a connection that has carried nothing.
func (e *end) drop() {
	e.todo(step{do: shut})
	e.phase = noConnection
}

// join begins to move our direction to the connection.
func (e *end) join() {
	e.phase = joined
	if e.lost {
		e.broke()
		return
	}
	e.moving = true
	e.fences++
	e.todo(step{do: read})
}

// endFence handles the completion of a fence.
func (e *end) endFence(ok bool) {
	if e.fences--; !e.moving || e.fences > 0 {
		return // of an abandoned move
	}
	if ok {
		e.notify(moved, e.sent[byDatagram])
		return
	}
	e.moving = false // not even datagrams reach it: posted requests will report why
	e.drop()
}

// reportSeen notifies the peer when the user has received everything sent before the move.
func (e *end) reportSeen() {
	if e.pending && e.shown[byDatagram] >= e.count {
		e.pending = false
		e.notify(seen, 0)
	}
}

// handleDisconnect handles the loss of the connection. While it is being set up the peer may
// use it already, so that both break it when it is joined.
func (e *end) handleDisconnect() {
	if e.phase == connecting || e.phase == awaiting {
		e.lost = true
	}
	e.broke()
}

// broke handles the end of the connection.
func (e *end) broke() {
	if e.carries() {
		e.phase = breaking
		e.todo(step{do: collect})
	}
}

// endCollect is called when nothing more can arrive from a broken connection. dropped is
// the number of messages to the peer, the oldest of all, that were not kept.
func (e *end) endCollect(dropped uint64) {
	if e.phase != breaking {
		return
	}
	e.phase, e.dropped = broken, dropped
	e.todo(step{do: shut})
	e.notify(ended, e.shown[byConnection])
	e.settle()
}

// settle sends again what the peer has not received, if all of it was kept.
func (e *end) settle() {
	if e.phase != broken || !e.isBroken {
		return
	}
	e.pending = false
	if e.got < e.dropped || e.got > e.sent[byConnection] {
		e.phase = failed
		return
	}
	e.phase = replaying
	e.todo(step{do: replay, count: e.got})
}

// endReplay continues with datagrams.
func (e *end) endReplay() {
	e.sent[byConnection] = e.got
	e.path, e.moving, e.phase = byDatagram, false, noConnection
}

// unreachable is called when notices no longer reach the peer.
func (e *end) unreachable() {
	if e.phase == noConnection || e.phase == failed {
		return
	}
	e.todo(step{do: shut})
	if e.phase = noConnection; e.moving || e.path == byConnection {
		e.phase = failed
	}
}
