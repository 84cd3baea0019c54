package judge

// The record: the outcomes of all runs so far, from which the page of results is made. A run on
// MPICH takes an hour on two cores, because its ranks poll while they wait, so it is made in parts.

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// record has the outcomes by test and library, passed or the reason of a failure, and the time of a
// test that passed, by test and library with ofTime.
type record map[string]map[string]string

const (
	onMuster = "muster"
	onMPICH  = "mpich"

	ofTime = " s"

	passed = "ok"
)

// readRecord reads a file of lines with the library, the test and the outcome, separated by tabs.
func readRecord(path string) (record, error) {
	known := record{}
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	for n, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		part := strings.SplitN(line, "\t", 3)
		if len(part) != 3 {
			return nil, fmt.Errorf("%s:%d: not a library, a test and an outcome", path, n+1)
		}
		known.set(part[1], part[0], part[2])
	}
	return known, nil
}

func (k record) set(id, library, outcome string) {
	if k[id] == nil {
		k[id] = map[string]string{}
	}
	k[id][library] = outcome
}

// add replaces the outcomes of the tests that were run.
func (k record) add(o *options, results []*result) {
	for _, r := range results {
		if r.skipped {
			continue
		}
		k.addOutcome(r.test.ID, onMuster, r.muster)
		if o.reference {
			k.addOutcome(r.test.ID, onMPICH, r.mpich)
		}
	}
}

func (k record) addOutcome(id, library string, v outcome) {
	k.set(id, library, v.line())
	delete(k[id], library+ofTime)
	if v.ok && v.took > 0 {
		k.set(id, library+ofTime, fmt.Sprintf("%.2f", v.took.Seconds()))
	}
}

// seconds returns the times of a test on both libraries, if it has passed on both.
func (k record) seconds(id string) (muster, other float64) {
	muster, err := strconv.ParseFloat(k[id][onMuster+ofTime], 64)
	other, err2 := strconv.ParseFloat(k[id][onMPICH+ofTime], 64)
	if err != nil || err2 != nil {
		return 0, 0
	}
	return muster, other
}

// line returns an outcome as a line of the record.
func (v outcome) line() string {
	if v.ok {
		return passed
	}
	return strings.Join(strings.Fields(v.why), " ")
}

func (k record) write(path string) error {
	var lines []string
	for id, by := range k {
		for library, outcome := range by {
			lines = append(lines, library+"\t"+id+"\t"+outcome)
		}
	}
	slices.Sort(lines)
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}
