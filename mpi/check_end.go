package mpi

// Check mode at the end of a job: requests that were never completed, and messages that
// nobody has received.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
)

// watchMost limits the number of communicators that are kept after Free.
const watchMost = 1000

// watchMessages records a communicator, whose messages are searched at the end.
func (c *Comm) watchMessages() {
	s := &c.w.check
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.comms == nil {
		s.comms = make(map[uint32]*Comm)
	}
	s.comms[c.ctx] = c
}

// unwatchMessages is called for a communicator that is freed. A message that nobody has received
// may arrive later, so it is searched at the end too, unless a program makes and frees many
// communicators: then the messages that have arrived so far are searched now.
func (c *Comm) unwatchMessages() {
	s := &c.w.check
	s.mu.Lock()
	if len(s.comms) <= watchMost {
		s.mu.Unlock()
		return
	}
	delete(s.comms, c.ctx)
	s.mu.Unlock()
	lines := c.takeUnreceived(false)
	s.mu.Lock()
	s.lost = append(s.lost, lines[:min(len(lines), watchMost-len(s.lost))]...)
	s.mu.Unlock()
}

// leftovers describes what the rank has left undone. All ranks call it in Finalize, after
// a barrier: no rank sends any more, and each makes progress until the next barrier. Over a
// network that is best effort: the barrier orders the messages of two ranks only if one
// notifies the other, so a message may arrive too late to be found.
func (w *World) leftovers() error {
	s := &w.check
	s.mu.Lock()
	comms := slices.SortedFunc(maps.Values(s.comms), func(a, b *Comm) int { return cmp.Compare(a.ctx, b.ctx) })
	lines, dropped := slices.Clone(s.lost), []string(nil)
	for k := range s.pending {
		dropped = append(dropped, k.what)
	}
	s.mu.Unlock()
	slices.Sort(dropped)
	for _, d := range dropped {
		lines = append(lines, "a request was not completed: "+d+"; wait for it")
	}
	if len(dropped) == 0 { // a pending receive would take the messages
		w.e.Progress()
		for _, c := range comms {
			lines = append(lines, c.takeUnreceived(true)...)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	const most = 10
	if n := len(lines); n > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", n-most))
	}
	return w.comm.refuse(ErrPending, "Finalize", "%s", strings.Join(lines, "\n\t"))
}

// takeUnreceived takes the messages that have arrived and describes them. Only at the end, when
// all ranks make progress, may it wait for the header of a long message.
func (c *Comm) takeUnreceived(atEnd bool) (lines []string) {
	for {
		st, g, found, err := c.e.Probe(c.ctx, AnySource, AnyTag, true)
		if err != nil || !found {
			return lines
		}
		head := make([]byte, min(st.Bytes, checkBytes))
		taken, done := c.e.Mrecv(&c.pt, g, head), true
		if atEnd {
			_, err = c.e.Wait(engine.NoContext, &c.pt, "Finalize", taken)
		} else {
			_, done, err = c.e.Test(taken)
		}
		if err != nil && !errors.Is(err, p2p.ErrTruncated) || len(head) < checkBytes {
			continue // of the library itself
		}
		with := ""
		if done {
			with = fmt.Sprintf(" with %s", readNote(head))
		}
		lines = append(lines, fmt.Sprintf("a message was not received: rank %d sent it%s to rank %d on %s, tag %d, %d bytes",
			st.Source, with, c.rank, c.Name(), st.Tag, st.Bytes-checkBytes))
	}
}
