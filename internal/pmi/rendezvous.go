package pmi

// Start without a launcher. Four variables tell a process its place:
//
//	MUSTER_RANK   its rank; in an indexed Kubernetes Job JOB_COMPLETION_INDEX serves
//	MUSTER_SIZE   the number of ranks
//	MUSTER_ROOT   host:port, where rank 0 listens
//	MUSTER_KEY    a secret that all ranks of the job know, and nobody else
//
// The way of a job, with the file of each step:
//
//  1. Rank 0 listens (rendezvous_root.go), the others dial until the start
//     timeout, because names and processes come up in any order
//     (rendezvous_join.go).
//  2. Both ends prove that they know the key before anything else is read
//     (handshake.go). From then on they speak TLS (channel.go).
//  3. A rank says hello: rank, size, and a mark of where it runs
//     (whereabouts_linux.go).
//  4. When all have come, rank 0 computes who shares memory with whom
//     (mapping.go), starts a Server in its own process, closes the port and says
//     go. From here on the connection speaks PMI-1.
//  5. Rank 0 tells the others when a rank's connection ends without a farewell,
//     and leaves last.

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

// The variables that place a process.
const (
	EnvStaticRank = "MUSTER_RANK"
	EnvStaticSize = "MUSTER_SIZE"
	EnvRoot       = "MUSTER_ROOT"
	EnvKey        = "MUSTER_KEY"

	envJobIndex = "JOB_COMPLETION_INDEX"
)

// startTimeout bounds the rendezvous when the caller's context does not.
const startTimeout = 60 * time.Second

// place is what the environment says of this process.
type place struct {
	rank, size int
	root       string // host:port
	key        []byte
	rankFrom   string // the variable that told the rank
}

// readPlace reads the variables. given is false when none of them is set; some
// without the others are an error, because the process was meant to be part of
// a job.
func readPlace(getenv func(string) string) (p place, given bool, err error) {
	p = place{root: getenv(EnvRoot), key: []byte(getenv(EnvKey)), rankFrom: EnvStaticRank}
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
		return p, false, nil // an index alone belongs to a Kubernetes Job that is none of ours
	case len(missing) > 0:
		return p, true, fmt.Errorf("pmi: %s in the environment, but not %s: a job without a launcher needs all four of %s (or %s for the rank), %s, %s and %s; set what is missing, or unset the others to run alone",
			list(set), list(missing), EnvStaticRank, envJobIndex, EnvStaticSize, EnvRoot, EnvKey)
	}
	if p.size, err = placeNumber(getenv, EnvStaticSize, 1, maxMapped); err != nil {
		return p, true, err
	}
	if p.rank, err = placeNumber(getenv, p.rankFrom, 0, p.size-1); err != nil {
		return p, true, err
	}
	if host, port, err := net.SplitHostPort(p.root); err != nil || host == "" || port == "" || port == "0" {
		return p, true, fmt.Errorf("pmi: %s=%q; it should be host:port, the place where rank 0 listens, such as node1:7700", EnvRoot, p.root)
	}
	return p, true, checkSecret(string(p.key))
}

func placeNumber(getenv func(string) string, name string, lowest, highest int) (int, error) {
	n, err := envNumber(getenv, name, lowest, highest)
	if err != nil {
		return 0, fmt.Errorf("pmi: %s=%q; it should be a number from %d to %d, as %s is %s",
			name, getenv(name), lowest, highest, EnvStaticSize, getenv(EnvStaticSize))
	}
	return n, nil
}

// list writes words as "a, b and c are set" would need them.
func list(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// openPlace joins the job by rendezvous.
func openPlace(ctx context.Context, p place) (Client, error) {
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

// hello is what a rank says of itself once the key is proven.
type hello struct {
	rank, size  int
	host        string
	whereabouts string
	process     string // tells a process that comes again from another with its rank
}

func newHello(p place) hello {
	host, _ := os.Hostname()
	return hello{rank: p.rank, size: p.size, host: host, whereabouts: whereabouts(), process: rand.Text()}
}

// Words of the conversation between handshake and PMI-1. Texts travel in
// base64.
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

// verdictError is an answer of rank 0 that another attempt would not change.
type verdictError struct{ why string }

func (e *verdictError) Error() string { return e.why }

// readVerdict reads an answer that either lets the rank go on or says why not.
func readVerdict(lines *lineReader, cmd string) error {
	line, err := lines.next()
	if err != nil {
		return err
	}
	m, err := parseMessage(string(line))
	if err != nil || m.cmd != cmd {
		return fmt.Errorf("it sent %.60q instead of %s", line, cmd)
	}
	if m.get("rc") != "0" {
		return &verdictError{fieldText(&m, "why")}
	}
	return nil
}

func verdict(cmd string, refusal string) []byte {
	if refusal == "" {
		return appendMessage(nil, cmd, "rc", "0")
	}
	return appendMessage(nil, cmd, "rc", "-1", "why", textField(refusal))
}

// keepAlive finds out that a host is gone, not only a process, in 20 s.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}
}

// after says how a wait ended, in words for the end of a sentence.
func after(ctx context.Context, began time.Time) string {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Sprintf("within %v", time.Since(began).Round(100*time.Millisecond))
	}
	return "before the start was given up: " + cause.Error()
}
