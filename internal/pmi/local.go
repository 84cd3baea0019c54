package pmi

// Clients for ranks that are goroutines of one process: one store protected by a mutex,
// and a channel that is closed and replaced at each change.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"time"
)

type localKey struct {
	rank int
	key  string
}

type localJob struct {
	id, host string
	size     int
	board    *Board

	mu      sync.Mutex
	changed chan struct{} // closed at each change
	values  map[localKey][]byte
	fences  []uint64 // number of fences that each rank has entered
	closed  []bool
	abort   *AbortError
}

type localClient struct {
	job  *localJob
	rank int
}

// NewLocal creates a job of n ranks in this process. They share a Board on the heap.
func NewLocal(n int) []Client {
	host, _ := os.Hostname()
	job := &localJob{
		id: newJobID("local"), host: host, size: n, board: NewBoard(n),
		changed: make(chan struct{}), values: map[localKey][]byte{},
		fences: make([]uint64, n), closed: make([]bool, n),
	}
	clients := make([]Client, n)
	for rank := range clients {
		clients[rank] = &localClient{job, rank}
		job.board.Running(rank)
	}
	return clients
}

// newJobID returns a unique job name. Process IDs are reused, so it includes random bits.
func newJobID(kind string) string {
	var bits [6]byte
	rand.Read(bits[:])
	return fmt.Sprintf("%s-%d-%s", kind, os.Getpid(), hex.EncodeToString(bits[:]))
}

func (c *localClient) Rank() int         { return c.rank }
func (c *localClient) Size() int         { return c.job.size }
func (c *localClient) JobID() string     { return c.job.id }
func (c *localClient) Host() string      { return c.job.host }
func (c *localClient) Secret() []byte    { return nil }  // the store does not leave this process
func (c *localClient) Compared() bool    { return true } // one program, one configuration
func (c *localClient) Node(rank int) int { return 0 }
func (c *localClient) LocalRank() int    { return c.rank }
func (c *localClient) LocalSize() int    { return c.job.size }
func (c *localClient) Board() *Board     { return c.job.board }

func (c *localClient) Died() (Death, bool) { return c.job.board.Death(0) }

// Watch does nothing: failures of other ranks are on the board.
func (c *localClient) Watch(func(error)) {}

func (c *localClient) Put(key string, val []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	j := c.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed[c.rank] {
		return ErrClosed
	}
	if _, twice := j.values[localKey{c.rank, key}]; twice {
		return fmt.Errorf("pmi: rank %d has already put %q: a key can be put only once", c.rank, key)
	}
	j.values[localKey{c.rank, key}] = append([]byte(nil), val...)
	j.announce()
	return nil
}

func (c *localClient) Fence(ctx context.Context) error {
	j := c.job
	j.mu.Lock()
	if j.closed[c.rank] {
		j.mu.Unlock()
		return ErrClosed
	}
	j.fences[c.rank]++
	number := j.fences[c.rank]
	j.announce()
	j.mu.Unlock()
	j.board.Waiting(c.rank, WaitState{Op: fenceOp, Comm: startComm, Peer: PeerNone, Tag: TagNone})
	defer j.board.Running(c.rank)
	return j.await(ctx, fenceOp,
		func() bool { return len(j.behind(number)) == 0 },
		func(cause error) error {
			return fmt.Errorf("pmi: Fence %d ended without %s: %w", number, ranksPhrase(j.behind(number)), cause)
		})
}

// behind returns the ranks that have not entered the fence with this number.
func (j *localJob) behind(number uint64) (ranks []int) {
	for rank, n := range j.fences {
		if n < number {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

func (c *localClient) Get(ctx context.Context, rank int, key string) ([]byte, error) {
	j := c.job
	if rank < 0 || rank >= j.size {
		return nil, fmt.Errorf("pmi: Get of %q from rank %d in a job of %d", key, rank, j.size)
	}
	var val []byte
	err := j.await(ctx, "Get", func() bool {
		v, ok := j.values[localKey{rank, key}]
		val = v
		return ok
	}, func(cause error) error {
		return fmt.Errorf("pmi: rank %d has not put %q: %w", rank, key, cause)
	})
	return append([]byte(nil), val...), err
}

// deathPoll is the interval at which a waiting bootstrap call checks the board for a
// failed rank. Message calls have their own, faster check.
const deathPoll = 50 * time.Millisecond

// await blocks until ready returns true. ready and late are called with the lock held.
func (j *localJob) await(ctx context.Context, op string, ready func() bool, late func(error) error) error {
	tick := time.NewTicker(deathPoll)
	defer tick.Stop()
	for {
		j.mu.Lock()
		if ready() {
			j.mu.Unlock()
			return nil
		}
		if j.abort != nil {
			j.mu.Unlock()
			return j.abort
		}
		changed := j.changed
		j.mu.Unlock()
		if d, ok := j.board.Death(0); ok {
			return &DeadError{op, d}
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			j.mu.Lock()
			defer j.mu.Unlock()
			return late(context.Cause(ctx))
		}
	}
}

func (c *localClient) Abort(code int, why string) {
	j := c.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.abort != nil {
		return
	}
	j.abort = &AbortError{c.rank, code, why}
	j.board.MarkDead(Death{Rank: c.rank, Host: j.host, Status: abortStatus(code, why)})
	j.announce()
}

func (c *localClient) AbortReports() bool { return true }

func (c *localClient) Close() error {
	j := c.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed[c.rank] = true
	j.board.Left(c.rank)
	return nil
}

func (j *localJob) announce() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// The board entries of a rank in a bootstrap call.
const (
	fenceOp   = "Fence"
	startComm = "start-up"
)

func abortStatus(code int, why string) string {
	s := fmt.Sprintf("aborted the job with code %d", code)
	if why != "" {
		s += ": " + why
	}
	return s
}
