package hybrid

// How two peers change between datagrams and a connection. This is one end of it, a state
// machine: want and leave come from the policy, heard from the peer, connected, fenced and
// broke from the devices; what is to be done then goes into steps, in order.
//
// Setting up. One end offers with the address of its queue pair, the other accepts with
// its own, both connect, and each tells the other that it is ready. Offers that cross are
// settled by rank: the end that is first ignores the other's.
//
// Moving. Each direction moves by itself, because only its sender knows what it has under
// way and only its receiver knows what it has seen:
//
//	fence   The sender takes no more work for that peer, and reads nothing from it over
//	        the old path. Both paths are ordered and answer in order, so when that Read
//	        ends, all before it has been delivered and all Writes are placed.
//	moved   It reports how many messages it has ever sent over the old path.
//	seen    The receiver answers when its user was shown that many. A fence is not
//	        enough: what was delivered may still lie in a queue of the old device, and the
//	        user of two queues would be shown what came over the new path first.
//
// Then the sender goes on over the new path. Nothing is ever held back at the receiver, so
// no message needs memory there that the devices have not promised. The price is two round
// trips in which that peer gets ErrAgain; moves are rare.
//
// Going back. Either end says down, both move their directions, and each closes its queue
// pair when both are back: then nobody has anything under way on it.
//
// Breaking. A connection may end for reasons of its own: a refused access ends it by rule
// (RFC 5040 section 5.4), a cable may be cut. TCP gives the receiver a prefix of what was
// sent, so one number settles what has arrived. Both ends empty their queues and tell each
// other how many messages they have ever got over connections. Each end then repeats by
// datagram what the other has not got (replay.go), and the peers go on with datagrams as if
// nothing had been. Only if a message is missing that was not kept is the peer given up.
// One end may be the only one that notices: a reset by a firewall reaches the sender of a
// packet alone. The other end learns of it by the first end's word.

// path is one of the two ways to a peer.
type path uint8

const (
	byDatagram path = iota
	byConnection
	paths
)

func (p path) other() path { return 1 - p }

// phase is how far the connection to a peer is.
type phase uint8

const (
	noConnection phase = iota // there is none
	offering                  // ours is offered
	connecting                // it is being set up
	awaiting                  // it is up here, and not yet known to be there
	joined                    // it carries messages, or is about to
	leaving                   // both go back to datagrams
	breaking                  // it broke, and its last messages are collected
	broken                    // the peer is to report what it has got
	replaying                 // what it has not got is sent again, by datagram
	failed                    // messages were lost: the peer is given up
)

// kind is what ends tell each other.
type kind uint8

const (
	offer       kind = 1 + iota // with the address of a queue pair
	accept                      // with the address of a queue pair
	refuse                      // there is no room for another connection
	ready                       // the connection is up here
	setupFailed                 // it did not come up here
	moved                       // a direction has left a path, after so many messages
	seen                        // so many have been shown
	down                        // let us go back to datagrams
	ended                       // the connection broke, after so many messages were got
	noticeKinds
)

// step is something to be done.
type step struct {
	do    action
	path  path
	kind  kind
	epoch uint32
	count uint64
}

type action uint8

const (
	sendNotice action = iota // word, path and count to the peer
	open                     // make a queue pair
	connect                  // connect it to the one that the peer has named
	shut                     // close it, if there is one
	read                     // nothing, over path: a fence
	collect                  // what is left in the queues of the connection, then call collected
	replay                   // requests behind the message count, by datagram, then call replayed
)

// end is one end.
type end struct {
	phase phase
	first bool   // our offer wins over the peer's
	epoch uint32 // of the connection, or of the last one; words about others are stale

	// Our direction.
	path     path // that messages take
	moving   bool // away from it
	notified bool // the peer was told
	fences   [paths]uint16
	sent     [paths]uint64 // messages ever

	// The peer's direction.
	shown    [paths]uint64 // messages ever
	leaves   path          // that the peer leaves, after count
	pending  bool          // not all of count were shown
	count    uint64
	back     bool // it has left the connection
	isReady  bool // the peer's side is up
	lost     bool // the connection was lost before it carried anything
	isBroken bool // the peer's side is broken
	got      uint64
	dropped  uint64 // messages to the peer, the oldest, that cannot be sent again

	steps []step
}

func (e *end) todo(s step) { e.steps = append(e.steps, s) }

// notify tells the peer about the present connection.
func (e *end) notify(w kind, p path, count uint64) {
	e.todo(step{do: sendNotice, kind: w, path: p, epoch: e.epoch, count: count})
}

// blocked reports whether nothing can be sent to the peer for the moment.
func (e *end) blocked() bool {
	return e.moving || e.path == byConnection && e.phase != joined && e.phase != leaving
}

// want begins a connection.
func (e *end) want() {
	if e.phase != noConnection {
		return
	}
	e.begin(offering, e.epoch+1)
	e.notify(offer, 0, 0)
}

// begin is the state of a new connection.
func (e *end) begin(p phase, epoch uint32) {
	e.phase, e.epoch = p, epoch
	e.isReady, e.lost, e.isBroken, e.back, e.pending, e.moving, e.notified = false, false, false, false, false, false, false
	e.todo(step{do: open})
}

// leave ends a connection.
func (e *end) leave() {
	if e.phase == joined {
		e.notify(down, 0, 0)
		e.goBack()
	}
}

