package judge

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// result is a test on both libraries.
type result struct {
	test          *Test
	skipped       bool // there was no time
	muster, mpich outcome
}

// outcome is a test on one library.
type outcome struct {
	ok  bool
	why string // it fails
	out string

	took time.Duration
}

// runAll runs the tests, some at a time, and returns their results in the same order. A test
// that must pass and fails is run once more, alone: on a busy machine it may take too long.
func runAll(ctx context.Context, o *options, tests []*Test, deadline time.Time) []*result {
	results := make([]*result, len(tests))
	for i, t := range tests {
		results[i] = &result{test: t, skipped: true}
	}
	work := make(chan *result)
	var workers sync.WaitGroup
	for range o.jobs {
		workers.Go(func() {
			for r := range work {
				r.muster = o.onMuster(ctx, r.test)
				if o.reference {
					r.mpich = o.onMPICH(ctx, r.test)
				}
			}
		})
	}
	for i, r := range spread(results) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			break
		}
		r.skipped = false
		work <- r
		if i%50 == 49 {
			fmt.Fprintf(os.Stderr, "%d of %d tests\n", i+1, len(results))
		}
	}
	close(work)
	workers.Wait()
	for _, r := range results {
		if !o.all && !r.skipped && !r.muster.ok && ctx.Err() == nil && time.Now().Before(deadline) {
			first := r.muster.why
			if r.muster = o.onMuster(ctx, r.test); r.muster.ok {
				fmt.Fprintf(os.Stderr, "%s passed when run again: %s\n", r.test.ID, first)
			}
		}
	}
	return results
}

// spread orders the results so that all folders are covered if there is too little time.
func spread(results []*result) (ordered []*result) {
	byFolder := map[string][]*result{}
	var names []string
	for _, r := range results {
		top := r.test.top()
		if byFolder[top] == nil {
			names = append(names, top)
		}
		byFolder[top] = append(byFolder[top], r)
	}
	for i := 0; len(ordered) < len(results); i++ {
		for _, name := range names {
			if all := byFolder[name]; i < len(all) {
				ordered = append(ordered, all[i])
			}
		}
	}
	return ordered
}

func (o *options) onMuster(ctx context.Context, t *Test) outcome {
	limit := o.limitOf(t)
	front := "--mpich"
	if o.openmpi {
		front = "--openmpi"
	}
	args := []string{"run", front, "-q", "--label", "never", "--timeout", limit.String(), "-n", fmt.Sprint(t.Ranks)}
	return start(ctx, t, limit, nil, filepath.Join(o.bin, "muster"), args)
}

func (o *options) onMPICH(ctx context.Context, t *Test) outcome {
	limit := o.limitOf(t)
	env := []string{fmt.Sprintf("MPIEXEC_TIMEOUT=%d", int(limit.Seconds()))}
	if o.openmpi {
		return start(ctx, t, limit, env, "mpirun.openmpi", []string{"--allow-run-as-root", "--oversubscribe", "-n", fmt.Sprint(t.Ranks)})
	}
	return start(ctx, t, limit, env, "mpiexec.hydra", []string{"-n", fmt.Sprint(t.Ranks)})
}

func (o *options) limitOf(t *Test) time.Duration {
	if t.Limit > 0 {
		return min(t.Limit, o.limit)
	}
	return o.limit
}

// start runs a test by a launcher, which has the time limit too. If it does not end in time,
// it is killed, and the ranks of either launcher end with it.
func start(ctx context.Context, t *Test, limit time.Duration, env []string, launcher string, args []string) outcome {
	const grace = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	args = append(append(args, t.Program), t.Args...)
	cmd := exec.CommandContext(ctx, launcher, args...)
	cmd.Dir = t.Dir
	cmd.Env = append(append(os.Environ(), env...), t.Env...)
	cmd.WaitDelay = time.Second
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if cmd.ProcessState == nil {
		return outcome{why: err.Error()}
	}
	text := strings.ToValidUTF8(string(out), "?")
	ok, why := t.Passed(cmd.ProcessState.ExitCode(), took >= limit, text)
	return outcome{ok: ok, why: why, out: text, took: took}
}
