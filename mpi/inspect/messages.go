package inspect

import (
	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/internal/p2p"
	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/internal/hook"
)

// Choice is the protocol for messages of Lo to Hi bytes to a rank. The
// estimated cost of a message is Fixed + PerByte × size, in nanoseconds.
type Choice struct {
	Lo, Hi         int
	Protocol       string
	Fixed, PerByte float64
}

// MaxBytes is the Hi of the last Choice.
const MaxBytes = p2p.MaxSize

// Explain returns the protocols for messages from the calling rank to another
// rank of c, by increasing size.
func Explain(c *mpi.Comm, rank int) ([]Choice, error) {
	e, world, err := hook.Get().Peer(c, "Explain", rank)
	if err != nil || e == nil {
		return nil, err
	}
	var out []Choice
	for _, ch := range e.Choices(world) {
		out = append(out, Choice{ch.Lo, ch.Hi, ch.Protocol, ch.Cost.Fixed, ch.Cost.PerByte})
	}
	return out, nil
}

// SpeculationStats counts the speculative transfers of large messages between
// the calling rank and another one. A speculative receive offers its buffer to
// the sender before the sender has announced a message: see
// [mpi.Advanced.Speculate].
type SpeculationStats struct {
	// From is the length in bytes of the shortest buffer that is offered; 0
	// if none is.
	From int
	// Offers that this rank has made as the receiver. An offer is used by the
	// sender, wasted because the message arrived by another protocol, revoked
	// because the receive was cancelled, or still open.
	Offered, Used, Wasted, Revoked uint64
	// Withheld offers were not made because too few earlier ones were used.
	Withheld uint64
	// Written counts the messages that this rank, as the sender, wrote into an
	// offered buffer. Late counts the offers that arrived after their message
	// had been sent another way.
	Written, Late uint64
}

// Speculation returns the counters for another rank of c.
func Speculation(c *mpi.Comm, rank int) (SpeculationStats, error) {
	e, world, err := hook.Get().Peer(c, "Speculation", rank)
	if err != nil || e == nil {
		return SpeculationStats{}, err
	}
	s := e.Stats(world)
	from, _ := e.OffersFrom(world)
	return SpeculationStats{From: from, Offered: s.RTRSent, Used: s.RTRUsed, Wasted: s.RTRWasted, Revoked: s.RTRRevoked,
		Withheld: s.RTRStopped, Written: s.SpecSent, Late: s.RTRStale}, nil
}

// TrafficStats counts the messages between the calling rank and another one.
type TrafficStats struct {
	Sent, Received           uint64 // messages
	BytesSent, BytesReceived uint64 // payload of these messages
	// ControlBytes is the size of the packets sent without payload: requests,
	// offers, replies and credit.
	ControlBytes uint64
	// Unexpected messages arrived before their receive was posted.
	Unexpected uint64
}

// Traffic returns the counters for another rank of c.
func Traffic(c *mpi.Comm, rank int) (TrafficStats, error) {
	e, world, err := hook.Get().Peer(c, "Traffic", rank)
	if err != nil || e == nil {
		return TrafficStats{}, err
	}
	s := e.Stats(world)
	return TrafficStats{Sent: s.Sent, Received: s.Received, BytesSent: s.BytesSent, BytesReceived: s.BytesRx,
		ControlBytes: s.ControlBytes, Unexpected: s.Unexpected}, nil
}

// ProgressStats counts the work of the progress thread: see
// [mpi.Config.Progress].
type ProgressStats struct {
	// Handoffs counts how many times the application left the library with
	// large operations under way. The thread sleeps at all other times.
	Handoffs uint64
	// Wakes counts how many times the thread woke up.
	Wakes uint64
	// Served counts the messages and completions that the thread processed.
	Served uint64
}

// Progress returns the counters of the calling rank, and whether it has a
// progress thread.
func Progress(c *mpi.Comm) (s ProgressStats, async bool) {
	e, _, err := hook.Get().Peer(c, "Progress", 0)
	if err != nil {
		return ProgressStats{}, false
	}
	p := e.ProgressStats()
	return ProgressStats{Handoffs: p.Duties, Wakes: p.Wakes, Served: p.Served}, hook.Get().Async(c)
}

// BufferCost holds the cost estimates for sending from a buffer of Lo to Hi
// bytes. Registering the buffer and sending from it pays off after some uses;
// before that, copying costs less. The times are in nanoseconds and were
// measured when the device was opened.
type BufferCost struct {
	Lo, Hi   int
	Register float64 // to register and later deregister the buffer
	Copy     float64 // to copy it
	Lookup   float64 // to count the use, find the registration and wait for completion
	// LookupOneSided is Lookup for a put or get, which waits for completion in
	// any case.
	LookupOneSided float64
	// Send, Isend and OneSided are the number of uses after which registration
	// pays off for a blocking send, a non-blocking send, and a put or get; 0
	// means never. The library registers a buffer after a quarter of them.
	Send, Isend, OneSided uint32
}

// BufferStats counts how the calling rank sent short messages.
type BufferStats struct {
	Direct     uint64 // messages, puts and gets without a copy
	Ring       uint64 // of these, messages written into a ring at the peer
	Collective uint64 // of these, messages of collectives
	Copied     uint64 // copied, because the buffer is not used often enough yet
	Refused    uint64 // copied, because the buffer could not be registered
	Known      int    // buffers whose uses are counted
	Frequent   int    // buffers among these that are used often
}

// FrequentBuffers returns the cost estimates for send buffers to a rank of c,
// and the counters of the device that carries the messages. The list is empty on
// devices that send from any memory: see [mpi.Advanced.Frequent].
func FrequentBuffers(c *mpi.Comm, rank int) ([]BufferCost, BufferStats, error) {
	e, world, err := hook.Get().Peer(c, "FrequentBuffers", rank)
	if err != nil || e == nil {
		return nil, BufferStats{}, err
	}
	rows, s := e.Sources(world)
	var out []BufferCost
	for _, r := range rows {
		out = append(out, BufferCost{Lo: r.Lo, Hi: r.Hi, Register: r.Register, Copy: r.Copy,
			Lookup: r.Lookup[engine.UseWaits], LookupOneSided: r.Lookup[engine.UseOneSided],
			Send: r.Uses[engine.UseWaits], Isend: r.Uses[engine.UseGoesOn], OneSided: r.Uses[engine.UseOneSided]})
	}
	return out, BufferStats{Direct: s.Direct, Ring: s.Ring, Collective: s.Collective, Copied: s.Copied, Refused: s.Refused,
		Known: s.Table.Buffers, Frequent: s.Table.Frequent}, nil
}
