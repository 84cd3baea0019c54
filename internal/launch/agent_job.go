package launch

// The ranks of an agent. It starts them as the launcher of a local job does; their PMI
// server requests missing values from the parent agent.

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muster-mpi/muster/internal/pmi"
)

// prepare decodes the job and creates the PMI server of this host.
func (a *agent) prepare(body []byte) error {
	var spec jobSpec
	if err := json.Unmarshal(body, &spec); err != nil {
		return err
	}
	if n := len(a.block); n == 0 || a.block[n-1] >= spec.Size || len(spec.Programs) == 0 || spec.Copies != nil && len(spec.Copies) != len(spec.Programs) {
		return fmt.Errorf("the job has no ranks for host %d", a.self())
	}
	server := pmi.NewServer(pmi.ServerConfig{
		Size: spec.Size, JobID: spec.JobID, Mapping: spec.Mapping,
		Serves: len(a.block), Up: a, Keep: spec.Keep,
		App:   func(rank int) int { return programOf(spec.Programs, rank) },
		Event: a.pmiEvent,
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spec, a.server = spec, server
	return nil
}

// pmiEvent reports what a rank's PMI client has done. An abort, and terms that the
// launcher has to compare, are sent at once.
func (a *agent) pmiEvent(e pmi.Event) {
	switch {
	case e.Unreachable:
		a.sendUp(frameEvent, eventBody(e))
	case e.Fence:
		a.reports.add(func(r *report) { r.addFenced(e.Nth, e.Rank) })
	case e.Phase == pmi.PhaseFinalized:
		a.reports.add(func(r *report) { r.finalized.add(span{e.Rank, e.Rank}) })
	case !a.joinedAsOthers(e):
		a.reports.flush()
		a.sendUp(frameEvent, eventBody(e))
	}
}

// joinedAsOthers reports that a rank of this host, or of one below, has joined with the
// terms of a rank that was sent to the launcher.
func (a *agent) joinedAsOthers(e pmi.Event) bool {
	if e.Phase != pmi.PhaseJoined || e.Unreachable || e.Refused != "" || !a.theServer().SameTerms(pmi.Party{Rank: e.Rank, Host: e.Host, Terms: e.Terms}) {
		return false
	}
	a.reports.add(func(r *report) { r.joined.add(span{e.Rank, e.Rank}) })
	return true
}

// startRanks starts the ranks of this host.
func (a *agent) startRanks() error {
	spec := &a.spec
	env := append(os.Environ(), spec.Env...)
	ranks := a.block
	programs := slices.Clone(spec.Programs)
	for i := range programs {
		p := &programs[i]
		if !slices.ContainsFunc(ranks, func(rank int) bool { return programOf(programs, rank) == i }) {
			continue // it may be missing on this host
		}
		if info, err := os.Stat(p.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("there is no directory %s, where the job was started: create it, or start the job in a directory that all hosts have", p.Dir)
		}
		var err error
		if spec.Copies != nil {
			p.Prog, err = a.copyOf(spec.Copies[i])
		} else {
			p.Prog, err = findProgram(p.Prog, p.Dir, env)
		}
		if err != nil {
			return err
		}
	}
	env, err := a.prepareFetch(env, ranks)
	if err != nil {
		return err
	}
	crew, err := newCrew(crewSpec{
		ranks: ranks, size: spec.Size, programs: programs, env: env,
		bind: spec.Bind, within: spec.Within, reportBindings: spec.ReportBindings, server: a.server,
		stdin: a.stdinFile, lines: a.lines, post: a.handleEvent,
		notice: func(text string) { a.sendUp(frameNotice, []byte(text)) },
	})
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.crew = crew
	a.mu.Unlock()
	if err := crew.start(); err != nil {
		return err
	}
	if spec.Pulse > 0 && crew.board != nil {
		go a.reportPulse(spec.Pulse)
	}
	return nil
}

func (a *agent) copyOf(file int) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.copies.path(file)
}

// findProgram resolves a program name as a shell on this host does.
func findProgram(name, dir string, env []string) (string, error) {
	runs := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
	}
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if !runs(path) {
			return "", fmt.Errorf("there is no program %s, or it is not executable: all hosts of a job need it at the same path", path)
		}
		return path, nil
	}
	search := ""
	for _, kv := range env { // the last value applies
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = value
		}
	}
	for _, folder := range filepath.SplitList(search) {
		if path := filepath.Join(folder, name); filepath.IsAbs(path) && runs(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no program %s in PATH=%s", name, search)
}

// stdinFile returns a pipe for rank 0, to which the agent writes the launcher's input.
func (a *agent) stdinFile(theirs *files) (*os.File, error) {
	if !a.spec.Stdin {
		return nil, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create its input pipe: %w", err)
	}
	go func() {
		defer write.Close()
		for {
			text, ok := a.stdin.take()
			if !ok || len(text) == 0 {
				return
			}
			if _, err := write.Write(text); err != nil {
				a.sendUp(frameStdinOK, numbersBody(0)) // rank 0 no longer reads
				return
			}
			a.sendUp(frameStdinOK, numbersBody(int64(len(text))))
		}
	}()
	return theirs.add(read), nil
}

func (a *agent) lines(rank int, isStderr bool) func(text []byte) {
	return func(text []byte) {
		if len(text) > 0 && a.out.take(len(text)) {
			a.sendUp(frameOutput, outputBody(rank, isStderr, text))
		}
	}
}

// handleEvent sends events of the crew to the parent, and the remaining output after the last.
func (a *agent) handleEvent(e event) {
	switch {
	case e.pmi != nil:
		a.pmiEvent(*e.pmi)
	case e.started:
		a.reports.add(func(r *report) { r.addStarted(e.rank, e.pid) })
	case e.exited:
		if e.end.status() == 0 && a.server.Phase(e.rank) != pmi.PhaseJoined {
			a.reports.add(func(r *report) { r.left.add(span{e.rank, e.rank}) })
		} else {
			a.reports.flush()
			a.sendUp(frameExited, exitedBody(e.rank, e.end))
		}
		a.mu.Lock()
		a.exited++
		last := a.exited == len(a.crew.members)
		a.mu.Unlock()
		if last {
			a.sendUp(framePulse, a.crew.pulse().body())
			go func() { // the crew must go on reading output
				a.crew.drain()
				a.sendFetched()
				a.reports.add(func(r *report) { r.drained.add(span{int(a.self()), int(a.self())}) })
			}()
		}
	}
}

// reportPulse sends the pulse to the parent whenever it has changed.
func (a *agent) reportPulse(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	reported := pulse{moving: true}
	for {
		select {
		case <-a.stopped:
			return
		case <-t.C:
		}
		if p := a.crew.pulse(); p != reported {
			reported = p
			a.sendUp(framePulse, p.body())
		}
	}
}

// The following methods implement pmi.Upstream: requests to the parent's server.

func (a *agent) Values(values []pmi.Pair) {
	for _, body := range valuesBodies(values) {
		a.sendUp(frameValues, body)
	}
}

func (a *agent) Get(key string, done func(value string, ok bool)) {
	a.sendUp(frameGet, getBody(a.gets.add(done), key))
}
