package bench

import "github.com/muster-mpi/muster/mpi"

func checkpointBenchmarks() []Benchmark {
	return []Benchmark{{Name: "checkpoint", Title: "Checkpoint Latency Test", Doc: "time of a checkpoint in the memory of two ranks", Ranks: 2, AnyRanks: true, Sizes: powers[10:],
		Metric: "latency", Unit: "us", Column: "Latency (us)", Run: checkpoint}}
}

// checkpoint measures mpi.Checkpoint of one slice on each rank.
func checkpoint(c *mpi.Comm, p *Params, emit func(Result)) error {
	version := 0
	for _, size := range p.Sizes {
		data := make([]byte, size)
		r, err := timeCalls(c, p, size, func() error {
			version++
			return mpi.Checkpoint(c, version, data)
		})
		if err != nil {
			return err
		}
		emit(r)
	}
	return nil
}
