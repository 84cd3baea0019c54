package p2p

// Notes, and contexts that were given up. A note is a short message about a context. It
// goes to the engine, not to a receive, as soon as it arrives. The engine uses notes to
// notify other ranks that the collectives of a communicator have failed.
//
// A context that has failed is given up: its receives fail, and messages for it are
// received and dropped, so that every send completes. A sender that waits for an answer
// still has its buffer registered, and a peer may be about to read it.

import "fmt"

// Note is a note that has arrived.
type Note struct {
	Link   *Link
	Ctx    uint32
	Source int32 // rank in the communicator
	Tag    int32
	Data   []byte
}

// MaxNote is the largest payload of a note: it fits into one packet of every device.
const MaxNote = 512

// Notify sends a note. Data beyond what one packet carries is truncated.
func (m *Machine) Notify(l *Link, ctx uint32, src, tag int32, data []byte) {
	if l.Err != nil {
		return
	}
	data = data[:min(len(data), l.segment, MaxNote)]
	n := len(m.Out.WR)
	m.emitEager(l, ctx, src, tag, data, 0, false)
	m.Out.WR[n].Head[offFlags] = flagNote
}

func (m *Machine) arriveNote(l *Link, p pattern, total int, data []byte) {
	if len(data) != total || total > MaxNote {
		m.failPeer(l, "it sends a note of more than one packet")
		return
	}
	l.Stats.Received++ // RTRs count messages (rndv_spec.go)
	l.Stats.BytesRx += uint64(total)
	m.consume(l, total)
	m.Out.Notes = append(m.Out.Notes, Note{l, p.ctx, p.src, p.tag, append([]byte(nil), data...)})
}

// compare records whether a message has the signature that its receive expects, and its
// vote.
func (x *Xfer) compare(sign uint32, vote uint8) {
	x.Vote = vote
	if sign != x.Sign {
		x.Differs, x.Sign = true, sign
	}
}

// TruncatedError reports that a message is longer than the receive buffer. It is ErrTruncated.
type TruncatedError struct{ Bytes, Room int }

func (t *TruncatedError) Error() string {
	return fmt.Sprintf("the message of %d bytes is longer than the receive buffer of %d bytes", t.Bytes, t.Room)
}

// Is reports whether target is ErrTruncated.
func (t *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// Drain returns the owner of the receives that drain given-up contexts. The engine frees
// them when they appear in Out.Done.
func (m *Machine) Drain() *Waiter { return &m.drain }

// Drop gives a context up: unmatched receives fail with err, now and later, and messages
// are received and dropped.
func (m *Machine) Drop(ctx uint32, err error) {
	if m.dropped[ctx] != nil {
		return
	}
	if m.dropped == nil {
		m.dropped = make(map[uint32]error)
	}
	m.dropped[ctx] = err
	for _, x := range m.slab {
		if x.Send || x.Ctx != ctx {
			continue
		}
		switch x.stage {
		case stagePosted:
			m.fail(x, err)
		case stageReady, stageCancelling:
			m.Cancel(x) // the sender may be writing
		}
	}
	for g := m.match.arrived.head; g != nil; {
		next := g.nodes[listArrived].next
		if g.Ctx == ctx {
			m.match.takeMsg(g)
			m.discard(g)
		}
		g = next
	}
}

// file keeps a message that has no receive yet.
func (m *Machine) file(g *Msg) {
	if m.dropped != nil && m.dropped[g.Ctx] != nil {
		m.discard(g)
		return
	}
	m.match.file(g)
}

// discard receives a message without a buffer.
func (m *Machine) discard(g *Msg) {
	x := m.get()
	x.Ctx, x.Sign, x.Owner = g.Ctx, g.sign, &m.drain
	m.Claim(x, g)
}