// received is a word of the peer, for its epoch. room says whether there may be another
// connection, for an offer.
func (e *end) received(w kind, epoch uint32, p path, count uint64, room bool) {
	if w == offer {
		e.offered(epoch, room)
		return
	}
	if w == ended && int32(epoch-e.epoch) < 0 {
		// The peer could not tell that we had closed it in peace, and we have offered
		// another one since. It waits for an answer, and takes no offer before.
		e.todo(step{do: sendNotice, kind: ended, epoch: epoch, count: e.shown[byConnection]})
		return
	}
	if epoch != e.epoch {
		return // of a connection that is no more
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
			e.leaves, e.count, e.pending = p, count, true
			e.reportSeen()
		}
	case seen:
		if e.moving && e.notified && p == e.path {
			e.arrive()
		}
	case down:
		if e.phase == joined {
			e.goBack()
		}
	case ended:
		e.peerBroke(count)
	}
}

// offered answers an offer.
func (e *end) offered(epoch uint32, room bool) {
	switch {
	case e.phase == offering && e.first:
		return // the peer will take ours
	case e.phase == offering:
		e.todo(step{do: shut})
	case e.phase != noConnection || !room:
		e.todo(step{do: sendNotice, kind: refuse, epoch: epoch})
		return
	}
	e.begin(connecting, epoch)
	e.notify(accept, 0, 0)
	e.todo(step{do: connect})
}

// carries reports whether the connection may carry messages of the peer.
func (e *end) carries() bool { return e.phase == joined || e.phase == leaving }

// connected reports whether the connection came up here.
func (e *end) connected(ok bool) {
	switch {
	case e.phase != connecting:
	case !ok:
		e.notify(setupFailed, 0, 0)
		e.drop()
	default:
		e.phase = awaiting
		if e.notify(ready, 0, 0); e.isReady {
			e.join()
		}
	}
}

// drop gives a connection up that has carried nothing, or nothing more.
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
	e.fence()
}

// goBack begins to move our direction to datagrams, now or when it has come to the
// connection.
func (e *end) goBack() {
	e.phase = leaving
	if !e.moving {
		e.fence()
	}
}

// fence takes the first step away from the present path.
func (e *end) fence() {
	e.moving, e.notified = true, false
	e.fences[e.path]++
	e.todo(step{do: read, path: e.path})
}

// fenced reports that a fence has ended.
func (e *end) fenced(p path, ok bool) {
	if e.fences[p] == 0 {
		return
	}
	e.fences[p]--
	if !e.moving || e.notified || p != e.path || e.fences[p] > 0 {
		return // of a move that came to nothing
	}
	switch {
	case ok:
		e.notified = true
		e.notify(moved, p, e.sent[p])
	case p == byConnection:
		e.broke()
	default: // not even datagrams reach it: work that is posted will find out why
		e.moving = false
		e.drop()
	}
}

// reportSeen tells the peer when all was shown that it sent before it moved.
func (e *end) reportSeen() {
	if !e.pending || e.shown[e.leaves] < e.count {
		return
	}
	e.pending = false
	e.notify(seen, e.leaves, 0)
	if e.leaves == byConnection {
		e.back = true
		e.closeWhenBack()
	}
}

// arrive goes on over the other path.
func (e *end) arrive() {
	e.path, e.moving = e.path.other(), false
	if e.phase != leaving {
		return
	}
	if e.path == byConnection {
		e.fence() // it was asked to leave while it came
		return
	}
	e.closeWhenBack()
}

// closeWhenBack closes the connection when both directions have left it.
func (e *end) closeWhenBack() {
	if e.phase == leaving && e.back && !e.moving && e.path == byDatagram {
		e.drop()
	}
}

// disconnected reports that the device has lost the connection. While it is being set up the
// peer may use it already, so that both break it when it is joined.
//
// When both have left it, the end that knows so first closes it, and the other one sees the
// end before the last word. Nothing is missing then: a fence has passed in each direction.
func (e *end) disconnected() {
	switch {
	case e.phase == connecting || e.phase == awaiting:
		e.lost = true
	case e.phase == leaving && e.back && e.notified:
		return
	}
	e.broke()
}

// broke reports that the connection is no more, though nobody wanted that.
func (e *end) broke() {
	if e.carries() {
		e.phase = breaking
		e.todo(step{do: collect})
	}
}

// collected reports that nothing more can come from a broken connection, and how many messages
// to the peer, the oldest of all, were not kept.
func (e *end) collected(dropped uint64) {
	if e.phase != breaking {
		return
	}
	e.phase, e.dropped = broken, dropped
	e.todo(step{do: shut})
	e.notify(ended, 0, e.shown[byConnection])
	e.settle()
}

// peerBroke is the peer's count of what it has got over connections.
func (e *end) peerBroke(got uint64) {
	e.isBroken, e.got = true, got
	switch {
	case e.carries():
		e.broke()
	case e.phase == broken:
		e.settle()
	case e.phase == noConnection: // here it had been closed in peace
		e.notify(ended, 0, e.shown[byConnection])
	}
}

// unreachable reports that words do not reach the peer any more, not by datagram.
func (e *end) unreachable() {
	if e.phase == noConnection || e.phase == failed {
		return
	}
	e.todo(step{do: shut})
	if e.phase = noConnection; e.moving || e.path == byConnection {
		e.phase = failed
	}
}

// settle sends again what the peer has not got, if all of it was kept.
func (e *end) settle() {
	if !e.isBroken {
		return
	}
	e.fences[byConnection], e.pending = 0, false
	if e.got < e.dropped || e.got > e.sent[byConnection] {
		e.phase = failed
		return
	}
	e.phase = replaying
	e.todo(step{do: replay, count: e.got})
}

// replayed goes on with datagrams.
func (e *end) replayed() {
	if e.phase != replaying {
		return
	}
	e.sent[byConnection] = e.got
	e.path, e.moving, e.phase = byDatagram, false, noConnection
}
