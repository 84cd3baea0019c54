package prof

// The offset between the clock of a rank and that of rank 0. It is measured when the job
// begins and when it ends, and interpolated linearly: clocks of hosts drift by
// microseconds per second.

// Offset is the value to add to a clock, at two of its times.
type Offset struct {
	At, Add       int64 // at the beginning
	EndAt, EndAdd int64 // at the end
}

// Of converts a time of the clock to one of rank 0's clock.
func (o Offset) Of(at int64) int64 {
	if o.EndAt == o.At {
		return at + o.Add
	}
	share := float64(at-o.At) / float64(o.EndAt-o.At)
	return at + o.Add + int64(share*float64(o.EndAdd-o.Add))
}

// Ping is a request for the time: when it was sent and answered, by the requester's
// clock, and the time in the answer.
type Ping struct{ Asked, Answer, Answered int64 }

// Estimate returns the value to add to the requester's clock and its maximum error, from
// the ping with the shortest round trip: the answer is assumed at the middle of the round
// trip, so the error is at most half of it.
func Estimate(pings []Ping) (add, wrong int64) {
	wrong = 1<<63 - 1
	for _, p := range pings {
		if half := (p.Answered - p.Asked) / 2; half < wrong {
			add, wrong = p.Answer-(p.Asked+half), half
		}
	}
	return add, wrong
}
