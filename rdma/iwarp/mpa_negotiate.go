package iwarp

import (
	"fmt"

	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// Negotiation by request and reply. The initiator calls request and, with the reply,
// conclude; the responder calls answer. Both end with the same terms, seen from their
// side.

// preferences are the preferences of one side.
type preferences struct {
	markers  bool     // to receive markers
	crc      bool     // RFC 5044 section 7.1.1: the default must be true
	plain    bool     // initiator: revision 1, for peers that support no other
	p2p      bool     // initiator: the responder may send first
	ready    readySet // the first messages that we can send or receive
	ird, ord uint16   // concurrent Reads that we answer, and that we request
}

// terms are the negotiated parameters.
type terms struct {
	markersOut bool // we insert markers
	markersIn  bool // the peer inserts markers
	crc        bool
	ird, ord   uint16
	// ready is the kind of the first message that the initiator must send; 0 if it is free
	// to choose.
	ready readySet
}

// request returns the initiator's frame.
func (w *preferences) request(private []byte) startup {
	s := startup{markers: w.markers, crc: w.crc, revision: revisionEnhanced, enhanced: true,
		p2p: w.p2p, ready: w.ready, ird: w.ird, ord: w.ord, private: private}
	if w.plain {
		s.revision, s.enhanced = revisionPlain, false
	}
	return s
}

// answer returns the responder's reply to a request, with the resulting terms. If there is
// an error the reply is a rejection, to be sent before the connection closes.
func (w *preferences) answer(req *startup, private []byte) (startup, terms, error) {
	// RFC 6581 section 6: an enhanced request gets an enhanced reply, a plain one a plain
	// reply of its own revision.
	rep := startup{reply: true, markers: w.markers, crc: w.crc || req.crc, revision: req.revision,
		enhanced: req.enhanced, private: private}
	t := terms{markersOut: req.markers, markersIn: w.markers, crc: rep.crc, ird: w.ird, ord: w.ord}
	if !req.enhanced {
		return rep, t, nil
	}
	// RFC 6581 section 5: neither side may request more Reads than the other answers.
	t.ord = shallower(w.ord, req.ird)
	if req.ord != depthOpen {
		t.ird = min(w.ird, req.ord)
	}
	rep.ird, rep.ord = t.ird, t.ord
	if req.p2p {
		if t.ready = req.ready & w.ready; t.ready == 0 {
			rep.reject = true
			return rep, t, &mpaError{ddp.FaultMPAReady, fmt.Sprintf(
				"the peer offers the first messages %03b of Send, Write and Read, of which we accept %03b: no kind is in both", req.ready, w.ready)}
		}
		t.ready &= -t.ready // one of them
		rep.p2p, rep.ready = true, t.ready
	}
	return rep, t, nil
}

// conclude returns the terms that the reply to our request results in.
func (w *preferences) conclude(rep *startup) (terms, error) {
	t := terms{markersOut: rep.markers, markersIn: w.markers, crc: w.crc || rep.crc, ird: w.ird, ord: w.ord}
	switch {
	case rep.reject:
		return t, startupFault("the peer rejected the connection")
	case w.plain && (rep.revision != revisionPlain || rep.enhanced):
		return t, startupFault("a request of revision %d got a reply of revision %d", revisionPlain, rep.revision)
	case !w.plain && !rep.enhanced:
		return t, startupFault("an enhanced request got a reply without depths (revision %d): connect with revision %d", rep.revision, revisionPlain)
	case w.plain:
		return t, nil
	}
	t.ord = shallower(w.ord, rep.ird)
	if rep.ord != depthOpen && rep.ord > w.ird {
		return t, &mpaError{ddp.FaultMPADepth, fmt.Sprintf("the peer wants to request %d Reads at a time, we answer %d", rep.ord, w.ird)}
	}
	if !w.p2p {
		return t, nil
	}
	if t.ready = rep.ready & w.ready; !rep.p2p || t.ready == 0 {
		return t, &mpaError{ddp.FaultMPAReady, fmt.Sprintf(
			"we offered the first messages %03b of Send, Write and Read, and the peer chose %03b", w.ready, rep.ready)}
	}
	t.ready &= -t.ready
	return t, nil
}

// shallower returns how many Reads may be requested of a peer that answers so many.
func shallower(ord, peerIRD uint16) uint16 {
	if peerIRD == depthOpen {
		return ord
	}
	return min(ord, peerIRD)
}
