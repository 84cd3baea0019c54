package prof

// How far the clock of a rank is from that of rank 0. It is measured when the job
// begins and when it ends, and taken to change evenly in between: clocks of hosts
// drift apart by microseconds a second.

// Offset is what to add to a clock, at two of its times.
type Offset struct {
	At, Add       int64 // at the beginning
	EndAt, EndAdd int64 // at the end
}

// Of turns a time of the clock into one of rank 0's.
func (o Offset) Of(at int64) int64 {
	if o.EndAt == o.At {
		return at + o.Add
	}
	share := float64(at-o.At) / float64(o.EndAt-o.At)
	return at + o.Add + int64(share*float64(o.EndAdd-o.Add))
}

// Ping is a question for the time: when it was asked and answered by the clock of the
// one who asks, and what the answer was.
type Ping struct{ Asked, Answer, Answered int64 }

// Estimate is what to add to the clock of the one who asks, from the ping that came back
// soonest: it lies in the middle of its way, or at most half of the way off.
func Estimate(pings []Ping) (add, wrong int64) {
	wrong = 1<<63 - 1
	for _, p := range pings {
		if half := (p.Answered - p.Asked) / 2; half < wrong {
			add, wrong = p.Answer-(p.Asked+half), half
		}
	}
	return add, wrong
}
