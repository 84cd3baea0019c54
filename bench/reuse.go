package bench

// What it brings to send short messages from buffers that have earned their registration
// (T1 5.5.1, P1): two worlds of the same ranks take turns, one that copies every message
// and one that counts uses. Three shares of reuse (T1 3.5): messages from one buffer, each
// from a buffer of its own, and half of each.
//
// Beside what was measured stands what theory promises: the copy that is saved, less the
// overhead of the method, by the latency of the world that copies (T1 equation 5.6).

import (
	"fmt"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

const (
	reuseTag    = 31
	reuseWarmup = 100
)

// frequentWorlds are what is compared: the first copies.
var frequentWorlds = []World{{"copy", []string{"MUSTER_FREQUENT=never"}}, {"frequent", []string{"MUSTER_FREQUENT=auto"}}}

// pool is buffers of a rank: one that is used again and again, and many that are used once.
type pool struct {
	again []byte
	once  []byte // the next of them is first
	size  int
	share int // of messages from again, in percent
	count int
}

// freshBytes bounds the memory for buffers that are used once.
const freshBytes = 64 << 20

func newPool(size, share, messages int) *pool {
	p := &pool{size: size, share: share, again: make([]byte, size)}
	fill(p.again, 1)
	if share < 100 {
		p.once = make([]byte, size*messages*(100-share)/100+2*size)
		for i := 0; i < len(p.once); i += 1 << 10 {
			p.once[i] = 1 // a page that was never written is not there
		}
	}
	return p
}

// next is the buffer of the next message.
func (p *pool) next() []byte {
	p.count++
	if p.share == 100 || p.share == 50 && p.count%2 == 0 {
		return p.again
	}
	b := p.once[:p.size]
	p.once = p.once[p.size:]
	return b
}

// reuseInTurns measures each share of reuse.
func reuseInTurns(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error {
	for _, size := range p.Sizes {
		var whole [101][]float64 // the latency of each world, by the share
		for _, share := range []int{0, 50, 100} {
			_, n := p.iterations(size, 4000, 1000)
			n = min(n, freshBytes/max(size, 1))
			pools := make([]*pool, len(worlds))
			for k := range worlds {
				pools[k] = newPool(size, share, n+reuseWarmup)
			}
			next := func(k, _ int) []byte { return pools[k].next() }
			if _, err := roundTrips(worlds, size, reuseWarmup, next); err != nil { // links, and the uses that earn a registration
				return err
			}
			times, err := roundTrips(worlds, size, n, next)
			if err != nil {
				return err
			}
			if whole[share], err = emitGain(worlds, size, fmt.Sprintf("reuse-%d", share), times, share, emit); err != nil {
				return err
			}
		}
		for k := range worlds {
			ratio := whole[0][k] / whole[100][k]
			emit(k, Result{Size: size, Metric: "none/full", Unit: "x", Value: ratio, Min: ratio, P50: ratio, P99: ratio})
		}
	}
	return nil
}

// trips are the times of messages in one world, in µs.
type trips struct {
	half []float64 // of round trips
	call []float64 // of the call that sends
}

// roundTrips takes turns between the worlds with every message, so that what else goes on
// in the machine meets all alike. next is the buffer of message i in world k.
func roundTrips(worlds []*mpi.Comm, size, n int, next func(k, i int) []byte) ([]trips, error) {
	recv := make([]byte, size)
	times := make([]trips, len(worlds))
	for i := range n {
		for turn := range worlds {
			k := (turn + i) % len(worlds) // neither is always first
			c, buf := worlds[k], next(k, i)
			if c.Rank() == 1 {
				if _, err := mpi.Recv(c, recv, 0, reuseTag); err != nil {
					return nil, err
				}
				if err := mpi.Send(c, buf, 0, reuseTag); err != nil {
					return nil, err
				}
				continue
			}
			start := time.Now()
			if err := mpi.Send(c, buf, 1, reuseTag); err != nil {
				return nil, err
			}
			sent := time.Since(start)
			if _, err := mpi.Recv(c, recv, 1, reuseTag); err != nil {
				return nil, err
			}
			t := &times[k]
			t.half, t.call = append(t.half, micros(time.Since(start))/2), append(t.call, micros(sent))
		}
	}
	return times, nil
}

// typical is the mean without what others on the machine did: what is far beyond the median
// counts as little beyond. A registration is not so far beyond.
func typical(times []float64) float64 {
	if len(times) == 0 {
		return 0 // rank 1 measures nothing
	}
	most := 3 * median(times)
	sum := 0.0
	for _, t := range times {
		sum += min(t, most)
	}
	return sum / float64(len(times))
}

// emitGain tells latency and length of the call in each world, what the second gained, and
// what theory promises for that share of messages from frequently-used buffers. The call is
// longer where it waits for the device to be done with the buffer; the message is on its
// way by then.
func emitGain(worlds []*mpi.Comm, size int, metric string, times []trips, share int, emit func(int, Result)) (latency []float64, err error) {
	told := func(k int, what, unit string, v float64) {
		emit(k, Result{Size: size, Metric: metric + what, Unit: unit, Value: v, Min: v, P50: v, P99: v})
	}
	for k := range worlds {
		latency = append(latency, typical(times[k].half))
		told(k, "", "us", latency[k])
		told(k, "-call", "us", typical(times[k].call))
	}
	c := worlds[1]
	rows, _, err := mpi.FrequentUse(c, 1-c.Rank())
	if err != nil {
		return nil, err
	}
	saved := 0.0 // where the rule keeps off
	for _, r := range rows {
		if size >= r.Lo && size <= r.Hi && r.Send > 0 {
			// The row is for the middle of its lengths.
			saved = r.Copy*float64(size)/(1.5*float64(r.Lo)) - r.Lookup
		}
	}
	told(1, "-gain", "%", (1-latency[1]/latency[0])*100)
	told(1, "-theory", "%", saved/1e3/latency[0]*float64(share))
	return latency, nil
}

// copyTime is what a copy of so many bytes costs, in nanoseconds.
func copyTime(size int) float64 {
	from, to := buffers(2 * size)
	best := time.Duration(1<<63 - 1)
	const batch = 64
	for range 20 {
		start := time.Now()
		for i := range batch {
			copy(to[i%2*size:][:size], from[(i+1)%2*size:][:size])
		}
		best = min(best, time.Since(start))
	}
	return float64(best) / batch
}
