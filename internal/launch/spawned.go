package launch

// Jobs that the ranks of a running job start (MPI_Comm_spawn). Each is a job of its own, with its
// own server, board, agents and failures, which Run starts as any other, on the hosts of the first
// one. That its ranks meet the ranks that asked is a matter of package mpi: the launcher passes
// their join token on (pmi.EnvParent), and reports what has become of the job.
//
// A job ends its spawned jobs if it fails. If it succeeds, it waits for them, and has their
// status.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/muster-mpi/muster/internal/pmi"
)

// spawnedJobs are the jobs that ranks of a job have started.
type spawnedJobs struct {
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	jobs []*spawnedJob // the number of a job is its index plus one
	over bool          // no more are started
}

type spawnedJob struct {
	done   chan struct{} // closed when the fields below are set
	result Result
	err    error
}

// errParentEnded is why a spawned job is cancelled.
var errParentEnded = errors.New("the job that had spawned it ended")

// answerRank answers a request of a rank to the launcher.
func (j *job) answerRank(request string, done func(answer string, ok bool)) {
	var r pmi.JobRequest
	var a pmi.JobAnswer
	err := json.Unmarshal([]byte(request), &r)
	switch {
	case err != nil:
	case r.Name != nil:
		a.Port, err = j.cfg.names.answer(r.Name)
	case r.Spawn != nil:
		a.Job, err = j.spawn(r.Spawn)
	case j.cfg.replacements == nil && (r.Replace != nil || r.Replaced != "" || r.Withdrawn != "" || r.Failures != nil):
		err = errNoRespawn
	case r.Replace != nil:
		err = j.cfg.replacements.replace(r.Replace)
	case r.Replaced != "":
		a, err = j.cfg.replacements.state(r.Replaced)
	case r.Withdrawn != "":
		j.cfg.replacements.withdraw(r.Withdrawn)
	case r.Failures != nil:
		a.Failures = j.cfg.replacements.failuresFrom(r.Failures.From)
	default:
		a, err = j.spawned.state(r.State)
	}
	if err != nil {
		a.Why = err.Error()
	}
	text, _ := json.Marshal(a)
	done(string(text), true)
}

// spawn starts a job and returns its number.
func (j *job) spawn(r *pmi.SpawnRequest) (int, error) {
	s := &j.spawned
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.ctx == nil || s.ctx.Err() != nil {
		return 0, errors.New("this job is being ended")
	}
	cfg, err := j.spawnConfig(r, len(s.jobs)+1)
	if err != nil {
		return 0, err
	}
	job := &spawnedJob{done: make(chan struct{})}
	s.jobs = append(s.jobs, job)
	j.log.Info("spawn", "job", len(s.jobs), "programs", len(cfg.Programs))
	go func() {
		defer close(job.done)
		job.result, job.err = Run(s.ctx, cfg)
	}()
	return len(s.jobs), nil
}

// spawnConfig returns the configuration of a job that ranks of this one have asked for.
func (j *job) spawnConfig(r *pmi.SpawnRequest, number int) (cfg Config, err error) {
	c := j.cfg
	cfg = Config{
		Env: c.Env, Dir: c.Dir, Remote: c.Remote, MapBy: c.MapBy, Limits: c.Limits, ExitLeaves: c.ExitLeaves, spawned: true, names: c.names,
		ExtraEnv: append(slices.Clip(c.ExtraEnv), pmi.EnvParent+"="+r.Parent),
		Bind:     BindNone, // the ranks that are there have the cores
	}
	cfg.Remote.Fetch = Fetch{}
	cfg.Output = c.Output
	cfg.Output.Stdout, cfg.Output.Stderr = j.console.stdout, j.console.stderr
	if c.Output.Dir != "" {
		cfg.Output.Dir = filepath.Join(c.Output.Dir, "spawned-"+strconv.Itoa(number))
	}
	for _, h := range c.Hosts {
		if len(r.Hosts) == 0 || slices.Contains(r.Hosts, h.Name) {
			cfg.Hosts = append(cfg.Hosts, Host{Name: h.Name}) // the slots are taken; ranks are divided evenly
		}
	}
	if len(cfg.Hosts) == 0 && (len(c.Hosts) > 0 || len(r.Hosts) > 0 && !slices.ContainsFunc(r.Hosts, isThisHost)) {
		return cfg, fmt.Errorf("none of the hosts %s has ranks of this job", strings.Join(r.Hosts, ", "))
	}
	for _, p := range r.Programs {
		one := Program{Ranks: p.Ranks, Args: p.Args, Dir: p.Dir, Env: p.Env}
		if one.Prog, err = findSpawned(p.Prog, cmp.Or(p.Dir, c.Dir)); err != nil && len(cfg.Hosts) == 0 {
			return cfg, err
		}
		cfg.Programs = append(cfg.Programs, one)
	}
	return cfg, nil
}

