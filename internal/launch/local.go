package launch

// The backend for this machine: one crew. Its lines go to the launcher's output, and
// the job's server serves its PMI clients.

import (
	"fmt"
	"os"

	"github.com/muster-mpi/muster/internal/pmi"
)

type localBackend struct {
	*crew
	job      *job
	hostname string
}

func newLocalBackend(j *job) (*localBackend, error) {
	cfg := j.cfg
	b := &localBackend{job: j, hostname: hostname()}
	j.server = pmi.NewServer(pmi.ServerConfig{Size: cfg.Ranks, App: func(rank int) int { return programOf(cfg.Programs, rank) }, Event: j.pmiEvent, Answer: j.answerRank})
	var err error
	b.crew, err = newCrew(crewSpec{
		ranks: cfg.layout.ranks[0], size: cfg.Ranks,
		programs: cfg.Programs, env: append(append([]string{}, cfg.Env...), cfg.ExtraEnv...),
		bind: cfg.Bind, within: cfg.MapBy.Within, reportBindings: cfg.ReportBindings, server: j.server,
		stdin:  func(theirs *files) (*os.File, error) { return inputFile(cfg.Stdin, theirs) },
		file:   b.outputDirectly,
		lines:  j.console.lines,
		post:   j.post,
		notice: func(text string) { j.notice(text) },
	})
	return b, err
}

func hostname() string {
	if host, err := os.Hostname(); err == nil {
		return host
	}
	return "localhost"
}

// outputDirectly returns the launcher's own file for a single rank without labels, so
// that the rank can use a terminal.
func (b *localBackend) outputDirectly(isStderr bool) *os.File {
	f, _ := b.job.cfg.Output.whole(b.job.cfg.Ranks, isStderr).(*os.File)
	return f
}

// start posts events before the loop runs: their channel is large enough.
func (b *localBackend) start() {
	if err := b.crew.start(); err != nil {
		b.job.post(event{failed: fmt.Errorf("launch: %w", err)})
	}
}

func (b *localBackend) markDead(ranks spans, host, status string) {
	b.crew.markDead(ranks, host, status)
	b.crew.evict(ranks, b.job.ending.grace.quiet(len(b.members)))
}

func (b *localBackend) host(int) string { return b.hostname }

func (b *localBackend) pulse() (pulse, bool) { return b.crew.pulse(), b.board != nil }

func (b *localBackend) rows(threads bool) ([]rankRow, []string) { return b.crew.states(threads), nil }
