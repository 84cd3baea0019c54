package launch

// Processes in place of failed ranks ("muster run --respawn"). Ranks ask for them in mpi.Recover,
// and join them (decision 124). Each is a job of one rank, so that it can fail and leave alone; all
// of them share one list of failures with the job itself, in one order, which the ranks read.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/muster-mpi/muster/internal/pmi"
)

var errNoRespawn = errors.New("this job has no processes to replace failed ranks: use muster run --respawn")

// replacements are those of a job. The methods of a nil pointer do nothing.
type replacements struct {
	most int

	mu       sync.Mutex
	ctx      context.Context
	first    *job // the job itself
	failures []pmi.Failure
	lost     []string // hosts
	jobs     []*replacement
	over     bool
}

// replacement is a process in place of a failed rank.
type replacement struct {
	spawnedJob
	name, host string
	cancel     context.CancelFunc
}

// completeRespawn sets the variables by which ranks know that failed ones can be replaced.
func (c *Config) completeRespawn() error {
	if c.isReplacement() {
		return nil
	}
	c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool { return nameOf(kv) == pmi.EnvRespawn })
	switch {
	case c.Respawn < 0 || c.Respawn > maxRanks:
		return fmt.Errorf("launch: respawn of %d processes: use 0 to %d", c.Respawn, maxRanks)
	case c.Respawn == 0:
		return nil
	case len(c.Programs) > 1:
		return errors.New("launch: the ranks of a job of several programs cannot be replaced")
	}
	c.replacements = &replacements{most: c.Respawn}
	c.ExtraEnv = append(slices.Clip(c.ExtraEnv), pmi.EnvRespawn+"="+strconv.Itoa(c.Respawn), pmi.OnFailure+"="+pmi.OnFailureReturn)
	return nil
}

func (c *Config) isReplacement() bool { return c.replacementName != "" }

// open allows ranks to ask for replacements, until the context ends.
func (k *replacements) open(ctx context.Context, first *job) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ctx, k.first = ctx, first
}

// replace starts a process.
func (k *replacements) replace(r *pmi.ReplaceRequest) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.over || k.ctx == nil || k.ctx.Err() != nil:
		return errors.New("this job is being ended")
	case len(k.jobs) == k.most:
		return fmt.Errorf("%d processes have been started in place of failed ranks, as many as --respawn allows", k.most)
	case r.Name == "" || k.findLocked(r.Name) != nil:
		return fmt.Errorf("a replacement cannot have the name %q", r.Name)
	}
	one := &replacement{name: r.Name, spawnedJob: spawnedJob{done: make(chan struct{})}}
	var err error
	if one.host, err = k.hostForLocked(r.For); err != nil {
		return err
	}
	p := k.first.cfg.Programs[0]
	spawn := &pmi.SpawnRequest{Parent: r.Parent, Programs: []pmi.SpawnProgram{{Ranks: 1, Prog: p.Prog, Args: p.Args, Dir: p.Dir, Env: p.Env}}}
	if one.host != "" {
		spawn.Hosts = []string{one.host}
	}
	cfg, err := k.first.spawnConfig(spawn, len(k.jobs)+1)
	if err != nil {
		return err
	}
	cfg.replacements, cfg.replacementName = k, r.Name
	cfg.ExtraEnv = slices.DeleteFunc(cfg.ExtraEnv, func(kv string) bool { return nameOf(kv) == pmi.EnvSpares })
	ctx, cancel := context.WithCancel(k.ctx)
	one.cancel = cancel
	k.jobs = append(k.jobs, one)
	k.first.log.Info("respawn", "name", r.Name, "host", one.host)
	go func() {
		defer cancel()
		defer close(one.done)
		if one.result, one.err = Run(ctx, cfg); one.err != nil {
			k.loseHost(one.host) // the next one starts elsewhere
		}
		if one.err != nil || one.result.Status != 0 {
			k.record(one.name, spansOf(0), one.host, one.describeEnd())
		}
	}()
	return nil
}

