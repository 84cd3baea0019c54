package bench

// The gain from registering frequently used buffers for short messages, puts and gets
// (T1 5.5.1, P1). Four worlds of the same ranks alternate: one that copies everything, one
// that counts uses and registers by the rule, a second one that copies, and one that always
// registers. There are three shares of reuse (T1 3.5): all messages from one buffer, each
// from a new buffer, and half of each.
//
// The theoretical gain is reported beside the measured one: the cost of the copy that is
// saved minus the overhead of the method, relative to the latency of the world that copies
// (T1 equation 5.6, P1 equation 6). The difference between the two worlds that copy is noise.

import (
	"fmt"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

const (
	reuseTag    = 31
	reuseWarmup = 100
)

// frequentWorlds are the worlds that are compared; the first copies.
var frequentWorlds = []World{{"copy", []string{"MUSTER_FREQUENT=never"}}, {"frequent", []string{"MUSTER_FREQUENT=auto"}}}

// reuseWorlds adds a second world that copies, and one that always registers, which shows
// the gain where the rule does not register.
var reuseWorlds = append(slices.Clone(frequentWorlds), World{"copy again", frequentWorlds[0].Settings},
	World{"always", []string{"MUSTER_FREQUENT=always"}})

// pool holds the buffers of a rank: one that is reused, and many that are used once.
type pool struct {
	again []byte
	once  []byte // begins with the next buffer
	size  int
	share int // share of messages from again, in percent
	count int
}

// freshBytes bounds the memory for buffers that are used once.
const freshBytes = 64 << 20

// arena is memory of one world for buffers that are used once. Each pool takes other
// addresses: memory that was freed and allocated again would count as used before.
type arena struct {
	mem []byte
	cut int
}

const arenaStep = 64 // a cache line

func (a *arena) next(n int) []byte {
	a.cut += arenaStep
	if len(a.mem) < a.cut+n {
		a.mem = make([]byte, a.cut+n+freshBytes/16)
		for i := 0; i < len(a.mem); i += 1 << 10 {
			a.mem[i] = 1 // allocate the page
		}
	}
	return a.mem[a.cut:][:n]
}

func newPool(a *arena, size, share, messages int) *pool {
	p := &pool{size: size, share: share, again: make([]byte, size)}
	fill(p.again, 1)
	if share < 100 {
		p.once = a.next(size*messages*(100-share)/100 + 2*size)
	}
	return p
}

// next returns the buffer of the next message.
func (p *pool) next() []byte {
	p.count++
	if p.share == 100 || p.share == 50 && p.count%2 == 0 {
		return p.again
	}
	b := p.once[:p.size]
	p.once = p.once[p.size:]
	return b
}

// reuseAlternating measures each share of reuse.
func reuseAlternating(worlds []*mpi.Comm, p *Params, emit func(int, Result)) error {
	arenas := make([]arena, len(worlds))
	for _, name := range p.calls() {
		for _, size := range p.Sizes {
			if err := reuseOf(name, worlds, arenas, p, size, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

func reuseOf(name string, worlds []*mpi.Comm, arenas []arena, p *Params, size int, emit func(int, Result)) error {
	call, err := newReuseCall(name, worlds, size)
	if err != nil {
		return err
	}
	var whole [101][]float64 // latency of each world, by share
	for _, share := range []int{0, 50, 100} {
		_, n := p.iterations(size, 4000, 1000)
		if share < 100 {
			n = min(n, freshBytes/max(size, 1))
		}
		pools := make([]*pool, len(worlds))
		for k := range worlds {
			pools[k] = newPool(&arenas[k], size, share, n+reuseWarmup)
		}
		next := func(k, _ int) []byte { return pools[k].next() }
		if _, err := call.run(reuseWarmup, next); err != nil { // set up links, and use buffers often enough to be registered
			return err
		}
		times, err := call.run(n, next)
		if err != nil {
			return err
		}
		if whole[share], err = call.emitGain(fmt.Sprintf("reuse-%d", share), times, share, emit); err != nil {
			return err
		}
	}
	for k := range worlds {
		ratio := whole[0][k] / whole[100][k]
		emit(k, Result{Size: size, Metric: call.metric + "none/full", Unit: "x", Value: ratio, Min: ratio, P50: ratio, P99: ratio})
	}
	return call.close()
}

// typical returns the mean with outliers limited: a time far above the median, caused by
// other load, counts less. A registration is not that far above.
func typical(times []float64) float64 {
	if len(times) == 0 {
		return 0 // rank 1 measures nothing
	}
	most := 3 * Median(times)
	sum := 0.0
	for _, t := range times {
		sum += min(t, most)
	}
	return sum / float64(len(times))
}

// gainRounds is the number of parts of a run whose gains are computed separately, because
// the speed of the machine changes during a run.
const gainRounds = 40

// gains returns the gains of one world over another, in percent, by round.
func gains(from, to []float64) []float64 {
	rounds := min(gainRounds, len(from))
	var out []float64
	for r := range rounds {
		lo, hi := r*len(from)/rounds, (r+1)*len(from)/rounds
		out = append(out, (1-typical(to[lo:hi])/typical(from[lo:hi]))*100)
	}
	return out
}

// emitGain emits the latency and the duration of the call in each world, the gain of each
// over the first, the theoretical gain for that share of frequently used buffers, the number of
// uses from which the rule registers, and the share that was sent in place. The gain of the second world that copies is
// noise. The call takes longer where it waits until the device has released the buffer; the
// message has been sent by then.
func (r *reuseCall) emitGain(metric string, times []trips, share int, emit func(int, Result)) (latency []float64, err error) {
	metric = r.metric + metric
	report := func(k int, what, unit string, v float64) {
		emit(k, Result{Size: r.size, Metric: metric + what, Unit: unit, Value: v, Min: v, P50: v, P99: v})
	}
	for k := range r.worlds {
		latency = append(latency, typical(times[k].half))
		report(k, "", "us", latency[k])
		report(k, "-call", "us", typical(times[k].call))
	}
	saved, uses, direct, err := r.readSavings()
	if err != nil || len(times[0].half) == 0 {
		return latency, err
	}
	theory := saved / 1e3 / latency[0] * float64(share)
	report(1, "-uses", "uses", float64(uses))
	report(1, "-theory", "%", theory)
	report(1, "-direct", "%", direct)
	for k := 1; k < len(r.worlds); k++ {
		gain := middle(Result{Size: r.size, Metric: metric + "-gain", Unit: "%"}, gains(times[0].half, times[k].half))
		emit(k, gain)
		if theory > 0 && (k == 1 && uses > 0 || k == 3) {
			report(k, "-reached", "% of theory", gain.Value/theory*100)
		}
	}
	return latency, nil
}

// readSavings returns the cost of the copy that a registered buffer saves minus that of the lookup,
// in nanoseconds (the numerator of P1's equation 6), the number of uses from which the rule
// registers, 0 if it does not register, and the share of messages without a copy since the last
// figure, in percent.
func (r *reuseCall) readSavings() (ns float64, uses uint32, direct float64, err error) {
	c := r.worlds[1]
	rows, now, err := inspect.FrequentBuffers(c, 1-c.Rank())
	if err != nil {
		return 0, 0, 0, err
	}
	direct = float64(now.Direct - r.before.Direct)
	direct = 100 * direct / max(direct+float64(now.Copied-r.before.Copied), 1)
	r.before = now
	for _, row := range rows {
		if r.size < row.Lo || r.size > row.Hi {
			continue
		}
		lookup := row.Lookup
		switch r.name {
		case "eager":
			uses = row.Send
		case "isend":
			uses = row.Isend
		default:
			uses, lookup = row.OneSided, row.LookupOneSided
		}
		// The row is valid for the middle of its range of lengths.
		return row.Copy*float64(r.size)/(1.5*float64(row.Lo)) - lookup, uses, direct, nil
	}
	return 0, 0, direct, nil
}

// savedBy returns what the second saves relative to the first, in percent, by round.
func savedBy(from, to []float64) []float64 {
	out := changes(from, to)
	for i := range out {
		out[i] = -out[i]
	}
	return out
}

// copyTime returns the cost of a copy of size bytes, in nanoseconds.
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
