package coll

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// measuredTime is the time of an algorithm in a call.
type measuredTime struct {
	kind   Kind
	size   int
	name   string // with parameters, as in a tuning table
	micros float64
}

// readMeasured reads what muster bench choice --all has printed.
func readMeasured(t *testing.T, path string) (list []measuredTime) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kind string
		var m measuredTime
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		if _, err = fmt.Sscan(lines.Text(), &kind, &m.size, &m.name, &m.micros); err == nil {
			m.kind, err = ParseKind(kind)
		}
		if err != nil {
			t.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		list = append(list, m)
	}
	return list
}

// TestChoiceAgainstMeasured compares the choice with the times of all algorithms on hosts
// whose ranks share cores. Algorithms that were slow were called once or twice, and times of
// such calls scatter by a fifth.
func TestChoiceAgainstMeasured(t *testing.T) {
	const within = 1.35
	four := Consecutive(2, 4, 4, 4, 4)
	times := map[Kind]map[int]map[string]float64{}
	best := map[Kind]map[int]float64{}
	for _, m := range readMeasured(t, "testdata/measured-16.txt") {
		if times[m.kind] == nil {
			times[m.kind], best[m.kind] = map[int]map[string]float64{}, map[int]float64{}
		}
		if times[m.kind][m.size] == nil {
			times[m.kind][m.size], best[m.kind][m.size] = map[string]float64{}, math.Inf(1)
		}
		times[m.kind][m.size][m.name] = m.micros
		best[m.kind][m.size] = min(best[m.kind][m.size], m.micros)
	}
	lines := 0
	for kind, sizes := range times {
		for size, of := range sizes {
			bytes := size
			if kind == ReduceScatter { // the library counts a block
				bytes /= four.Size()
			}
			c, err := Choose(onNodes(kind, bytes, four), labModel(1000), nil)
			if err != nil {
				t.Fatal(err)
			}
			name := c.Algorithm.Name
			for i, v := range c.Params {
				name += fmt.Sprintf(":%s=%d", c.Algorithm.Params[i].Name, v)
			}
			if took, ok := of[name]; !ok {
				t.Errorf("%s of %d bytes: %s was not measured", kind, size, name)
			} else if took > within*best[kind][size] && (kind != Bcast || size != 8<<10) { // four broadcasts in a row overlap in a chain
				t.Errorf("%s of %d bytes: %s took %.0f µs, the best algorithm %.0f; ranking %v", kind, size, name, took, best[kind][size], brief(c.Ranking))
			}
			lines++
		}
	}
	if lines < 30 {
		t.Errorf("the file has %d lines of the table, want 30", lines)
	}
}
