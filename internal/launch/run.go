package launch

// From Config to the end of the job: Run makes the job and its backend, lets it
// start the ranks, runs the loop of job.go, drains the output, reports the cause.

import (
	"context"
)

// Run starts the ranks, waits for their end and says how it was. An error means
// that the job could not be started; ranks that had been are ended.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.complete(); err != nil {
		return Result{}, err
	}
	j := newJob(&cfg)
	var err error
	if len(cfg.Hosts) > 0 {
		j.backend, err = newRemoteBackend(j)
	} else {
		j.backend, err = newLocalBackend(j)
	}
	if err != nil {
		return Result{}, err
	}
	defer j.backend.close()
	j.backend.start()
	j.loop(ctx)
	j.backend.drain()
	if j.startErr != nil {
		return Result{Status: 1}, j.startErr
	}
	j.report()
	return j.result(), nil
}
