package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// testTime is how long a test took in a step.
type testTime struct {
	seconds         float64
	step, pkg, test string
}

// appendTimes adds lines to a file: seconds, step, package and test, separated by tabs.
func appendTimes(file string, times []testTime) error {
	var text strings.Builder
	for _, t := range times {
		fmt.Fprintf(&text, "%.2f\t%s\t%s\t%s\n", t.seconds, t.step, t.pkg, t.test)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text.String()) // one write: several go test may run at a time
	return cmp.Or(err, f.Close())
}

// showSlowest prints the slowest tests, each with the step in which it was slowest.
func showSlowest(file string, count int, out io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var times []testTime
	for lines := bufio.NewScanner(f); lines.Scan(); {
		parts := strings.Split(lines.Text(), "\t")
		if len(parts) != 4 {
			return fmt.Errorf("%s: %q has %d parts, want 4", file, lines.Text(), len(parts))
		}
		seconds, err := strconv.ParseFloat(parts[0], 64)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		times = append(times, testTime{seconds, parts[1], parts[2], parts[3]})
	}
	slices.SortStableFunc(times, func(a, b testTime) int { return cmp.Compare(b.seconds, a.seconds) })
	shown := map[string]bool{}
	for _, t := range times {
		name := t.pkg[strings.LastIndexByte(t.pkg, '/')+1:] + "." + t.test
		if key := t.pkg + " " + t.test; !shown[key] && len(shown) < count {
			shown[key] = true
			fmt.Fprintf(out, "%6.1f s  %s (%s)\n", t.seconds, name, t.step)
		}
	}
	return nil
}
