package coll

import (
	"slices"

	"github.com/muster-mpi/muster/internal/sched"
)

// Common parts of the exchanges among all ranks: ring arithmetic, messages packed from
// blocks at several offsets, and the cost of concurrent messages.

// wrap returns i modulo n, in 0 … n-1 also for a negative i.
func wrap(i, n int) int {
	if i %= n; i < 0 {
		i += n
	}
	return i
}

// kthLast returns the k-th last of some operations, or None if there are fewer or k is 0.
// An operation that waits for it keeps at most k of them under way: the k ports of
// T2 3.4.
func kthLast(ids []sched.ID, k int) sched.ID {
	if k <= 0 || len(ids) < k {
		return sched.None
	}
	return ids[len(ids)-k]
}

// sendSome and recvSome add a send or a receive unless it is empty. Both sides know the
// length of a block, so both omit the same messages.
func sendSome(b *sched.Builder, peer int, src sched.Span, after ...sched.ID) sched.ID {
	if src.Len == 0 {
		return sched.None
	}
	return b.Send(peer, src, after...)
}

func recvSome(b *sched.Builder, peer int, dst sched.Span, after ...sched.ID) sched.ID {
	if dst.Len == 0 {
		return sched.None
	}
	return b.Recv(peer, dst, after...)
}

// piece is a block in transit: its span, and the operation that wrote it.
type piece struct {
	at sched.Span
	by sched.ID
}

// mover copies pieces and merges copies that are adjacent in source and destination.
type mover struct {
	b        *sched.Builder
	dst, src sched.Span
	after    []sched.ID
	done     []sched.ID
}

func (m *mover) copy(dst, src sched.Span, after ...sched.ID) {
	if src.Len == 0 || src == dst {
		return
	}
	if m.src.Len > 0 && follows(m.src, src) && follows(m.dst, dst) {
		m.src.Len += src.Len
		m.dst.Len += dst.Len
	} else {
		m.flush()
		m.src, m.dst = src, dst
	}
	for _, id := range after {
		m.after = addOnce(m.after, id)
	}
}

// flush adds the pending copy and returns all operations since the last clear.
func (m *mover) flush() []sched.ID {
	if m.src.Len > 0 {
		m.done = append(m.done, m.b.Copy(m.dst, m.src, m.after...))
	}
	m.src, m.dst, m.after = sched.Span{}, sched.Span{}, m.after[:0]
	return m.done
}

func addOnce(ids []sched.ID, id sched.ID) []sched.ID {
	if id == sched.None || slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

// follows reports whether b begins where a ends.
func follows(a, b sched.Span) bool { return a.Buf == b.Buf && a.Off+a.Len == b.Off }

// sendPieces sends pieces as one message: directly if they are contiguous, otherwise
// packed. It returns the operations that read them.
func sendPieces(b *sched.Builder, peer int, pieces []piece) []sched.ID {
	run, side := sched.Span{}, true
	size := 0
	var after []sched.ID
	for _, p := range pieces {
		switch {
		case p.at.Len == 0:
			continue
		case size == 0:
			run = p.at
		case follows(run, p.at):
			run.Len += p.at.Len
		default:
			side = false
		}
		size += p.at.Len
		after = addOnce(after, p.by)
	}
	if size == 0 {
		return nil
	}
	if side {
		return []sched.ID{b.Send(peer, run, after...)}
	}
	packed := b.Tmp(size)
	m := mover{b: b}
	at := 0
	for _, p := range pieces {
		m.copy(packed.At(at, p.at.Len), p.at, p.by)
		at += p.at.Len
	}
	copies := m.flush()
	b.Send(peer, packed, copies...)
	return copies
}

// together returns the time of k concurrent messages of n bytes of one rank, of which as
// many are transferred at a time as there are ports.
func (m *Model) together(k int, n float64) float64 {
	if k <= 0 {
		return 0
	}
	return m.rounds(k, m.starts())*m.startup(n) + m.bytes(k, m.Ports, n) + float64(k)*m.Message
}

// bytes returns the transfer time, without start-ups, of messages of n bytes, at of
// which are transferred at a time.
func (m *Model) bytes(messages, at int, n float64) float64 {
	if m.striped(n) {
		return float64(messages) * n * m.perByte(m.Ports)
	}
	return m.rounds(messages, at) * n * m.perByte(1)
}

// striped reports whether a message of n bytes uses all ports.
func (m *Model) striped(n float64) bool { return m.Stripe > 0 && n > float64(m.Stripe) }

// rounds returns the number of rounds for messages, at of which are sent at a time.
func (m *Model) rounds(messages, at int) float64 {
	at = max(at, 1)
	return float64((messages + at - 1) / at)
}

// window returns the time of many messages of n bytes, at most k of them under way.
func (m *Model) window(messages, k int, n float64) float64 {
	return m.rounds(messages, min(k, m.starts()))*m.startup(n) + m.bytes(messages, min(k, m.Ports), n) + float64(messages)*m.Message
}

// fanIn returns the time of many messages of n bytes to one rank, at most k of them under
// way. If start-ups overlap, those of all senders do, and so does their half of the time of
// the processor.
func (m *Model) fanIn(messages, k int, n float64) float64 {
	if m.Starts == 0 {
		return m.window(messages, k, n)
	}
	return m.rounds(messages, k)*m.startup(n) + m.bytes(messages, min(k, m.Ports), n) + float64(messages)*m.Message/2
}

// halves returns the start-ups of messages of a half, a quarter and so on of some bytes,
// until there are as many parts as ranks.
func (m *Model) halves(ranks int, bytes float64) (t float64) {
	for reach := 1; reach < ranks; reach *= 2 {
		bytes /= 2
		t += m.startup(bytes)
	}
	return t
}
