package groups

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-mpi/muster/bench"
)

// statisticOf returns one of the statistics of a figure.
func statisticOf(r *bench.Result, statistic string) float64 {
	switch statistic {
	case "min":
		return r.Min
	case "p50":
		return r.P50
	case "p99":
		if r.P99 == 0 { // of too few samples
			return math.NaN()
		}
		return r.P99
	}
	return r.Value
}

// runs collects the figures of one group.
type runs struct {
	group      *group
	contenders []contender
	limit      time.Duration
	rounds     int
	settle     time.Duration
	statistic  string
	log        io.Writer
	shared     outputs
	keepAwake  func() (stop func(), err error) // called for each round
	hops       []float64                       // ns, by round; NaN: not measured
	loads      []float64                       // share of the cores that other processes used, by round
	// values[c][i] are the figures of line i by round; NaN: the run failed.
	values [contenderCount][][]float64
	// tails are the same for p99, if the figures are times.
	tails    [contenderCount][][]float64
	failures [contenderCount][]error
}

func newRuns(g *group, o Options) *runs {
	r := &runs{group: g, log: o.Log, limit: o.Limit, settle: o.Settle, statistic: o.Statistic, rounds: o.Rounds, contenders: append(slices.Clone(g.peers), muster),
		keepAwake: func() (func(), error) { return func() {}, nil }}
	if g.rounds > 0 {
		r.rounds = min(r.rounds, g.rounds)
	}
	for _, c := range r.contenders {
		r.values[c], r.tails[c] = make([][]float64, len(g.lines)), make([][]float64, len(g.lines))
	}
	return r
}

// round runs every contender once. The one that begins changes, so that the state of caches
// and clocks after a run affects all alike.
func (r *runs) round(ctx context.Context, round int, cpus []int, bin binaries, at hostSet) error {
	load := awaitQuiet(ctx, r.settle)
	r.loads = append(r.loads, load)
	letHalt, err := r.keepAwake() // after awaitQuiet, which would take it for other processes
	if err != nil {
		return err
	}
	defer letHalt()
	hop := math.NaN()
	if len(cpus) == 2 {
		hop = cacheLineHop(cpus[0], cpus[1])
	}
	r.hops = append(r.hops, hop)
	for i := range r.contenders {
		c := r.contenders[(i+round)%len(r.contenders)]
		start := time.Now()
		values, tails, err := r.one(ctx, r.group.command(c, bin, at), round)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		outcome := fmt.Sprintf("%.1f s", time.Since(start).Seconds())
		if err != nil {
			outcome = err.Error()
			r.failures[c] = append(r.failures[c], err)
		}
		fmt.Fprintf(r.log, "%-11s round %d of %d  others %3.0f %%  hand-over %4.0f ns  %-14s %s\n",
			r.group.name, round+1, r.rounds, load*100, hop, c, outcome)
		for k := range r.group.lines {
			v := math.NaN()
			if err == nil {
				v = values[k]
			}
			r.values[c][k] = append(r.values[c][k], v)
			if tails != nil {
				r.tails[c][k] = append(r.tails[c][k], tails[k])
			}
		}
	}
	return nil
}

// outputs keeps what runs printed, by round, command and network: several groups show
// figures of the same runs.
type outputs map[string][]byte

// runKey identifies runs that are the same in all but the figures that are shown.
func (g *group) runKey(cmd command, round int) string {
	own := ""
	if g.alone {
		own = g.name
	}
	return fmt.Sprintf("%s %d %q %q %d %d %q %d %g", own, round, cmd.env, cmd.argv, g.hosts, g.rails, g.rate, g.queue, g.loss)
}

// one runs one contender once and returns a figure for each line of the group, and its p99
// if it is a time.
func (r *runs) one(ctx context.Context, cmd command, round int) (values, tails []float64, err error) {
	start, key := time.Now(), r.group.runKey(cmd, round)
	if out, ok := r.shared[key]; ok && !r.group.wallClock {
		return r.figures(out)
	}
	enough := func(out []byte) bool {
		if r.group.wallClock || r.group.direct {
			return false
		}
		_, err := r.group.figures(out, r.statistic)
		return err == nil
	}
	out, err := runUntil(ctx, max(r.limit, r.group.limit), cmd, enough)
	if err != nil {
		return nil, nil, err
	}
	if r.group.wallClock {
		return []float64{time.Since(start).Seconds()}, nil, nil
	}
	values, tails, err = r.figures(out)
	if err == nil && r.shared != nil {
		r.shared[key] = out
	}
	return values, tails, err
}

// figures returns the figure of each line in the output of a run, and its p99.
func (r *runs) figures(out []byte) (values, tails []float64, err error) {
	values, err = r.group.figures(out, r.statistic)
	if err == nil && r.group.unit == "us" && r.group.shown != "ratio" {
		tails, err = r.group.figures(out, "p99")
	}
	return values, tails, err
}

