package groups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-mpi/muster/bench/results"
	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/prof"
)

// study runs applications with one technique and without it, and compares what they
// report. Its table is a claim's like that of a group.
type study struct {
	name     string // of the table: study-NAME
	document string // that it is about
	title    string
	// note tells the conditions, and differs where and why the result is not that of the
	// document.
	note, differs string
	apps          []studyApp
	settings      []setting // the first is the reference; others are compared with it
	env           []string  // of all runs
	hosts         int       // of a lab; 0: this machine
	rate          string    // of its cables
	figures       []studyFigure
	// arrivals: a run with the profile of arrivals shows the imbalance at the call.
	arrivals bool
	// overRanks is the figure that is drawn over the number of ranks; "": the ratios are
	// drawn as bars.
	overRanks string
	claims    []results.Claim // those without tables are about this one
}

// studyApp is an application of a study.
type studyApp struct {
	name  string
	class string
	ranks int
	// calls are those that figures are about.
	calls []string
	// settings, if they are not those of the study.
	settings []setting
	targets  []target
}

// setting is a way to run an application: settings of the environment.
type setting struct {
	name string
	env  []string
}

// studyFigure is computed from a run.
type studyFigure struct {
	title string // with the unit
	value func(a *studyApp, r *appRun) float64
	// alone: it is shown, not compared.
	alone bool
}

// target is what a document reports for a figure with a setting, relative to the reference.
type target struct {
	figure, setting string
	document        string  // as the document reports it
	ratio           float64 // the same as a ratio of times or sizes; 0: none
	must            float64 // threshold of the ratio; 0: none
}

// appRun is what "muster app --json" prints.
type appRun struct {
	Seconds  float64 `json:"seconds"`
	InMPI    float64 `json:"in_mpi"`
	CPU      float64 `json:"cpu"`
	Verified bool    `json:"verified"`
	Calls    map[string]struct {
		Kind    string  `json:"kind"`
		Calls   int     `json:"calls"`
		Seconds float64 `json:"seconds"`
	} `json:"calls"`
	Counters map[prof.Name]struct {
		Sum float64 `json:"sum"`
		Max float64 `json:"max"`
	} `json:"counters"`
	Sizes []prof.SizeClass `json:"sizes"` // of the messages of all ranks
}

// timeIn returns the time in calls, the mean of the ranks.
func (r *appRun) timeIn(calls []string) (seconds float64) {
	for _, name := range calls {
		seconds += r.Calls[name].Seconds
	}
	return seconds
}

// kind returns the time in all calls of a kind.
func (r *appRun) kind(kind string) (seconds float64) {
	for _, c := range r.Calls {
		if c.Kind == kind {
			seconds += c.Seconds
		}
	}
	return seconds
}

func (a *studyApp) title() string { return fmt.Sprintf("%s %s, %d ranks", a.name, a.class, a.ranks) }

// settingsOf returns the settings that an application is run with.
func (s *study) settingsOf(a *studyApp) []setting {
	if a.settings != nil {
		return a.settings
	}
	return s.settings
}

// StudyOptions change what a study runs.
type StudyOptions struct {
	Apps  string // applications, separated by commas; "": all of the study
	Class string // instead of that of the study
	Ranks int    // instead of that of the study
}

// change returns the study with the options applied.
func (s *study) change(o StudyOptions) (*study, error) {
	changed := *s
	changed.apps = nil
	for _, a := range s.apps {
		if o.Apps != "" && !slices.Contains(strings.Split(o.Apps, ","), a.name) {
			continue
		}
		if o.Class != "" {
			a.class = o.Class
		}
		if o.Ranks > 0 {
			a.ranks = o.Ranks
		}
		// One number of ranks for all makes some of them the same.
		if !slices.ContainsFunc(changed.apps, func(b studyApp) bool { return b.title() == a.title() && a.settings == nil }) {
			changed.apps = append(changed.apps, a)
		}
	}
	for name := range strings.SplitSeq(o.Apps, ",") {
		if name != "" && !slices.ContainsFunc(s.apps, func(a studyApp) bool { return a.name == name }) {
			return nil, fmt.Errorf("no application %q in this study; it has %s", name, strings.Join(s.appNames(), ", "))
		}
	}
	return &changed, nil
}

func (s *study) appNames() (names []string) {
	for _, a := range s.apps {
		if !slices.Contains(names, a.name) {
			names = append(names, a.name)
		}
	}
	return names
}

// studyRuns collects what the runs of a study report.
type studyRuns struct {
	*study
	rounds int
	loads  []float64
	// values[app][figure][setting] has a value for each round; NaN: the run failed.
	values    [][][][]float64
	imbalance []imbalance // by application, if the study has arrivals
	failures  []error
}

// imbalance is T2 6.3.1: how far apart ranks enter a call, in times of a message.
type imbalance struct {
	average, worst float64
	known          bool
}

