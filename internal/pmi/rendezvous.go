package pmi

// Start without a launcher. Four variables replace it:
//
//	MUSTER_RANK   the rank; in an indexed Kubernetes Job JOB_COMPLETION_INDEX is used
//	MUSTER_SIZE   the number of ranks
//	MUSTER_ROOT   host:port, where rank 0 listens
//	MUSTER_KEY    a secret shared by all ranks of the job
//
// The steps of a start, with the file of each:
//
//  1. Rank 0 listens (rendezvous_root.go). The others dial until the start timeout,
//     because names and processes become available in any order (rendezvous_join.go).
//  2. Both ends prove that they have the key before anything else is read
//     (handshake.go). Then they start TLS (channel.go).
//  3. A rank sends hello: rank, size, and an identifier of the processes it can share
//     memory with (hostmap_linux.go).
//  4. When all have joined, rank 0 computes which ranks share memory (mapping.go), starts
//     a Server in its own process, closes the port and sends go. From here on the
//     connection carries PMI-1.
//  5. Rank 0 notifies the others when a rank's connection ends without finalize, and
//     leaves last.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// The variables that identify a rank without a launcher.
const (
	EnvStaticRank = "MUSTER_RANK"
	EnvStaticSize = "MUSTER_SIZE"
	EnvRoot       = "MUSTER_ROOT"
	EnvKey        = "MUSTER_KEY"

	envJobIndex = "JOB_COMPLETION_INDEX"
)

// startTimeout limits the rendezvous if the caller's context has no deadline.
const startTimeout = 60 * time.Second

// staticJob is the rank and the job of this process, from the environment.
type staticJob struct {
	terms      Terms
	rank, size int
	root       string // host:port
	key        []byte
	rankFrom   string // the variable that holds the rank
	silence    time.Duration
	board      *Board // of this rank alone, in a joined job that survives failures
}

// readStaticJob reads the variables. given is false if none of them is set. An incomplete
// set is an error, because the process is meant to be part of a job.
func readStaticJob(getenv func(string) string) (p staticJob, given bool, err error) {
	p = staticJob{root: getenv(EnvRoot), key: []byte(getenv(EnvKey)), rankFrom: EnvStaticRank}
	p.silence, _ = time.ParseDuration(getenv(EnvPeerTimeout)) // the reader of all settings reports an error
	var set, missing []string
	for _, name := range [...]string{EnvStaticRank, EnvStaticSize, EnvRoot, EnvKey} {
		if getenv(name) != "" {
			set = append(set, name)
			continue
		}
		if name == EnvStaticRank && getenv(envJobIndex) != "" {
			p.rankFrom = envJobIndex
			continue
		}
		missing = append(missing, name)
	}
	switch {
	case len(set) == 0:
		return p, false, nil // an index alone belongs to a Kubernetes Job without Muster
	case len(missing) > 0:
		return p, true, fmt.Errorf("pmi: %s in the environment, but not %s: a job without a launcher needs all of %s (or %s for the rank), %s, %s and %s; set the missing variables, or unset the others to run a single process",
			list(set), list(missing), EnvStaticRank, envJobIndex, EnvStaticSize, EnvRoot, EnvKey)
	}
	if p.size, err = staticNumber(getenv, EnvStaticSize, 1, maxMapped); err != nil {
		return p, true, err
	}
	if p.rank, err = staticNumber(getenv, p.rankFrom, 0, p.size-1); err != nil {
		return p, true, err
	}
	if host, port, err := net.SplitHostPort(p.root); err != nil || host == "" || port == "" || port == "0" {
		return p, true, fmt.Errorf("pmi: %s=%q; it should be the host:port where rank 0 listens, such as node1:7700", EnvRoot, p.root)
	}
	return p, true, checkSecret(string(p.key))
}

func staticNumber(getenv func(string) string, name string, lowest, highest int) (int, error) {
	n, err := envNumber(getenv, name, lowest, highest)
	if err != nil {
		return 0, fmt.Errorf("pmi: %s=%q; it should be a number from %d to %d (%s is %s)",
			name, getenv(name), lowest, highest, EnvStaticSize, getenv(EnvStaticSize))
	}
	return n, nil
}

// list joins words as "a, b and c".
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// openStatic joins the job by rendezvous.
func openStatic(ctx context.Context, p staticJob, terms Terms) (Client, error) {
	p.terms = terms
	if p.size == 1 {
		return NewLocal(1)[0], nil
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, startTimeout)
		defer cancel()
	}
	if p.rank == 0 {
		return gatherJob(ctx, p)
	}
	return joinRoot(ctx, p)
}

// hello is the first message of a rank after the authentication.
type hello struct {
	rank, size   int
	host         string
	memoryDomain string
	process      string // distinguishes a retry from another process with the same rank
}

func newHello(p staticJob) hello {
	host, _ := os.Hostname()
	return hello{rank: p.rank, size: p.size, host: host, memoryDomain: memoryDomain(), process: rand.Text()}
}

// Messages between the handshake and PMI-1. Texts are encoded in base64.
const (
	cmdHello   = "muster_hello"
	cmdWelcome = "muster_welcome"
	cmdGo      = "muster_go"
	cmdDeath   = "muster_death"
)

func textField(s string) string { return valueCode.EncodeToString([]byte(s)) }

func fieldText(m *message, key string) string {
	b, _ := valueCode.DecodeString(m.get(key))
	return string(b)
}

// refusedError is a final answer of rank 0: a retry would not change it.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

// readReply reads an answer of rank 0. It returns a refusedError if rank 0 refused.
func readReply(lines *lineReader, cmd string) error {
	line, err := lines.next()
	if err != nil {
		return err
	}
	m, err := parseMessage(string(line))
	if err != nil || m.cmd != cmd {
		return fmt.Errorf("rank 0 sent %.60q instead of %s", line, cmd)
	}
	if m.get("rc") != "0" {
		return &refusedError{fieldText(&m, "why")}
	}
	return nil
}

func replyLine(cmd string, refusal string) []byte {
	if refusal == "" {
		return appendMessage(nil, cmd, "rc", "0")
	}
	return appendMessage(nil, cmd, "rc", "-1", "why", textField(refusal))
}

// EnvPeerTimeout is the setting mpi.Config.PeerTimeout. It is also how long a host may be
// silent, for the launcher and for rank 0 of a job without one.
const (
	EnvPeerTimeout     = "MUSTER_PEER_TIMEOUT"
	DefaultPeerTimeout = 30 * time.Second
)

// keepAlive detects within two thirds of the given time that a host, not only a process, is
// gone. The kernel counts seconds.
func keepAlive(silence time.Duration) net.KeepAliveConfig {
	if silence <= 0 {
		silence = DefaultPeerTimeout
	}
	step := max(time.Second, silence/6)
	return net.KeepAliveConfig{Enable: true, Idle: step, Interval: step, Count: 3}
}

// describeTimeout describes the end of a wait, for the end of a sentence.
func describeTimeout(ctx context.Context, began time.Time) string {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Sprintf("within %v", time.Since(began).Round(100*time.Millisecond))
	}
	return "before the start was cancelled: " + cause.Error()
}
