package groups

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"
)

// A round begins when the machine is quiet, or after a timeout. The load by other processes
// is recorded with the figures: on a busy machine two polling ranks wait for the scheduler,
// and their figures do not characterize the library.

const (
	quietShare  = 0.05 // of all cores
	quietWindow = 200 * time.Millisecond
)

// isLoaded reports whether other processes used the machine, by their share in each round.
func isLoaded(load spread) bool { return load.mid > quietShare }

// loadNote is added to the conditions of figures of a loaded machine.
func loadNote(load spread) string {
	return fmt.Sprintf("The machine was not quiet: other processes used %.0f %% (%.0f–%.0f) of the cores, so these figures are provisional.",
		load.mid*100, load.low*100, load.high*100)
}

// awaitQuiet waits for a quiet machine. It returns the share of the cores that other processes
// used last, or NaN if it is unknown.
func awaitQuiet(ctx context.Context, timeout time.Duration) float64 {
	deadline := time.Now().Add(timeout)
	for {
		busy, total := cpuTicks()
		select {
		case <-ctx.Done():
			return math.NaN()
		case <-time.After(quietWindow):
		}
		busyNow, totalNow := cpuTicks()
		if totalNow <= total {
			return math.NaN()
		}
		share := (busyNow - busy) / (totalNow - total)
		if share <= quietShare || time.Now().After(deadline) {
			return share
		}
	}
}

// cpuTicks returns the ticks of all CPUs in /proc/stat; both are 0 if it cannot be read.
func cpuTicks() (busy, total float64) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	return parseTicks(string(stat))
}

// parseTicks reads the first line: user, nice, system, idle, iowait and more.
func parseTicks(stat string) (busy, total float64) {
	first, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(first)
	if len(fields) < 6 || fields[0] != "cpu" {
		return 0, 0
	}
	for i, f := range fields[1:min(len(fields), 9)] { // user time includes guest time
		var v float64
		if _, err := fmt.Sscan(f, &v); err != nil {
			return 0, 0
		}
		total += v
		if i != 3 && i != 4 {
			busy += v
		}
	}
	return busy, total
}
