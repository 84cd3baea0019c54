package bench

// The calls of a program that survives failures (Config.OnFailure "return"), alternating
// with an allreduce of 8 bytes on the same ranks. First no rank has failed. Then the last
// one ends, and the others measure the same calls on a communicator that has lost a rank.

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func failureBenchmarks() []Benchmark {
	return []Benchmark{{Name: "failures", Title: "Agree, Shrink and Revoke", Ranks: 16, AnyRanks: true, Settings: []string{"MUSTER_ON_FAILURE=return"},
		Doc:    "Agree, Shrink and the last notification of Revoke, alternating with an allreduce of 8 bytes; then the same without the last rank, which fails",
		Metric: "allreduce", Unit: "us", Column: "Median (us), quartiles, ratio to allreduce", Run: failureCalls}}
}

// failureCalls measures in rounds of failureBatch calls of each kind.
func failureCalls(c *mpi.Comm, p *Params, emit func(Result)) error {
	if c.Size() < 3 {
		return fmt.Errorf("bench failures: %d ranks: use 3 or more, one of them fails", c.Size())
	}
	rounds := p.Iterations
	if rounds == 0 {
		rounds = 100
	}
	base, err := c.Dup()
	if err != nil {
		return err
	}
	if err := failureRounds(c, base, rounds, "", emit); err != nil {
		return err
	}
	if err := c.Barrier(); err != nil {
		return err
	}
	if c.Rank() == c.Size()-1 {
		os.Exit(9)
	}
	_, _ = mpi.Recv(c, make([]byte, 1), c.Size()-1, 1) // until this rank knows
	if base, err = c.Shrink(); err != nil {
		return err
	}
	return failureRounds(c, base, rounds, "-failed", emit)
}

const failureBatch = 10

// failureRounds measures the calls on c. The ranks of base are those of c that are alive.
func failureRounds(c, base *mpi.Comm, rounds int, suffix string, emit func(Result)) error {
	sum := []float64{1}
	calls := []struct {
		name string
		call func() error
	}{
		{"allreduce", func() error { return mpi.Allreduce(base, []float64{1}, sum, mpi.Sum) }},
		{"agree", func() error { _, _, err := c.Agree(1); return err }},
		{"shrink", func() error {
			s, err := c.Shrink()
			if err == nil {
				err = s.Free()
			}
			return err
		}},
	}
	times := map[string][]float64{}
	for round := range rounds + rounds/10 + 1 {
		for _, k := range calls {
			if err := base.Barrier(); err != nil {
				return err
			}
			start := time.Now()
			for range failureBatch {
				if err := k.call(); err != nil {
					return fmt.Errorf("%s: %w", k.name, err)
				}
			}
			if round > rounds/10 { // the first ones are not counted
				times[k.name] = append(times[k.name], micros(time.Since(start))/failureBatch)
			}
		}
		took, err := revocation(base)
		if err != nil {
			return fmt.Errorf("revoke: %w", err)
		}
		if round > rounds/10 {
			times["revoke"] = append(times["revoke"], took)
		}
	}
	of := Median(slices.Sorted(slices.Values(times["allreduce"])))
	for _, name := range []string{"allreduce", "agree", "shrink", "revoke"} {
		sorted := slices.Sorted(slices.Values(times[name]))
		r := middle(Result{Metric: name + suffix}, sorted)
		r.Low, r.High = sorted[len(sorted)/4], sorted[len(sorted)*3/4]
		if name != "allreduce" {
			r.Ratio = r.Value / of
		}
		emit(r)
	}
	return nil
}

// revocation returns the time from Revoke of rank 0 until the last rank that waits for a
// message has returned. The ranks are on one host, or on hosts of a lab: they share a clock.
func revocation(base *mpi.Comm) (float64, error) {
	d, err := base.Dup()
	if err != nil {
		return 0, err
	}
	if err := base.Barrier(); err != nil {
		return 0, err
	}
	at := []int64{0, 0} // of Revoke, negative; of the last return
	if base.Rank() == 0 {
		at[0] = -time.Now().UnixNano()
		err = d.Revoke()
	} else {
		at[0] = -1 << 62
		if _, failed := mpi.Recv(d, make([]byte, 1), 0, 1); failed == nil {
			err = fmt.Errorf("a receive on a revoked communicator has succeeded")
		}
	}
	at[1] = time.Now().UnixNano()
	if err != nil {
		return 0, err
	}
	last := []int64{0, 0}
	if err := mpi.Allreduce(base, at, last, mpi.Max); err != nil {
		return 0, err
	}
	return float64(last[1]+last[0]) / 1e3, d.Free()
}
