package bench

// The traffic that speculation adds (T1 4.4.3): a program of 10,000 messages of mixed
// sizes, both ways, with early and late receives, wildcards, and buffers longer than
// their messages. Every setting runs the same program.

import (
	"math"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

const (
	mixedMessages = 10000
	mixedTag      = 20
	mixedTags     = 4
	mixedBatch    = 8
	mixedLongest  = 4 << 20
)

// mixedVolume emits, for each world, the bytes of its control packets divided by those of
// the messages' data, in ppm: 100 ppm are 0.01 %.
func mixedVolume(worlds []*mpi.Comm, messages int, emit func(int, Result)) error {
	for k, c := range worlds {
		before, err := inspect.Traffic(c, 1-c.Rank())
		if err != nil {
			return err
		}
		if err := mixedProgram(c, messages); err != nil {
			return err
		}
		after, err := inspect.Traffic(c, 1-c.Rank())
		if err != nil {
			return err
		}
		sums := []float64{float64(after.ControlBytes - before.ControlBytes), float64(after.BytesSent - before.BytesSent)}
		if err := mpi.Allreduce(c, sums, sums, mpi.Sum); err != nil {
			return err
		}
		share := sums[0] / sums[1] * 1e6
		emit(k, Result{Metric: "mixed/control", Unit: "ppm", Beside: true, Value: share, Min: share, P50: share, P99: share})
	}
	return nil
}

// mixedProgram sends messages in batches. Both ranks draw sizes and kinds from the same
// random sequence.
func mixedProgram(c *mpi.Comm, messages int) error {
	chance := work{state: 1}
	draw := func(n int) int {
		chance.run(3)
		return int(chance.state>>33) % n
	}
	peer := 1 - c.Rank()
	sbuf, _ := buffers(mixedLongest)
	rbufs := make([][]byte, mixedBatch)
	for i := range rbufs {
		_, rbufs[i] = buffers(mixedLongest)
	}
	var sizes, tags, rooms [mixedBatch]int
	reqs := make([]mpi.Request, 0, 2*mixedBatch)
	for range max(1, messages/(2*mixedBatch)) {
		for i := range mixedBatch {
			// As many between 1 and 2 KB as between 2 and 4 MB.
			sizes[i] = int(math.Exp2(10 + float64(draw(12000))/1000))
			tags[i] = mixedTag + draw(mixedTags)
			rooms[i] = sizes[i]
			if draw(8) == 0 {
				rooms[i] = mixedLongest
			}
		}
		late, wild := draw(4) == 0, draw(8) == 0
		if late {
			if err := c.Barrier(); err != nil {
				return err
			}
		}
		reqs = reqs[:0]
		receive := func() {
			for i := range mixedBatch {
				tag := tags[i]
				if wild && i == 0 {
					reqs = append(reqs, mpi.Irecv(c, rbufs[i][:mixedLongest], mpi.AnySource, tag))
					continue
				}
				reqs = append(reqs, mpi.Irecv(c, rbufs[i][:rooms[i]], peer, tag))
			}
		}
		if !late {
			receive()
		}
		for i := range mixedBatch {
			reqs = append(reqs, mpi.Isend(c, sbuf[:sizes[i]], peer, tags[i]))
		}
		if late {
			receive()
		}
		if err := mpi.WaitAll(reqs...); err != nil {
			return err
		}
	}
	return nil
}
