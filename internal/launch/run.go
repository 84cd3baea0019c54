package launch

// From Config to the end of the job: Run creates the job and its backend, starts the
// ranks, runs the loop of job.go, drains the output and reports the cause.

import (
	"context"
)

// Run starts the ranks, waits until all have exited and returns the result. An error
// means that the job could not be started; ranks already started are ended.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.complete(); err != nil {
		return Result{}, err
	}
	j := newJob(&cfg)
	var err error
	if err = j.console.open(); err != nil {
		return Result{}, err
	}
	defer j.console.files.close()
	if len(cfg.Hosts) > 0 {
		j.backend, err = newRemoteBackend(j)
	} else {
		j.backend, err = newLocalBackend(j)
	}
	if err != nil {
		return Result{}, err
	}
	defer j.backend.close()
	j.log.Info("job", "ranks", cfg.Ranks, "hosts", max(1, len(cfg.Hosts)), "programs", len(cfg.Programs), "id", j.server.JobID())
	if cfg.Metrics != nil {
		cfg.Metrics(j.scrape)
	}
	j.spawned.open(ctx)
	if cfg.replacements != nil && !cfg.isReplacement() {
		cfg.replacements.open(ctx, j)
	}
	j.backend.start()
	j.loop(ctx)
	if cfg.replacements != nil && !cfg.isReplacement() {
		j.finishReplacements()
	}
	j.spawned.finish(j.outcome.cause != nil || j.startErr != nil, cfg.Signals)
	j.backend.drain()
	defer j.console.stdout.finish()
	if j.startErr != nil {
		return Result{Status: 1}, j.startErr
	}
	j.report()
	if err := j.console.files.close(); err != nil {
		j.outcome.fail(-1, "output was lost: "+err.Error(), 1) // unless there was another cause
	}
	return j.result(), nil
}
