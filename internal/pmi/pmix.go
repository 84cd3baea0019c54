package pmi

// A client on PMIx, for launchers that support nothing else. The library blocks a thread
// per call and cannot be interrupted: a call whose context ends keeps running in it.
//
// The fence exchanges no data. A value is fetched from its owner's node when a rank
// requests it.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/muster-mpi/muster/internal/pmix"
)

// Set by PMIx launchers for each process.
const (
	envPMIxName = "PMIX_NAMESPACE"
	envPMIxRank = "PMIX_RANK"
)

// Attributes of ranks and the job, by their names in the PMIx standard.
const (
	pmixJobSize    = "pmix.job.size"
	pmixLocalPeers = "pmix.lpeers" // ranks of the job on this node: "0,1,4"
	pmixNodeID     = "pmix.nodeid"
)

// pmixSession is the part of a session that the client uses; tests replace it.
type pmixSession interface {
	Namespace() string
	Rank() int
	Put(key string, val []byte) error
	Fence(limit time.Duration) error
	Get(rank int, key string, limit time.Duration) ([]byte, bool, error)
	JobNumber(key string) (int, bool)
	JobText(key string) (string, bool)
	RankNumber(rank int, key string) (int, bool)
	Abort(code int, why string)
	Close() error
}

var _ pmixSession = (*pmix.Session)(nil)

type pmixClient struct {
	membership
	session  pmixSession
	neighbor map[int]bool // the ranks of this node

	mu     sync.Mutex
	put    map[string]bool
	broken error
}

// openPMIx joins a PMIx job. It is called when the environment has the two
// variables above and the build has PMIx.
func openPMIx(ctx context.Context, getenv func(string) string) (Client, error) {
	secret, err := readSecret(getenv)
	if err != nil {
		return nil, err
	}
	type opened struct {
		session *pmix.Session
		err     error
	}
	got := make(chan opened, 1)
	go func() {
		s, err := pmix.Open()
		got <- opened{s, err}
	}()
	late := time.NewTimer(joinTimeout)
	defer late.Stop()
	select {
	case o := <-got:
		if o.err != nil {
			return nil, fmt.Errorf("pmi: join the job of a PMIx launcher (%s is set): %w; if libpmix is missing, install it (Debian: libpmix2), or start with muster run", envPMIxRank, o.err)
		}
		return newPMIxClient(o.session, secret)
	case <-late.C:
		return nil, fmt.Errorf("pmi: the PMIx server of this node has not answered within %v", joinTimeout)
	case <-ctx.Done():
		return nil, fmt.Errorf("pmi: wait for the PMIx server of this node: %w", context.Cause(ctx))
	}
}

func newPMIxClient(s pmixSession, secret []byte) (Client, error) {
	host, _ := os.Hostname()
	c := &pmixClient{membership: membership{rank: s.Rank(), host: host, job: s.Namespace(), secret: secret}, session: s, put: map[string]bool{}, neighbor: map[int]bool{}}
	size, ok := s.JobNumber(pmixJobSize)
	if !ok || c.rank < 0 || c.rank >= size {
		return nil, fmt.Errorf("pmi: the PMIx launcher reported rank %d in a job of %d processes (%s)", c.rank, size, pmixJobSize)
	}
	c.size = size
	c.neighbor[c.rank] = true
	peers, _ := s.JobText(pmixLocalPeers) // unknown: no memory is shared
	for text := range strings.SplitSeq(peers, ",") {
		if r, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && r >= 0 && r < size {
			c.neighbor[r] = true
		}
	}
	c.localSize = len(c.neighbor)
	for r := range c.neighbor {
		if r < c.rank {
			c.localRank++
		}
	}
	return c, nil
}

func (c *pmixClient) Compared() bool      { return false }
func (c *pmixClient) Board() *Board       { return nil }
func (c *pmixClient) Died() (Death, bool) { return Death{}, false } // the launcher ends the job

// Watch does nothing: a PMIx launcher ends the ranks of its node itself.
func (c *pmixClient) Watch(func(error)) {}

// Node requests the node from the launcher's library, which stores it in memory shared by
// all ranks of the node.
func (c *pmixClient) Node(rank int) int {
	if c.neighbor[rank] {
		rank = c.rank // the same result for all of them, even if the launcher has none
	}
	if n, ok := c.session.RankNumber(rank, pmixNodeID); ok {
		return n
	}
	return maxMapped + rank // unknown: a node of its own
}

func (c *pmixClient) Put(key string, val []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if _, err := encodeValue(val); err != nil {
		return err // the same limit under every launcher
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return c.broken
	}
	if c.put[key] {
		return fmt.Errorf("pmi: rank %d has already put %q: a key can be put only once", c.rank, key)
	}
	c.put[key] = true
	return c.session.Put(key, val)
}

// Fence enters a fence. If its context ends, the job's fences are out of step, so the
// client rejects all further calls.
func (c *pmixClient) Fence(ctx context.Context) error {
	err := c.wait(ctx, "Fence", func() error { return c.session.Fence(0) })
	if err != nil && ctx.Err() != nil {
		c.refuse(err)
	}
	return err
}

// refuse makes all later calls return an error; the first one stays.
func (c *pmixClient) refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken == nil {
		c.broken = err
	}
}

func (c *pmixClient) Get(ctx context.Context, rank int, key string) ([]byte, error) {
	ctx, cancel, err := c.limitGet(ctx, rank, key)
	if err != nil {
		return nil, err
	}
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, deathPoll) {
		type answer struct {
			val   []byte
			found bool
		}
		got := make(chan answer, 1) // one per call, because a call may outlive its context
		err := c.wait(ctx, fmt.Sprintf("get %s of rank %d", key, rank), func() error {
			val, found, err := c.session.Get(rank, key, time.Second)
			got <- answer{val, found}
			return err
		})
		if err == nil {
			if a := <-got; a.found {
				return a.val, nil
			}
		}
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("pmi: rank %d has not put %q: %w", rank, key, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// wait runs a call that cannot be interrupted.
func (c *pmixClient) wait(ctx context.Context, stage string, call func() error) error {
	c.mu.Lock()
	broken := c.broken
	c.mu.Unlock()
	if broken != nil {
		return broken
	}
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("pmi: rank %d of %d: %s: %w", c.rank, c.size, stage, err)
		}
		return nil
	case <-ctx.Done():
	}
	return fmt.Errorf("pmi: rank %d of %d: %s: the PMIx launcher has not answered: %w", c.rank, c.size, stage, context.Cause(ctx))
}

func (c *pmixClient) Abort(code int, why string) {
	done := make(chan struct{})
	go func() {
		c.session.Abort(code, why)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
	}
}

func (c *pmixClient) AbortReports() bool { return false }

func (c *pmixClient) Close() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), leaveTimeout, fmt.Errorf("no answer within %v", leaveTimeout))
	defer cancel()
	err := c.wait(ctx, "leave the job", c.session.Close)
	if errors.Is(err, ErrClosed) {
		return nil
	}
	c.refuse(ErrClosed)
	return err
}
