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

	aborted chan struct{} // closed when a rank aborts the job

	mu     sync.Mutex
	values map[localKey][]byte
	wanted map[localKey]chan struct{} // of values that ranks wait for; closed by Put
	fences []uint64                   // number of fences that each rank has entered
	fence  map[uint64]*localFence     // the fences that not all have entered, by number
	closed []bool
	abort  *AbortError
}

// localFence is a fence under way.
type localFence struct {
	left int           // ranks that have not entered
	done chan struct{} // closed when all have
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
		aborted: make(chan struct{}), values: map[localKey][]byte{}, wanted: map[localKey]chan struct{}{},
		fences: make([]uint64, n), fence: map[uint64]*localFence{}, closed: make([]bool, n),
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
	k := localKey{c.rank, key}
	if _, twice := j.values[k]; twice {
		return fmt.Errorf("pmi: rank %d has already put %q: a key can be put only once", c.rank, key)
	}
	j.values[k] = append([]byte(nil), val...)
	if wanted := j.wanted[k]; wanted != nil {
		close(wanted)
		delete(j.wanted, k)
	}
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
	f := j.fence[number]
	if f == nil {
		f = &localFence{left: j.size, done: make(chan struct{})}
		j.fence[number] = f
	}
	if f.left--; f.left == 0 {
		close(f.done)
		delete(j.fence, number)
	}
	j.mu.Unlock()
	j.board.Waiting(c.rank, fenceWait(ctx))
	defer j.board.Running(c.rank)
	return j.await(ctx, fenceOp, f.done, func(cause error) error {
		return fmt.Errorf("pmi: Fence %d ended without %s: %w", number, ranksPhrase(j.missingFromLocked(number)), cause)
	})
}

// missingFromLocked returns the ranks that have not entered the fence with this number.
func (j *localJob) missingFromLocked(number uint64) (ranks []int) {
	for rank, n := range j.fences {
		if n < number {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// HeldValue implements Holder: all values are in this process.
func (c *localClient) HeldValue(rank int, key string) ([]byte, bool) {
	c.job.mu.Lock()
	defer c.job.mu.Unlock()
	val, ok := c.job.values[localKey{rank, key}]
	return val, ok
}

func (c *localClient) Get(ctx context.Context, rank int, key string) ([]byte, error) {
	j := c.job
	if rank < 0 || rank >= j.size {
		return nil, fmt.Errorf("pmi: Get of %q from rank %d in a job of %d", key, rank, j.size)
	}
	k := localKey{rank, key}
	j.mu.Lock()
	val, ok := j.values[k]
	if ok {
		j.mu.Unlock()
		return append([]byte(nil), val...), nil
	}
	wanted := j.wanted[k]
	if wanted == nil {
		wanted = make(chan struct{})
		j.wanted[k] = wanted
	}
	j.mu.Unlock()
	if err := j.await(ctx, "Get", wanted, func(cause error) error {
		return fmt.Errorf("pmi: rank %d has not put %q: %w", rank, key, cause)
	}); err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]byte(nil), j.values[k]...), nil
}

// deathPoll is the interval at which a waiting bootstrap call checks the board for a
// failed rank. Message calls have their own, faster check. The interval grows with the job,
// so that the ranks of a large one do not spend the time of its start on it.
const (
	deathPoll      = 50 * time.Millisecond
	deathPollRanks = 1000 // that share an interval
)

// await blocks until done is closed. lateLocked is called with the lock held.
func (j *localJob) await(ctx context.Context, op string, done <-chan struct{}, lateLocked func(error) error) error {
	select {
	case <-done:
		return nil
	default:
	}
	tick := time.NewTicker(deathPoll * time.Duration(1+j.size/deathPollRanks))
	defer tick.Stop()
	for {
		if d, ok := j.board.Death(0); ok {
			return j.endError(op, d)
		}
		select {
		case <-done:
			return nil
		case <-j.aborted:
		case <-tick.C:
		case <-ctx.Done():
			j.mu.Lock()
			defer j.mu.Unlock()
			return lateLocked(context.Cause(ctx))
		}
	}
}

// endError returns why a call cannot succeed after a rank died or aborted the job.
func (j *localJob) endError(op string, d Death) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.abort != nil {
		return j.abort
	}
	return &DeadError{op, d}
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
	close(j.aborted)
}

func (c *localClient) AbortReports() bool { return true }

func (c *localClient) Close() error {
	j := c.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed[c.rank] = true
	j.board.MarkLeft(c.rank)
	return nil
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
