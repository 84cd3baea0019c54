package pmi

// Requests of ranks to the launcher itself: to start another job, and what has become of it. In
// the tree of servers they travel as requests for a value whose key no rank can put.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

const (
	launcherCommand = "muster_launcher"
	launcherAnswer  = "muster_launcher_result"
	launcherKey     = "muster launcher " // keys of values have no spaces
	maxRequest      = maxLine / 2        // the text is encoded twice
)

// ErrNoLauncher reports that the launcher of this job cannot start other jobs.
var ErrNoLauncher = errors.New("only muster run can start other programs for a job; start this one with it")

// JobRequest is a request to the launcher: one of its fields is set.
type JobRequest struct {
	Spawn *SpawnRequest `json:",omitempty"`
	// State is the number of a job that the launcher has started for one of its ranks.
	State int          `json:",omitempty"`
	Name  *NameRequest `json:",omitempty"`
	// Replace starts a process in place of a failed rank.
	Replace *ReplaceRequest `json:",omitempty"`
	// Replaced and Withdrawn are names of ReplaceRequests: what has become of the process,
	// and end it.
	Replaced  string `json:",omitempty"`
	Withdrawn string `json:",omitempty"`
	// Failures asks for the failed ranks of the job and of all replacements.
	Failures *FailuresRequest `json:",omitempty"`
}

// ReplaceRequest describes a process that takes the place of a failed rank.
type ReplaceRequest struct {
	Name   string  // of the new process, the same for nobody else
	For    RankRef // the rank that has failed
	Parent string  // EnvParent of the process
}

// RankRef identifies a process of a job with replacements: the name of the ReplaceRequest, empty for
// the ranks that the job was started with, and the rank there.
type RankRef struct {
	Job  string `json:",omitempty"`
	Rank int    `json:",omitempty"`
}

// FailuresRequest asks for failures, without the first From.
type FailuresRequest struct{ From int }

// Failure is a failed rank.
type Failure struct {
	RankRef
	Host, Status string
}

// NameRequest looks up the name of a service, publishes it for a port, or withdraws it.
type NameRequest struct {
	Service           string
	Port              string `json:",omitempty"`
	Publish, Withdraw bool   `json:",omitempty"`
}

// SpawnRequest describes a job to start.
type SpawnRequest struct {
	Programs []SpawnProgram
	Hosts    []string `json:",omitempty"` // default: those of the job that asks
	Parent   string   // EnvParent of its ranks
}

// SpawnProgram is one of its programs.
type SpawnProgram struct {
	Ranks int
	Prog  string
	Args  []string `json:",omitempty"`
	Dir   string   `json:",omitempty"`
	Env   []string `json:",omitempty"`
}

// JobAnswer is the answer to a JobRequest.
type JobAnswer struct {
	Job   int    `json:",omitempty"` // the number of the job that has been started
	Ended bool   `json:",omitempty"` // the job of State has ended
	Port  string `json:",omitempty"` // of Name
	Why   string `json:",omitempty"` // why it has, or why the request failed
	// Failures are answers to FailuresRequest, at most MaxFailures of them.
	Failures []Failure `json:",omitempty"`
}

// MaxFailures is the number of failures in an answer, which is one line.
const MaxFailures = 32

// Launcher is implemented by clients that may have a launcher that serves requests.
type Launcher interface {
	// Request sends a request to the launcher. The error includes that of the answer.
	Request(ctx context.Context, r JobRequest) (JobAnswer, error)
	// ServesRequests reports whether there is one.
	ServesRequests() bool
	// Program returns the number of the program of this rank among those of the job.
	Program(ctx context.Context) (int, error)
}

// ServesRequests implements Launcher.
func (c *wireClient) ServesRequests() bool { return c.compared && c.notice == nil }

// Program implements Launcher. Other launchers know the number, too.
func (c *wireClient) Program(ctx context.Context) (int, error) {
	if c.notice != nil {
		return 0, nil // there is no launcher
	}
	m, err := c.ask(ctx, "ask for the number of the program", "appnum", "get_appnum")
	return m.number("appnum", 0), err
}

// Request implements Launcher.
func (c *wireClient) Request(ctx context.Context, r JobRequest) (a JobAnswer, err error) {
	if !c.ServesRequests() {
		return a, ErrNoLauncher // another one might take offense at an unknown request
	}
	text, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	if len(text) > maxRequest {
		return a, fmt.Errorf("pmi: the programs to start, with arguments and environment, take %d bytes; at most %d can be sent to the launcher", len(text), maxRequest)
	}
	m, err := c.ask(ctx, "ask the launcher", launcherAnswer, launcherCommand, "request", valueCode.EncodeToString(text))
	if err != nil {
		return a, err
	}
	if m.get("rc") != "0" {
		return a, ErrNoLauncher
	}
	if err := json.Unmarshal([]byte(fieldText(&m, "answer")), &a); err != nil {
		return a, fmt.Errorf("pmi: the launcher sent an answer that cannot be read: %w", err)
	}
	if a.Why != "" && !a.Ended {
		return a, errors.New(a.Why)
	}
	return a, nil
}

// forwardRequest passes a request of a rank to the root, or answers it there.
func (s *Server) forwardRequest(key, request string, done func(answer string, ok bool)) {
	switch {
	case s.cfg.Up != nil:
		s.cfg.Up.Get(key, done)
	case s.cfg.Answer == nil:
		done("", false)
	default:
		text, err := valueCode.DecodeString(request)
		if err != nil {
			done("", false)
			return
		}
		s.cfg.Answer(string(text), func(answer string, ok bool) { done(textField(answer), ok) })
	}
}
