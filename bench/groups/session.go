package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/bench/results"
	"github.com/muster-mpi/muster/internal/lab"
)

// Options select the groups and how they are measured.
type Options struct {
	Only      string        // groups, separated by commas, or all if empty
	Rounds    int           // of each group
	Limit     time.Duration // for one run
	Settle    time.Duration // for the machine to become quiet before a round; 0: the hand-over of a cache line is not measured either
	Statistic string        // which figure of a run is compared: value, min, p50 or p99
	Protocol  string        // of ours, in groups about long messages; as configured if empty
	Before    string        // an earlier muster binary that replaces the peers
	Within    float64       // how much worse than before a figure may be, as a fraction
	// Alone measures ours by itself in a group whose peers are not installed. Without it, the
	// group is skipped.
	Alone bool
	// Bin is the folder for the programs that are built.
	Bin string
	// Root is the module root. "": there are no sources, and a group that needs a program
	// built from them is skipped.
	Root string
	// Muster is the muster command. "": it is built from Root.
	Muster string
	// Log shows each run.
	Log io.Writer
	// Study changes what studies run.
	Study StudyOptions
	// Ran, if not nil, is called after each run of a study: how many of all are done, and what
	// the run reported. If the context of Measure ends after it, the table has these runs.
	Ran func(done, all int, what string)
}

// Skipped is a group that this machine cannot run.
type Skipped struct {
	Group  string
	Reason error
}

// Session measures groups with programs that it has built.
type Session struct {
	o        Options
	groups   []*group
	studies  []*study
	bin      binaries
	cpus     []int
	versions map[contender]string
	shared   outputs
}

// Names returns the names of the groups that are selected by only.
func Names(only string) ([]string, error) {
	groups, err := selectGroups(Options{Only: only})
	return tableNames(groups, selectStudies(only)), err
}

// tableNames returns the names of the tables of groups and studies.
func tableNames(groups []*group, studies []*study) (names []string) {
	for _, g := range groups {
		names = append(names, g.name)
	}
	for _, st := range studies {
		names = append(names, st.name)
	}
	return names
}

// NewSession selects groups and builds the programs that they need. It also returns the
// groups that this machine cannot run.
func NewSession(ctx context.Context, o Options) (*Session, []Skipped, error) {
	if o.Rounds < 1 || !slices.Contains([]string{"value", "min", "p50", "p99"}, o.Statistic) {
		return nil, nil, fmt.Errorf("%d rounds of %q: want at least 1, of value, min, p50 or p99", o.Rounds, o.Statistic)
	}
	groups, err := selectGroups(o)
	if err != nil {
		return nil, nil, err
	}
	s := &Session{o: o, shared: outputs{}, versions: contenderVersions(ctx)}
	var needed []program
	var skipped []Skipped
	s.groups, needed, skipped = possible(groups, o)
	var skippedStudies []Skipped
	if s.studies, skippedStudies, err = possibleStudies(selectStudies(o.Only), o); err != nil {
		return nil, nil, err
	}
	skipped = append(skipped, skippedStudies...)
	if len(s.studies) > 0 && !slices.Contains(needed, musterProgram) {
		needed = append(needed, musterProgram)
	}
	if s.bin, err = build(ctx, o, needed); err != nil {
		return nil, nil, err
	}
	if o.Before != "" { // the ranks may start in another folder
		if s.bin.before, err = filepath.Abs(o.Before); err != nil {
			return nil, nil, err
		}
	}
	if o.Settle > 0 { // on a busy machine it would take long, and mean little
		if s.cpus, err = twoCPUs(); err != nil {
			fmt.Fprintln(o.Log, "the cache-line hand-over is not measured:", err)
		}
	}
	return s, skipped, nil
}

// Groups returns the names of the groups that can be measured.
func (s *Session) Groups() []string {
	return tableNames(s.groups, s.studies)
}

// Outcome is what a group has yielded.
type Outcome struct {
	Table    *results.Table // without its stamp
	Versions []string       // of the peers
	Picture  []byte         // SVG; nil: none
}

