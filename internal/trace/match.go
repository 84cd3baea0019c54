package trace

// Matching: the two ends of each message, and the calls of each collective.

import (
	"cmp"
	"slices"
)

// At identifies an event: a rank, by its index in Trace.Ranks, and an event of it.
type At struct{ Rank, Event int }

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

// Match joins the ends of messages and the calls of collectives.
func (t *Trace) Match() *Matched {
	type key struct {
		src, dst, tag, number int
		context               uint32
	}
	type group struct {
		context     uint32
		lowest, nth int
	}
	m := &Matched{}
	sends, calls := map[key]At{}, map[group][]At{}
	for r, rank := range t.Ranks {
		for i := range rank.Events {
			e := &rank.Events[i]
			if e.Sends {
				m.Sends++
				sends[key{rank.Rank, e.Peer, e.Tag, e.SendNumber, rank.Comms[e.Comm].Context}] = At{r, i}
			}
			if e.Kind == kindCollective && !e.Starts {
				k := group{rank.Comms[e.Comm].Context, rank.Comms[e.Comm].lowest(), e.Nth}
				calls[k] = append(calls[k], At{r, i})
			}
		}
	}
	for r, rank := range t.Ranks {
		for i := range rank.Events {
			e := &rank.Events[i]
			if e.From < 0 {
				continue
			}
			m.Receives++
			k := key{e.From, rank.Rank, e.FromTag, e.RecvNumber, rank.Comms[e.Comm].Context}
			if s, ok := sends[k]; ok {
				m.Messages = append(m.Messages, Message{s, At{r, i}})
				delete(sends, k)
			}
		}
	}
	m.Unmatched = len(sends) + m.Receives - len(m.Messages)
	for _, c := range calls {
		if len(c) > 1 {
			m.Collectives = append(m.Collectives, c)
		}
	}
	slices.SortFunc(m.Collectives, func(a, b []At) int {
		return cmp.Or(cmp.Compare(t.at(a[0]).Begin, t.at(b[0]).Begin), cmp.Compare(a[0].Rank, b[0].Rank), cmp.Compare(a[0].Event, b[0].Event))
	})
	return m
}

// completing returns the call in which the rank saw the operation of an event complete: the
// event itself, or the Wait that it was waited for in.
func (t *Trace) completing(a At) At {
	if e := t.at(a); e.Starts && e.By >= 0 {
		return At{a.Rank, e.By}
	}
	return a
}
