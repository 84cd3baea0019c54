package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Arrival is a pattern of arrivals: when ranks enter the first call.
//
//	together      all at once
//	spread:1ms    at random times within 1 ms, the same in every simulation
//	late:3:1ms    three ranks, evenly distributed among the others, 1 ms late
type Arrival struct {
	late   int // ranks; 0: all are spread
	within time.Duration
}

// ParseArrival parses a pattern.
func ParseArrival(text string) (Arrival, error) {
	wrong := fmt.Errorf("%q: want together, spread:TIME or late:RANKS:TIME, such as spread:1ms or late:3:1ms", text)
	words := strings.Split(text, ":")
	var a Arrival
	switch {
	case text == "" || text == "together":
		return a, nil
	case words[0] == "spread" && len(words) == 2:
	case words[0] == "late" && len(words) == 3:
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 1 {
			return a, wrong
		}
		a.late = n
	default:
		return a, wrong
	}
	t, err := time.ParseDuration(words[len(words)-1])
	if err != nil || t <= 0 {
		return a, wrong
	}
	a.within = t
	return a, nil
}

// Of returns the arrivals of ranks, for Config.Arrive.
func (a Arrival) Of(ranks int) func(rank int) float64 {
	t := float64(a.within.Nanoseconds())
	switch {
	case t == 0:
		return nil
	case a.late == 0:
		return func(rank int) float64 { return t * random(7, rank) }
	}
	every := max(ranks/a.late, 1)
	return func(rank int) float64 {
		if rank%every == every-1 && rank/every < a.late {
			return t
		}
		return 0
	}
}

// random returns a number from 0 to 1 for a rank.
func random(seed uint64, rank int) float64 {
	return float64(mix(mix(seed, uint64(rank)), 1)>>11) / (1 << 53)
}

// mix is a step of a 64-bit hash, for times that are random and the same in every run.
func mix(h, v uint64) uint64 {
	h = (h ^ v) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}
