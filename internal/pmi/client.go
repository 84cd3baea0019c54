package pmi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Client is a rank's connection to whatever started the job. It may be used
// from several goroutines.
type Client interface {
	Rank() int
	Size() int
	// JobID names the job. No two jobs on a machine have the same at one time.
	JobID() string
	// Host is the name of this machine.
	Host() string
	// Secret is what all ranks of the job know and nobody else: MUSTER_KEY. It is
	// nil where that is not set, and never passes through Put.
	Secret() []byte
	// Node is the number of the machine that a rank runs on; two ranks share
	// memory if they have the same. It is computed, not looked up in a table
	// that grows with the job.
	Node(rank int) int
	// LocalRank is this rank's place among the ranks of its node, from 0.
	LocalRank() int
	// LocalSize is the number of ranks on this node.
	LocalSize() int
	// Board is the job's status page. It is nil when the launcher has none,
	// and a nil Board can be used.
	Board() *Board
	// Died is the first death of a rank that this client has heard of, on the
	// board or, where there is no launcher, from rank 0. It is cheap enough to be
	// polled. Launchers that end the whole job themselves tell nobody.
	Died() (Death, bool)
	// Watch asks to be called when this client learns, without asking, why the
	// job cannot go on: a *DeadError for a rank, a *LauncherError for the launcher.
	// lost is called at most once, from a goroutine of the client, and no longer
	// once Close has been called. Deaths on the board are not reported: the board is
	// in memory, to be looked at. Watch is called once.
	Watch(lost func(error))

	// Put publishes a value under this rank's name. Peers see it after the next
	// Fence of both. The key is at most MaxKey printable characters without
	// spaces and '='; the value may hold any bytes, up to 512 KB. A key is put
	// once: launchers refuse a second value.
	Put(key string, val []byte) error
	// Fence returns when every rank has called it.
	Fence(ctx context.Context) error
	// Get gives what a rank has put. If it is not there yet, Get waits for it
	// until ctx ends.
	Get(ctx context.Context, rank int, key string) ([]byte, error)
	// Abort asks the launcher to end the whole job with an exit status. It
	// returns, so that the caller can end its own process.
	Abort(code int, why string)
	// AbortReports reports whether the other ranks learn the reason of an Abort. Other
	// launchers kill all ranks, perhaps before this one has printed it.
	AbortReports() bool
	// Close tells the launcher that this rank has finished properly. A process
	// that ends without it counts as dead.
	Close() error
}

// MaxKey is the longest key that Put takes. PMI-1 allows 64 characters; the
// rest is for the rank and the piece number that the client appends.
const MaxKey = 40

// ErrClosed says that the client was closed.
var ErrClosed = errors.New("pmi: the client is closed")

// DeadError says that a call cannot succeed because a rank has died.
type DeadError struct {
	Op string // what was under way
	Death
}

func (e *DeadError) Error() string {
	host := ""
	if e.Host != "" {
		host = " on " + e.Host
	}
	return fmt.Sprintf("pmi: %s: rank %d%s has died: %s", e.Op, e.Rank, host, e.Status)
}

// LauncherError says that the connection to the launcher has ended, and with it the
// job: nobody is left to pass on its output, its signals and the deaths of its ranks.
type LauncherError struct{ Cause string }

func (e *LauncherError) Error() string {
	return "the launcher of this job is gone (" + e.Cause + "), and the job cannot go on without it: find out what ended the launcher, then start the job again"
}

// AbortError says that a rank has asked for the end of the job.
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

// checkKey holds the rule of Put for all clients, so that what works among
// goroutines works under a launcher too.
func checkKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("pmi: key %q has %d characters; use 1 to %d", key, len(key), MaxKey)
	}
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c >= 0x7f || c == '=' || c == ';' {
			return fmt.Errorf("pmi: key %q holds %q; use printable characters other than space, '=' and ';'", key, c)
		}
	}
	return nil
}

// Ranks writes a rising list of ranks as ranges: "0-3,7".
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

// ranksPhrase is Ranks with the right noun.
func ranksPhrase(ranks []int) string {
	if len(ranks) == 1 {
		return "rank " + strconv.Itoa(ranks[0])
	}
	return "ranks " + Ranks(ranks)
}