// hostForLocked returns the host of a replacement: that of the failed rank, or, if it was lost, the one
// with the fewest replacements.
func (k *replacements) hostForLocked(failed pmi.RankRef) (string, error) {
	cfg := k.first.cfg
	if len(cfg.Hosts) == 0 {
		return "", nil
	}
	home := ""
	if one := k.findLocked(failed.Job); one != nil {
		home = one.host
	} else if uint(failed.Rank) < uint(len(cfg.layout.host)) {
		home = cfg.Hosts[cfg.layout.host[failed.Rank]].Name
	}
	best, fewest := "", 0
	for _, h := range cfg.Hosts {
		if slices.Contains(k.lost, h.Name) {
			continue
		}
		if h.Name == home {
			return home, nil
		}
		n := 0
		for _, one := range k.jobs {
			if one.host == h.Name {
				n++
			}
		}
		if best == "" || n < fewest {
			best, fewest = h.Name, n
		}
	}
	if best == "" {
		return "", errors.New("all hosts were lost")
	}
	return best, nil
}

func (k *replacements) findLocked(name string) *replacement {
	for _, one := range k.jobs {
		if one.name == name && name != "" {
			return one
		}
	}
	return nil
}

// state reports what has become of a replacement.
func (k *replacements) state(name string) (pmi.JobAnswer, error) {
	k.mu.Lock()
	one := k.findLocked(name)
	k.mu.Unlock()
	if one == nil {
		return pmi.JobAnswer{}, fmt.Errorf("there is no replacement %q", name)
	}
	select {
	case <-one.done:
		return pmi.JobAnswer{Ended: true, Why: one.describeEnd()}, nil
	default:
		return pmi.JobAnswer{}, nil
	}
}

// withdraw ends a replacement that the ranks have not joined.
func (k *replacements) withdraw(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if one := k.findLocked(name); one != nil {
		one.cancel()
	}
}

// record adds failed ranks to the list.
func (k *replacements) record(name string, ranks spans, host, status string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for rank := range ranks.all() {
		k.failures = append(k.failures, pmi.Failure{RankRef: pmi.RankRef{Job: name, Rank: rank}, Host: host, Status: status})
	}
}

func (k *replacements) failuresFrom(n int) []pmi.Failure {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n < 0 || n >= len(k.failures) {
		return nil
	}
	return slices.Clone(k.failures[n:min(len(k.failures), n+pmi.MaxFailures)])
}

func (k *replacements) loseHost(name string) {
	if k == nil || name == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Contains(k.lost, name) {
		k.lost = append(k.lost, name)
	}
}

// living returns the number of replacements that run.
func (k *replacements) living() (n int) {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.jobs {
		select {
		case <-one.done:
		default:
			n++
		}
	}
	return n
}

// finishReplacements waits for the replacements of a job whose ranks have exited, or ends them if it has failed. If
// no rank of the job has left in order, its replacements decide how it ends.
func (j *job) finishReplacements() {
	k := j.cfg.replacements
	k.mu.Lock()
	failed := j.outcome.cause != nil || j.startErr != nil
	k.over = failed
	k.mu.Unlock()
	for i := 0; ; i++ {
		k.mu.Lock()
		var next *replacement
		if i < len(k.jobs) {
			next = k.jobs[i]
		} else {
			k.over = true
		}
		k.mu.Unlock()
		if next == nil {
			break
		}
		if failed {
			next.cancel()
		}
		for running := true; running; {
			select {
			case <-next.done:
				running = false
			case sig := <-j.cfg.Signals:
				failed = failed || endsJob(sig)
				if failed {
					next.cancel()
				}
			}
		}
		if next.err == nil && next.result.Status == 0 {
			j.outlive.left++
		}
	}
	if o := &j.outlive; !failed && o.first != nil && o.left == 0 {
		j.outcome.fail(o.first.rank, o.first.text, o.code)
	}
}
