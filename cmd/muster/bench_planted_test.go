//go:build !windows

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/bench"
	"github.com/muster-mpi/muster/bench/results"
	"github.com/muster-mpi/muster/mpi"
)

// asPaced makes two benchmarks of this program send messages at a fixed pace instead, so that
// their figures are the same on a busy machine. Its value names a benchmark that has become
// 20 % slower, or none.
const asPaced = "TEST_PACED_BENCHMARK"

// pace is the time before each message.
const pace = 20 * time.Millisecond

// pacedBenchmark returns what replaces the benchmark that args name, or nil.
func pacedBenchmark(args []string) func(*mpi.Comm) error {
	slow, paced := os.LookupEnv(asPaced)
	if !paced || len(args) < 2 || args[0] != "bench" {
		return nil
	}
	delay := pace
	if slow == args[1] {
		delay = pace * 12 / 10
	}
	r := bench.Result{Unit: "ratio"}
	var sizes []int
	switch args[1] {
	case "device-latency": // the group "device"
		r.Metric, sizes = "mpi/device", []int{8}
	case "verbs-latency": // the group "dgram-verbs"
		r.Metric, r.Device, r.Against, sizes = "latency", "ud", "rc", []int{64, 256, 1 << 10, 2 << 10}
	default:
		return nil
	}
	return func(c *mpi.Comm) error {
		best := time.Hour
		for range 5 {
			start := time.Now()
			time.Sleep(delay)
			if _, err := mpi.Sendrecv(c, []byte{1}, (c.Rank()+1)%c.Size(), 0, make([]byte, 1), (c.Rank()+c.Size()-1)%c.Size(), 0); err != nil {
				return err
			}
			best = min(best, time.Since(start))
		}
		for _, r.Size = range sizes {
			r.Value = float64(best) / float64(pace)
			if line, err := json.Marshal(r); c.Rank() == 0 && err == nil {
				fmt.Printf("%s\n", line)
			}
		}
		return nil
	}
}

// TestReportFlagsPlantedRegression runs reports for real: of two tables one becomes 20 %
// slower. --against flags it and nothing else.
func TestReportFlagsPlantedRegression(t *testing.T) {
	report := func(slow, folder string, more ...string) outcome {
		t.Setenv(asPaced, slow)
		args := []string{"bench", "report", "--only", "device,dgram-verbs", "--rounds", "3", "--settle", "0s", "--output", folder}
		return muster(t, filepath.Dir(folder), append(args, more...)...)
	}
	once := func() error {
		dir := t.TempDir()
		monday, tuesday := filepath.Join(dir, "monday"), filepath.Join(dir, "tuesday")
		if got := report("", monday); got.status != 0 {
			return fmt.Errorf("the first report ends with %+v", got)
		}
		got := report("device-latency", tuesday, "--against", filepath.Join(monday, "report.json"))
		if got.status != 1 || strings.Count(got.err, "worse than before: ") != 1 || !strings.Contains(got.err, "worse than before: device, 8 B") {
			return fmt.Errorf("the device is 20 %% slower, and the report ends with %+v", got)
		}
		r, err := results.ReadReport(filepath.Join(tuesday, "report.json"))
		if err != nil {
			return err
		}
		worse := r.Regressions()
		if len(worse) != 1 || worse[0].Table != "device" || worse[0].Change.Worse < 0.1 || worse[0].Change.Worse > 0.5 {
			return fmt.Errorf("the regressions are %+v", worse)
		}
		return nil
	}
	// On a busy machine even the best of several sleeps can be late, in several rounds.
	var failures []error
	for range 3 {
		err := once()
		if err == nil {
			return
		}
		failures = append(failures, err)
	}
	t.Error(errors.Join(failures...))
}