// Measure measures the group with a name.
func (s *Session) Measure(ctx context.Context, name string) (*Outcome, error) {
	if i := slices.IndexFunc(s.studies, func(st *study) bool { return st.name == name }); i >= 0 {
		runs, err := s.measureStudy(ctx, s.studies[i])
		if err != nil {
			return nil, err
		}
		picture, err := runs.picture()
		return &Outcome{Table: runs.table(), Picture: picture}, err
	}
	i := slices.IndexFunc(s.groups, func(g *group) bool { return g.name == name })
	if i < 0 {
		return nil, fmt.Errorf("group %q is not among those of this session", name)
	}
	g := s.groups[i]
	sum, err := s.measureGroup(ctx, g)
	if err != nil {
		return nil, err
	}
	if !sum.measured() {
		return nil, fmt.Errorf("no run of ours succeeded: %w", errors.Join(sum.failures[muster]...))
	}
	picture, err := sum.picture()
	return &Outcome{Table: sum.table(), Versions: g.versions(s.versions), Picture: picture}, err
}

// AddTo adds the table to a run in a folder, and its chart to the folder. The command is that
// which measures this table alone.
func (o *Outcome) AddTo(run *results.Run, folder, command string) error {
	if err := run.Add(folder, o.Table, command, o.Versions); err != nil || o.Picture == nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, o.Table.Picture), o.Picture, 0o644)
}

// Forget makes the next measurement of a group run everything again, also what another group
// has run.
func (s *Session) Forget() { clear(s.shared) }

// measureGroup creates the hosts of the group, if it has any, for as long as it runs.
func (s *Session) measureGroup(ctx context.Context, g *group) (sum summary, err error) {
	var at hostSet
	runs := newRuns(g, s.o)
	runs.shared = s.shared
	if g.over == hosts {
		l, err := lab.Create(lab.Config{Hosts: g.hosts, Rails: g.rails, Rate: g.rate, Loss: g.loss, Queue: g.queue, Prefix: "peers"})
		if err != nil {
			return sum, err
		}
		defer func() { err = errors.Join(err, l.Remove()) }()
		at = hostSet{hosts: l.Hosts(), rails: max(g.rails, 1), rsh: l.Rsh(), onHost: s.bin.onHost}
		if len(at.hosts) > 1 {
			at.second = l.Addr(at.hosts[1], 0)
		}
		if g.ranks <= runtime.NumCPU() && !g.direct {
			runs.keepAwake = func() (func(), error) { return l.KeepAwake(s.bin.muster) }
		}
	}
	for round := range runs.rounds {
		if err := runs.round(ctx, round, s.cpus, s.bin, at); err != nil {
			return sum, err
		}
	}
	return runs.summary(), nil
}

func selectGroups(o Options) ([]*group, error) {
	var chosen []*group
	for _, g := range plan() {
		if !g.selected(o.Only) || g.onRequest && o.Only == "" {
			continue
		}
		if o.Before != "" {
			g.compareWithBefore(o.Within)
		}
		if protocol := cmp.Or(o.Protocol, g.protocol); g.protocols && protocol != "" {
			g.ours += " --protocol " + protocol
			g.note += " Ours runs with --protocol " + protocol + "."
		}
		chosen = append(chosen, g)
	}
	for name := range strings.SplitSeq(o.Only, ",") {
		if !slices.ContainsFunc(plan(), func(g *group) bool { return g.selected(name) }) && (o.Only == "" || selectStudies(name) == nil) {
			return nil, fmt.Errorf("no group %q; the groups are %s", name, strings.Join(tableNames(plan(), studies()), ", "))
		}
	}
	return chosen, nil
}

// selected reports whether -only names the group or its family.
func (g *group) selected(only string) bool { return selects(only, g.name) }

// selects reports whether -only, if it is given, names a table or its family.
func selects(only, table string) bool {
	if only == "" {
		return true
	}
	for name := range strings.SplitSeq(only, ",") {
		if results.Match(name, table) || strings.HasPrefix(table, name+"-") {
			return true
		}
	}
	return false
}

// compareWithBefore replaces the peers with an earlier build of ours.
func (g *group) compareWithBefore(within float64) {
	g.peers, g.beside, g.added = []contender{before}, false, false
	g.lines = slices.Clone(g.lines)
	for i := range g.lines {
		g.lines[i].peers = nil
		g.lines[i].bound = 1 + within
		if g.largerBetter {
			g.lines[i].bound = 1 - within
		}
	}
}
