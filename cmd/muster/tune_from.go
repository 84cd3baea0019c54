package main

// muster tune --from TRACE -- RUN ARGS: settings for one program. The trace says which may
// matter (advise.Propose); each is then measured in alternation with what is accepted so far,
// and written only if it makes the program faster.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-mpi/muster/internal/advise"
)

// defaultSettings is the file that muster tune --from writes.
const defaultSettings = "muster-settings.json"

const (
	// leastFaster is the median time with an entry, as a share of that without, at which it
	// is kept. The difference to 1 is more than that of equal runs on a quiet machine.
	leastFaster = 0.98
	// hopeless ends the measurement of an entry if each of the first two rounds is above.
	hopeless = 1.05
	// defaultRounds is the number of pairs of runs; all but one in five must be faster.
	defaultRounds = 5
)

// tuneRuns finds the settings of a program.
type tuneRuns struct {
	trace  string
	rounds int
	log    io.Writer
	// elapsed runs the program with settings and returns its time in seconds.
	elapsed func(*settingsFile) (float64, error)
}

// tuneFrom is muster tune --from.
func tuneFrom(cmd *cobra.Command, from, out string, rounds int, asJSON bool, args []string) error {
	if len(args) == 0 {
		return errors.New("tune: --from needs the program, to measure with it: muster tune --from TRACE -- -n 4 ./prog")
	}
	t, err := readCalls(from)
	if err != nil {
		return fmt.Errorf("tune: --from: %w", err)
	}
	dir, err := os.MkdirTemp("", "muster-tune-")
	if err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	defer os.RemoveAll(dir)
	if from, err = filepath.Abs(from); err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	p := &programRuns{ctx: cmd.Context(), dir: dir, args: args, log: cmd.ErrOrStderr()}
	run := tuneRuns{trace: from, rounds: rounds, log: cmd.ErrOrStderr(), elapsed: p.run}
	file, err := run.find(advise.Propose(t))
	if err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	file.About = fmt.Sprintf("muster tune --from %s, for %s, on %s", filepath.Base(from), strings.Join(args, " "), time.Now().Format(time.DateOnly))
	if name, ok := strings.CutPrefix(file.MapBy, trafficWord); ok {
		if folder, err := filepath.Abs(filepath.Dir(out)); err == nil {
			if name, err = filepath.Rel(folder, name); err == nil {
				file.MapBy = trafficWord + name
			}
		}
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err == nil {
		err = os.WriteFile(out, append(text, '\n'), 0o666)
	}
	if err != nil {
		return fmt.Errorf("tune: %w", err)
	}
	w := cmd.OutOrStdout()
	if asJSON {
		_, err = w.Write(append(text, '\n'))
		return err
	}
	if len(file.Measured) == 0 {
		_, err = fmt.Fprintf(w, "%s: no entry: no setting that was tried makes the program faster\n", out)
		return err
	}
	all := file.Measured[len(file.Measured)-1]
	_, err = fmt.Fprintf(w, "%s: %s; together %.2f × the time (%.2f to %.2f in %d pairs of runs); use it with muster run --settings %[1]s\n",
		out, count(len(file.Measured)-1, "entry"), all.Median, all.Least, all.Most, all.Rounds)
	return err
}

// with returns the settings with one more entry.
func (r *tuneRuns) with(f *settingsFile, e advise.Entry) *settingsFile {
	g := &settingsFile{MapBy: f.MapBy, Settings: maps.Clone(f.Settings)}
	before := g.Settings[e.Name]
	switch {
	case e.Name == advise.MapBy:
		g.MapBy = strings.ReplaceAll(e.Value, advise.Trace, r.trace)
	case e.Name == "MUSTER_COLLECTIVE" && before != "":
		g.Settings[e.Name] = before + "," + e.Value
	default:
		g.Settings[e.Name] = e.Value
	}
	return g
}

// subjectOf returns what an entry is about: entries of the same subject exclude each other.
func subjectOf(e advise.Entry) string {
	if kind, _, ok := strings.Cut(e.Value, "="); ok && e.Name == "MUSTER_COLLECTIVE" {
		return e.Name + " " + kind
	}
	return e.Name
}

// find returns the confirmed entries. The last element of Measured is that of all together.
func (r *tuneRuns) find(entries []advise.Entry) (*settingsFile, error) {
	none := &settingsFile{Settings: map[string]string{}}
	now := none
	var kept []settingMeasured
	for len(entries) > 0 {
		subject := subjectOf(entries[0])
		var best *settingsFile
		var gain settingMeasured
		for len(entries) > 0 && subjectOf(entries[0]) == subject {
			e := entries[0]
			entries = entries[1:]
			fmt.Fprintf(r.log, "tune: %s=%s: %s\n", e.Name, e.Value, e.Why)
			candidate := r.with(now, e)
			m, faster, err := r.compare(now, candidate)
			if err != nil {
				return nil, err
			}
			m.Entry = e.Name + "=" + e.Value
			fmt.Fprintf(r.log, "tune:   %.2f × the time, %.2f to %.2f: %s\n", m.Median, m.Least, m.Most, map[bool]string{true: "kept", false: "dropped"}[faster])
			if faster && (best == nil || m.Median < gain.Median) {
				best, gain = candidate, m
			}
		}
		if best != nil {
			now, kept = best, append(kept, gain)
		}
	}
	if len(kept) == 0 {
		return none, nil
	}
	m, faster, err := r.compare(none, now) // what was faster alone may not be together, or was by chance
	if err != nil || !faster {
		return none, err
	}
	m.Entry = "all"
	now.Measured = append(kept, m)
	return now, nil
}

// compare runs the program in pairs, with one and with other settings.
func (r *tuneRuns) compare(without, with *settingsFile) (m settingMeasured, faster bool, err error) {
	var ratios []float64
	won := 0
	for i := range r.rounds {
		order := []*settingsFile{without, with}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		times := map[*settingsFile]float64{}
		for _, f := range order {
			if times[f], err = r.elapsed(f); err != nil {
				return m, false, err
			}
		}
		ratio := times[with] / times[without]
		ratios = append(ratios, ratio)
		if ratio < 1 {
			won++
		}
		if i == 1 && min(ratios[0], ratios[1]) > hopeless {
			break
		}
	}
	slices.Sort(ratios)
	n := len(ratios)
	m = settingMeasured{Median: (ratios[(n-1)/2] + ratios[n/2]) / 2, Least: ratios[0], Most: ratios[n-1], Rounds: n}
	return m, m.Median <= leastFaster && won >= n-n/5, nil
}

// programRuns runs the program.
type programRuns struct {
	ctx    context.Context
	dir    string
	args   []string
	log    io.Writer
	wall   bool // the trace does not have all calls: the time of the whole job counts
	number int
}

// run runs the program and returns the time from the end of Init to the end of its last call.
func (p *programRuns) run(f *settingsFile) (float64, error) {
	p.number++
	name := filepath.Join(p.dir, fmt.Sprint(p.number))
	text, err := json.Marshal(&settingsFile{MapBy: f.MapBy, Settings: f.Settings})
	if err == nil {
		err = os.WriteFile(name+".settings", text, 0o666)
	}
	self, err2 := os.Executable()
	if err = errors.Join(err, err2); err != nil {
		return 0, err
	}
	args := []string{"run", "--quiet", "--settings", name + ".settings"}
	if !p.wall {
		args = append(args, "--trace", name+".json")
	}
	job := exec.CommandContext(p.ctx, self, append(args, p.args...)...)
	var complaints strings.Builder
	job.Stderr = &complaints // what the program prints is that of many runs
	began := time.Now()
	if err := job.Run(); err != nil {
		return 0, fmt.Errorf("the program fails with %s: %w\n%s", strings.Join(f.environ(), " "), err, complaints.String())
	}
	took := time.Since(began).Seconds()
	if p.wall {
		return took, nil
	}
	t, err := readTrace(name + ".json")
	if err != nil {
		return 0, err
	}
	os.Remove(name + ".json")
	for _, k := range t.Ranks {
		if k.Dropped > 0 {
			p.wall = true
			fmt.Fprintln(p.log, "tune: the program has more calls than a trace records: the time of the whole job counts")
			return p.run(f)
		}
	}
	return t.Span().SinceInit().Seconds(), nil
}
