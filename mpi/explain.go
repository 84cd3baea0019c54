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
