package pmi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Client is a rank's connection to the launcher of the job. It may be used from several
// goroutines.
type Client interface {
	Rank() int
	Size() int
	// JobID returns the name of the job. Concurrent jobs on a machine have different
	// names.
	JobID() string
	// Host returns the name of this machine.
	Host() string
	// Secret returns the secret shared by all ranks of the job, MUSTER_KEY. It is nil
	// if MUSTER_KEY is not set, and is never published with Put.
	Secret() []byte
	// Compared reports whether the launcher compares the terms of all ranks. Under other
	// launchers the ranks must do it.
	Compared() bool
	// Node returns the index of the node that a rank runs on; ranks on one node share
	// memory. It is computed, not looked up in a table that grows with the job.
	Node(rank int) int
	// LocalRank returns the index of this rank among the ranks of its node, from 0.
	LocalRank() int
	// LocalSize returns the number of ranks on this node.
	LocalSize() int
	// Board returns the job's board. It is nil if the launcher has none; the methods of
	// a nil Board may be called.
	Board() *Board
	// Died returns the first failure of a rank that was reported to this client, on the
	// board or, without a launcher, by rank 0. It is fast enough for polling. Launchers
	// that end the whole job themselves report no failures.
	Died() (Death, bool)
	// Watch registers a function that is called when an asynchronous notification ends
	// the job: a *DeadError for a rank, a *LauncherError for the launcher. lost is
	// called at most once, from a goroutine of the client, and not after Close.
	// Failures on the board are not reported, because the board can be polled. Watch is
	// called once.
	Watch(lost func(error))

	// Put publishes a value of this rank. Peers see it after the next Fence of both. The
	// key has at most MaxKey printable characters without spaces and '='; the value may
	// contain any bytes, up to 512 KB. A key can be put only once: launchers reject a
	// second value.
	Put(key string, val []byte) error
	// Fence returns when every rank has called it.
	Fence(ctx context.Context) error
	// Get returns a value that a rank has put. If the value is not available yet, Get
	// waits for it until ctx ends.
	Get(ctx context.Context, rank int, key string) ([]byte, error)
	// Abort requests that the launcher end the whole job with an exit status. It
	// returns, so that the caller can end its own process.
	Abort(code int, why string)
	// AbortReports reports whether the other ranks receive the reason of an Abort.
	// Other launchers kill all ranks, possibly before this one has printed it.
	AbortReports() bool
	// Close reports to the launcher that this rank has finished. A process that exits
	// without Close counts as failed.
	Close() error
}

// Locator is implemented by clients that compute which rank is at which place of a node,
// instead of counting the ranks of the job.
type Locator interface {
	// LocalIndex returns the number of ranks before a rank on its node.
	LocalIndex(rank int) int
	// LocalAt returns the rank of this node with the given index, from 0 to LocalSize-1.
	LocalAt(index int) int
}

// Holder is implemented by clients that have values at hand, without a request.
type Holder interface {
	// HeldValue returns a value that another rank has put, and whether it is at hand. The caller
	// must not change it.
	HeldValue(rank int, key string) ([]byte, bool)
}

// MaxKey is the maximum length of a key. PMI-1 allows 64 characters; the client appends
// the rank and the piece number.
const MaxKey = 40

// ErrClosed is returned by calls after Close.
var ErrClosed = errors.New("pmi: the client is closed")

// DeadError reports that a call cannot succeed because a rank has failed.
type DeadError struct {
	Op string // the operation in progress
	Death
}

func (e *DeadError) Error() string {
	host := ""
	if e.Host != "" {
		host = " on " + e.Host
	}
	return fmt.Sprintf("pmi: %s: rank %d%s has failed: %s", e.Op, e.Rank, host, e.Status)
}

// LauncherError reports that the connection to the launcher, and thereby the job, has
// ended: output, signals and failures are no longer forwarded.
type LauncherError struct{ Cause string }

func (e *LauncherError) Error() string {
	return "the launcher of this job is gone (" + e.Cause + "), and the job cannot continue: find out what ended the launcher, then start the job again"
}

// AbortError reports that a rank has aborted the job.
type AbortError struct {
	Rank, Code int
	Why        string
}

func (e *AbortError) Error() string {
	s := fmt.Sprintf("pmi: rank %d aborted the job with code %d", e.Rank, e.Code)
	if e.Why != "" {
		s += ": " + e.Why
	}
	return s
}

// checkKey enforces the rule of Put for all clients, so that keys accepted among
// goroutines are also accepted under a launcher.
func checkKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("pmi: key %q has %d characters; use 1 to %d", key, len(key), MaxKey)
	}
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c >= 0x7f || c == '=' || c == ';' {
			return fmt.Errorf("pmi: key %q contains %q; use printable characters other than space, '=' and ';'", key, c)
		}
	}
	return nil
}

// Ranks formats a sorted list of ranks as ranges: "0-3,7".
func Ranks(ranks []int) string {
	var b strings.Builder
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(ranks[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(ranks[j]))
		}
		i = j + 1
	}
	return b.String()
}

// ranksPhrase returns Ranks with "rank" or "ranks" before it.
func ranksPhrase(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	return "ranks " + Ranks(ranks)
}
