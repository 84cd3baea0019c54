package trace

// Matching: the two ends of each message, and the calls of each collective.

import (
	"cmp"
	"slices"
)

// At identifies an event: a rank, by its index in Trace.Ranks, and an event of it.
type At struct{ Rank, Event int32 }

func (t *Trace) at(a At) *Event { return &t.Ranks[a.Rank].Events[a.Event] }

// Message is a message with both ends.
type Message struct{ Send, Recv At }

// Matched is the result of matching.
type Matched struct {
	Messages    []Message
	Collectives [][]At // the calls of each blocking collective, of at least two ranks
	// Unmatched is the number of sends and receives without the other end. They are expected
	// if calls were dropped, or if a message was never received.
	Sends, Receives, Unmatched int
}

// channelFrom separates messages that match in order: from a rank, to a rank.
type channelFrom struct {
	src, dst, tag int32
	context       uint32
}

// unmatched marks a number that no message has.
const unmatched = -1

// Match joins the ends of messages and the calls of collectives.
func (t *Trace) Match() *Matched {
	m := &Matched{}
	t.matchMessages(m)
	t.matchCollectives(m)
	return m
}

// matchMessages looks sends up by their numbers, which count from 0 in each channel.
func (t *Trace) matchMessages(m *Matched) {
	sends := map[channelFrom][]At{}
	for r, rank := range t.Ranks {
		for i := range rank.Events {
			e := &rank.Events[i]
			if !e.Sends {
				continue
			}
			m.Sends++
			k := channelFrom{int32(rank.Rank), e.Peer, e.Tag, rank.Comms[e.Comm].Context}
			list, n := sends[k], int(e.SendNumber)
			for n >= len(list) && n <= m.Sends { // a number that is too high has no receive
				list = append(list, At{unmatched, 0})
			}
			if n >= 0 && n < len(list) {
				list[n] = At{int32(r), int32(i)}
			}
			sends[k] = list
		}
	}
	for r, rank := range t.Ranks {
		for i := range rank.Events {
			e := &rank.Events[i]
			if e.From < 0 {
				continue
			}
			m.Receives++
			list, n := sends[channelFrom{e.From, int32(rank.Rank), e.FromTag, rank.Comms[e.Comm].Context}], int(e.RecvNumber)
			if n >= 0 && n < len(list) && list[n].Rank != unmatched {
				m.Messages = append(m.Messages, Message{list[n], At{int32(r), int32(i)}})
				list[n].Rank = unmatched
			}
		}
	}
	m.Unmatched = m.Sends + m.Receives - 2*len(m.Messages)
}

// matchCollectives joins the calls with the same number of a communicator.
func (t *Trace) matchCollectives(m *Matched) {
	type group struct {
		context     uint32
		lowest, nth int32
	}
	calls := map[group][]At{}
	for r, rank := range t.Ranks {
		lowest := make([]int32, len(rank.Comms))
		for i := range rank.Comms {
			lowest[i] = int32(rank.Comms[i].lowest())
		}
		for i := range rank.Events {
			if e := &rank.Events[i]; e.Kind == kindCollective && !e.Starts {
				k := group{rank.Comms[e.Comm].Context, lowest[e.Comm], e.Nth}
				calls[k] = append(calls[k], At{int32(r), int32(i)})
			}
		}
	}
	for _, c := range calls {
		if len(c) > 1 {
			m.Collectives = append(m.Collectives, c)
		}
	}
	slices.SortFunc(m.Collectives, func(a, b []At) int {
		return cmp.Or(cmp.Compare(t.at(a[0]).Begin, t.at(b[0]).Begin), cmp.Compare(a[0].Rank, b[0].Rank), cmp.Compare(a[0].Event, b[0].Event))
	})
}

// completing returns the call in which the rank saw the operation of an event complete: the
// event itself, or the Wait that it was waited for in.
func (t *Trace) completing(a At) At {
	if e := t.at(a); e.Starts && e.By >= 0 {
		return At{a.Rank, e.By}
	}
	return a
}