// isThisHost reports whether a name is one of this host, with or without its domain.
func isThisHost(name string) bool {
	own, _ := os.Hostname()
	short, _, _ := strings.Cut(own, ".")
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1", own, short}, name)
}

// findSpawned returns the path of a program to start. A relative one with a directory is relative
// to that of the launcher or, if it is not there, to the working directory of its ranks.
func findSpawned(prog, dir string) (string, error) {
	path, err := exec.LookPath(prog)
	if err != nil && strings.Contains(prog, "/") && !filepath.IsAbs(prog) && dir != "" {
		path, err = exec.LookPath(filepath.Join(dir, prog))
	}
	if err != nil {
		return prog, fmt.Errorf("start %s: %w", prog, err)
	}
	return filepath.Abs(path)
}

// state reports what has become of a job.
func (s *spawnedJobs) state(number int) (pmi.JobAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 1 || number > len(s.jobs) {
		return pmi.JobAnswer{}, fmt.Errorf("this job has not started a job %d", number)
	}
	job := s.jobs[number-1]
	select {
	case <-job.done:
		return pmi.JobAnswer{Ended: true, Why: job.describeEnd()}, nil
	default:
		return pmi.JobAnswer{}, nil
	}
}

// describeEnd returns how a job has ended.
func (s *spawnedJob) describeEnd() string {
	switch {
	case s.err != nil:
		return s.err.Error()
	case s.result.Cause != "":
		return s.result.Cause
	}
	return "all of its processes have exited with status " + strconv.Itoa(s.result.Status)
}

// open allows ranks to start jobs, until the context ends.
func (s *spawnedJobs) open(ctx context.Context) { s.ctx, s.cancel = context.WithCancelCause(ctx) }

// finish waits for the spawned jobs of a job whose ranks have exited, or ends them if it has
// failed or a signal arrives.
func (s *spawnedJobs) finish(failed bool, signals <-chan os.Signal) {
	s.mu.Lock()
	s.over = true
	jobs := s.jobs
	s.mu.Unlock()
	if failed {
		s.cancel(errParentEnded)
	}
	for i := 0; i < len(jobs); {
		select {
		case <-jobs[i].done:
			i++
		case sig := <-signals:
			if endsJob(sig) {
				s.cancel(fmt.Errorf("received %v", sig))
			}
		}
	}
	s.cancel(nil)
}

// endsJob reports whether a signal ends jobs that have no ranks to handle it.
func endsJob(sig os.Signal) bool {
	return sig == os.Interrupt || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// failure returns the first spawned job that has failed.
func (s *spawnedJobs) failure() (status int, cause string) {
	for i, job := range s.jobs {
		if job.err != nil || job.result.Status != 0 {
			return max(1, job.result.Status), fmt.Sprintf("the job that its ranks have spawned as number %d: %s", i+1, job.describeEnd())
		}
	}
	return 0, ""
}

// Write implements io.Writer, for the output of spawned jobs.
func (s *sink) Write(text []byte) (int, error) {
	s.screen.Lock()
	defer s.screen.Unlock()
	if s.failed {
		return 0, os.ErrClosed
	}
	s.screen.endLocked(nil)
	s.putLocked(text)
	return len(text), nil
}
