package mpi

// Buffers that have earned their registration: what is thought of them, and what was done.
// See Config.Frequent.

import "github.com/muster-mpi/muster/internal/engine"

// Frequently says from how many uses on it pays to register a buffer of Lo to Hi bytes
// and to send from there, rather than to copy it. The times are in nanoseconds and were
// measured when the device was opened.
type Frequently struct {
	Lo, Hi   int
	Register float64 // to register the buffer, and to end that
	Copy     float64 // to copy it
	Lookup   float64 // to count the use, to find the registration, and to wait for the end
	// LookupOneSided is the same for a put or get, which waits for its end in any case.
	LookupOneSided float64
	// The number of uses from which it pays, 0 for never: of a blocking send, of a
	// non-blocking one, and of a put or get. A buffer is registered at a quarter of it.
	Send, Isend, OneSided uint32
}

// FrequentBuffers counts what this rank did with buffers of short messages.
type FrequentBuffers struct {
	Direct   uint64 // messages, puts and gets without a copy
	Copied   uint64 // that were copied, since their buffer is not used often enough yet
	Refused  uint64 // that were copied, since their buffer could not be registered
	Known    int    // buffers whose uses are counted
	Frequent int    // of these, used often
}

// FrequentUse reports what is thought of buffers of messages to a rank, and counts for the
// device that carries them. The list is empty where nothing is to be gained: on devices
// that send from any memory.
func FrequentUse(c *Comm, rank int) ([]Frequently, FrequentBuffers, error) {
	if err := c.checkPeer("FrequentUse", rank, 0); err != nil || rank == ProcNull {
		return nil, FrequentBuffers{}, err
	}
	rows, s := c.e.Sources(c.world(rank))
	var out []Frequently
	for _, r := range rows {
		out = append(out, Frequently{Lo: r.Lo, Hi: r.Hi, Register: r.Register, Copy: r.Copy, Lookup: r.Lookup[engine.UseWaits], LookupOneSided: r.Lookup[engine.UseOneSided],
			Send: r.Uses[engine.UseWaits], Isend: r.Uses[engine.UseGoesOn], OneSided: r.Uses[engine.UseOneSided]})
	}
	return out, FrequentBuffers{Direct: s.Direct, Copied: s.Copied, Refused: s.Refused, Known: s.Table.Buffers, Frequent: s.Table.Frequent}, nil
}
