package pmi

import (
	"context"
	"fmt"
)

// membership is what a client knows of its rank and its job from the start.
type membership struct {
	rank, size           int
	localRank, localSize int
	job, host            string
	secret               []byte // nil: the job has none
}

func (m *membership) Rank() int      { return m.rank }
func (m *membership) Size() int      { return m.size }
func (m *membership) LocalRank() int { return m.localRank }
func (m *membership) LocalSize() int { return m.localSize }
func (m *membership) JobID() string  { return m.job }
func (m *membership) Host() string   { return m.host }
func (m *membership) Secret() []byte { return m.secret }

// limitGet checks the arguments of Get and limits its time, if the caller has not.
func (m *membership) limitGet(ctx context.Context, rank int, key string) (context.Context, context.CancelFunc, error) {
	if rank < 0 || rank >= m.size {
		return nil, nil, fmt.Errorf("pmi: Get of %q from rank %d in a job of %d", key, rank, m.size)
	}
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}, nil
	}
	limited, cancel := context.WithTimeoutCause(ctx, getTimeout, fmt.Errorf("waited for %v", getTimeout))
	return limited, cancel, nil
}