// measureStudy creates the hosts of a study, if it has any, and runs it.
func (s *Session) measureStudy(ctx context.Context, st *study) (r *studyRuns, err error) {
	var at hostSet
	if st.hosts > 0 {
		l, err := lab.Create(lab.Config{Hosts: st.hosts, Rate: st.rate, Prefix: "study"})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, l.Remove()) }()
		at = hostSet{hosts: l.Hosts(), rails: 1, rsh: l.Rsh()}
	}
	r = newStudyRuns(st, s.o.Rounds)
	done, all := 0, 0
	for i := range st.apps {
		all += r.rounds * len(st.settingsOf(&st.apps[i]))
	}
	run := func(cmd command) ([]byte, error) { return runBounded(ctx, s.o.Limit, cmd) }
	for round := range r.rounds {
		r.loads = append(r.loads, awaitQuiet(ctx, s.o.Settle))
		if err := r.round(ctx, round, func(a *studyApp, one setting) (*appRun, error) {
			out, err := run(st.command(s.bin.muster, at, a, one, nil))
			if err != nil {
				return nil, err
			}
			return parseRun(out)
		}, func(line string) {
			done++
			fmt.Fprintf(s.o.Log, "%s round %d of %d  %s\n", st.name, round+1, r.rounds, line)
			if s.o.Ran != nil {
				s.o.Ran(done, all, line)
			}
		}); err != nil {
			if s.o.Ran != nil && r.measured() {
				r.rounds = round + 1
				r.fillRound()
				return r, nil
			}
			return nil, err
		}
	}
	if st.arrivals {
		if err := r.profile(func(a *studyApp, one setting, file string) error {
			_, err := run(st.command(s.bin.muster, at, a, one, []string{"--profile=arrivals:" + file}))
			return err
		}); err != nil {
			return nil, err
		}
	}
	if !r.measured() {
		return nil, fmt.Errorf("no run succeeded: %w", errors.Join(r.failures...))
	}
	return r, nil
}

func newStudyRuns(st *study, rounds int) *studyRuns {
	r := &studyRuns{study: st, rounds: rounds}
	for i := range st.apps {
		figures := make([][][]float64, len(st.figures))
		for f := range figures {
			figures[f] = make([][]float64, len(st.settingsOf(&st.apps[i])))
		}
		r.values = append(r.values, figures)
	}
	return r
}

// round runs every application with every setting. The setting that begins changes, so that the
// state of the machine after a run affects all alike.
func (r *studyRuns) round(ctx context.Context, round int, run func(*studyApp, setting) (*appRun, error), log func(string)) error {
	for i := range r.apps {
		a := &r.apps[i]
		settings := r.settingsOf(a)
		for j := range settings {
			k := (j + round) % len(settings)
			got, err := run(a, settings[k])
			if ctx.Err() != nil {
				return ctx.Err()
			}
			outcome := ""
			if err != nil {
				err = fmt.Errorf("%s with %s: %w", a.title(), settings[k].name, err)
				r.failures, outcome = append(r.failures, err), err.Error()
			} else {
				outcome = fmt.Sprintf("%s with %s: %.2f s, %.2f s in MPI", a.title(), settings[k].name, got.Seconds, got.InMPI)
			}
			log(outcome)
			for f := range r.figures {
				v := math.NaN()
				if err == nil {
					v = r.figures[f].value(a, got)
				}
				r.values[i][f][k] = append(r.values[i][f][k], v)
			}
		}
	}
	return nil
}

// fillRound adds runs that failed for those that an interruption left out of the last round.
func (r *studyRuns) fillRound() {
	for _, figures := range r.values {
		for _, settings := range figures {
			for k := range settings {
				for len(settings[k]) < r.rounds {
					settings[k] = append(settings[k], math.NaN())
				}
			}
		}
	}
}

// profile runs every application once with the profile of arrivals, as configured by its
// reference.
func (r *studyRuns) profile(run func(a *studyApp, one setting, file string) error) error {
	folder, err := os.MkdirTemp("", "muster-study-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for i := range r.apps {
		a, file := &r.apps[i], filepath.Join(folder, strconv.Itoa(i)+".json")
		found, err := imbalance{}, run(a, r.settingsOf(a)[0], file)
		if err == nil {
			found, err = readImbalance(file, a.calls[0])
		}
		if err != nil {
			r.failures = append(r.failures, fmt.Errorf("%s, arrivals: %w", a.title(), err))
		}
		r.imbalance = append(r.imbalance, found)
	}
	return nil
}

// readImbalance finds the call site of a routine at which ranks spend most time.
func readImbalance(file, routine string) (imbalance, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return imbalance{}, err
	}
	arrivals, err := prof.DecodeArrivals(text)
	if err != nil {
		return imbalance{}, err
	}
	for _, site := range arrivals.Sites() {
		if site.Routine == routine {
			return imbalance{site.AverageFactor, site.WorstFactor, true}, nil
		}
	}
	return imbalance{}, fmt.Errorf("the profile has no call of %s", routine)
}

// measured reports whether one figure is known.
func (r *studyRuns) measured() bool {
	for _, app := range r.values {
		for _, figure := range app {
			for _, values := range figure {
				if spreadOf(values).known() {
					return true
				}
			}
		}
	}
	return false
}

// command returns the command line of a run.
func (s *study) command(program string, at hostSet, a *studyApp, one setting, more []string) command {
	argv := []string{program, "run", "-n", strconv.Itoa(a.ranks), "--label", "never"}
	if at.hosts != nil {
		argv = append(argv, "--bind-to", "none", "--hosts", at.slots(a.ranks), "--rsh", at.rsh)
	}
	argv = append(argv, more...)
	return command{
		env:  slices.Concat(s.env, one.env),
		argv: append(argv, program, "app", a.name, "--class", a.class, "--json"),
	}
}

// parseRun reads the last object of the output.
func parseRun(out []byte) (*appRun, error) {
	text := string(out)
	brace := strings.LastIndex(text, `{"name"`)
	if brace < 0 {
		return nil, errors.New("the application printed no result")
	}
	r := new(appRun)
	if err := json.NewDecoder(strings.NewReader(text[brace:])).Decode(r); err != nil {
		return nil, fmt.Errorf("cannot read the result of the application: %w", err)
	}
	if !r.Verified {
		return nil, errors.New("the result of the application is wrong")
	}
	return r, nil
}
