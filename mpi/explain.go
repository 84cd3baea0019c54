package mpi

// Why messages travel as they do.

import "github.com/muster-mpi/muster/internal/p2p"

// Choice says which protocol carries messages of Lo to Hi bytes to a rank, and
// what it is thought to cost: Fixed + PerByte × size, in nanoseconds.
type Choice struct {
	Lo, Hi         int
	Protocol       string
	Fixed, PerByte float64
}

// MaxBytes is the Hi of the last choice.
const MaxBytes = p2p.MaxSize

// Explain lists the choices for messages from this rank to another.
func Explain(c *Comm, rank int) ([]Choice, error) {
	if err := c.checkPeer("Explain", rank, 0); err != nil {
		return nil, err
	}
	var out []Choice
	for _, ch := range c.e.Choices(c.world(rank)) {
		out = append(out, Choice{ch.Lo, ch.Hi, ch.Protocol, ch.Cost.Fixed, ch.Cost.PerByte})
	}
	return out, nil
}

// Speculated counts what became of early receives of large messages between this
// rank and another: see Config.Speculate.
type Speculated struct {
	// From is the length in bytes of the shortest buffer that is offered; 0 if none
	// is.
	From int
	// Offers that this rank has made as the receiver. Each was used by the sender,
	// or wasted because the message came by another way, or revoked because a
	// receive was cancelled, or is open.
	Offered, Used, Wasted, Revoked uint64
	// Withheld offers: not made because too few were used.
	Withheld uint64
	// Messages that this rank has written at once as the sender, and offers that
	// came too late for their message.
	Written, Late uint64
}

// Speculation gives the counts with another rank.
func Speculation(c *Comm, rank int) (Speculated, error) {
	if err := c.checkPeer("Speculation", rank, 0); err != nil || rank == ProcNull {
		return Speculated{}, err
	}
	s := c.e.Stats(c.world(rank))
	from, _ := c.e.OffersFrom(c.world(rank))
	return Speculated{From: from, Offered: s.RTRSent, Used: s.RTRUsed, Wasted: s.RTRWasted, Revoked: s.RTRRevoked,
		Withheld: s.RTRStopped, Written: s.SpecSent, Late: s.RTRStale}, nil
}

// Background counts what the thread of asynchronous progress did for this rank: see
// Config.Progress.
type Background struct {
	// Duties: how many times the program left large operations to it. Without
	// such operations it sleeps, and nobody wakes it.
	Duties uint64
	// Wakes: how many times it woke up to look.
	Wakes uint64
	// Served: how many messages and ends of copies it dealt with.
	Served uint64
}

// BackgroundProgress gives the counts of this rank, and whether Config.Progress asks
// for such a thread.
func BackgroundProgress(c *Comm) (b Background, on bool) {
	return Background(c.e.ProgressStats()), c.w.cfg.Progress == progressAsync
}

// Traffic counts what this rank has sent to another and received from it.
type Traffic struct {
	Sent, Received           uint64 // messages
	BytesSent, BytesReceived uint64 // of their data
	// ControlBytes were sent in packets without data: requests, offers, answers,
	// credit.
	ControlBytes uint64
	// Unexpected messages came before their receive.
	Unexpected uint64
}

// TrafficWith gives the counts with another rank.
func TrafficWith(c *Comm, rank int) (Traffic, error) {
	if err := c.checkPeer("TrafficWith", rank, 0); err != nil || rank == ProcNull {
		return Traffic{}, err
	}
	s := c.e.Stats(c.world(rank))
	return Traffic{Sent: s.Sent, Received: s.Received, BytesSent: s.BytesSent, BytesReceived: s.BytesRx,
		ControlBytes: s.ControlBytes, Unexpected: s.Unexpected}, nil
}