// figures finds the value of each line in the output of a run. Launchers may label lines or
// add their own: a record begins with a brace.
func (g *group) figures(out []byte, statistic string) ([]float64, error) {
	values, bases := make([]float64, len(g.lines)), make([]float64, len(g.lines))
	for i, l := range g.lines {
		values[i], bases[i] = math.NaN(), math.NaN()
		if l.over == "" {
			bases[i] = 1
		}
	}
	for text := range strings.Lines(string(out)) {
		brace := strings.IndexByte(text, '{')
		if brace < 0 {
			continue
		}
		var rec bench.Result
		if err := readRecord(text[brace:], &rec); err != nil {
			return nil, fmt.Errorf("cannot read the line %q: %w", strings.TrimSpace(text), err)
		}
		if g.simulated {
			rec.Protocol = g.requestedName(rec.Protocol)
		}
		for i, l := range g.lines {
			isBase := l.over != "" && rec.Protocol == l.over
			if rec.Metric != cmp.Or(l.metric, g.metric) || !l.selects(&rec, isBase) {
				continue
			}
			factor, ok := unitFactors[g.unit][rec.Unit]
			switch {
			case isBase:
				bases[i] = statisticOf(&rec, statistic)
			case l.over != "":
				values[i] = statisticOf(&rec, statistic)
			case !ok:
				return nil, fmt.Errorf("%s is in %q, expected a unit like %q", g.name, rec.Unit, g.unit)
			default:
				values[i] = statisticOf(&rec, statistic) * factor
			}
		}
	}
	for i, l := range g.lines {
		if values[i] /= bases[i]; math.IsNaN(values[i]) && statistic != "p99" {
			return nil, fmt.Errorf("nothing was printed for %s", l.title)
		}
	}
	return values, nil
}

// readRecord reads a line of "muster bench" or of "muster sim". Of the second, the figure is the
// mean time of a rank in the call, or the time until the last one leaves it if there is a root.
func readRecord(text string, rec *bench.Result) error {
	var simulated struct {
		Algorithm  string  `json:"algorithm"`
		Collective string  `json:"collective"`
		Bytes      int     `json:"bytes"`
		InCalls    float64 `json:"in_calls_us"`
		Last       float64 `json:"last_us"`
	}
	err := json.Unmarshal([]byte(text), rec)
	if err != nil || json.Unmarshal([]byte(text), &simulated) != nil || simulated.Collective == "" {
		return err
	}
	rec.Metric, rec.Protocol, rec.Size, rec.Unit = simulated.Collective, simulated.Algorithm, simulated.Bytes, "us"
	rec.Value = simulated.InCalls
	if simulated.Collective == "gather" || simulated.Collective == "scatter" {
		rec.Value = simulated.Last
	}
	rec.Min, rec.P50 = rec.Value, rec.Value
	return nil
}

// selects reports whether a record of the right metric is the figure of the line, or its
// base.
func (l *line) selects(rec *bench.Result, isBase bool) bool {
	switch {
	case l.size != 0 && l.size != int64(rec.Size), l.against != rec.Against, l.device != "" && l.device != rec.Device, l.connections != 0 && l.connections != rec.Connections:
		return false
	}
	return isBase || l.protocol == "" || l.protocol == rec.Protocol
}

var errHung = errors.New("hung and was killed")

// runMark is the environment variable that identifies the processes of one run, in whatever
// session a launcher has put them.
const runMark = "BENCH_PEERS_RUN"

// runBounded runs a command and returns its standard output. If it takes too long it gets
// SIGTERM, then SIGKILL, and so does every process it left behind.
func runBounded(ctx context.Context, limit time.Duration, run command) ([]byte, error) {
	return runUntil(ctx, limit, run, func([]byte) bool { return false })
}

// exitTimeout is the time for a run to exit after it has printed all figures. MPICH over TCP
// often hangs in MPI_Finalize with eight ranks or more; its figures count.
const exitTimeout = 3 * time.Second

// runUntil is runBounded, and ends the run soon after its output is enough.
func runUntil(ctx context.Context, limit time.Duration, run command, enough func([]byte) bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, complaints output
	done, finish := context.WithCancel(ctx)
	defer finish()
	go func() {
		for done.Err() == nil && !enough(out.bytes()) {
			time.Sleep(100 * time.Millisecond)
		}
		select {
		case <-done.Done():
		case <-time.After(exitTimeout):
			cancel()
		}
	}()
	mark := fmt.Sprintf("%s=%d.%d", runMark, os.Getpid(), time.Now().UnixNano())
	defer killMarked(mark)
	cmd := exec.CommandContext(ctx, run.argv[0], run.argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	// Open MPI does not run as root without these two.
	cmd.Env = append(os.Environ(), mark, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	cmd.Env = append(cmd.Env, run.env...)
	endWithGroup(cmd)
	cmd.WaitDelay = 3 * time.Second // then it is killed, and its pipes are closed
	err := cmd.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("%w after %s", errHung, limit)
	case err != nil && enough(out.bytes()):
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(run.argv[0]), err, lastLine(string(complaints.bytes())))
	}
	return out.bytes(), nil
}

// output collects what a run prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.text.Bytes())
}

// killMarked kills the remaining processes of a run. A launcher may have moved them to
// another session, so a signal to the process group does not reach them. It needs /proc.
func killMarked(mark string) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), append([]byte{0}, mark+"\x00"...)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			kill(pid)
		}
	}
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
