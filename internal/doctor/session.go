package doctor

// The asking side: it starts a doctor on another host through the user's remote shell and
// communicates with it over standard input and output.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// session is a doctor on another host.
type session struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	lines  <-chan string
	stderr tail
	noise  []string // output before the greeting
	ended  bool
}

const maxNoise = 200 // lines

// startSession runs a command and waits for the greeting, or until ctx ends. Its error
// includes the last output of the other side. The session itself lasts until close.
func startSession(ctx context.Context, words []string) (*session, error) {
	sessionCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{cmd: exec.CommandContext(sessionCtx, words[0], words[1:]...), cancel: cancel}
	s.cmd.WaitDelay = time.Second
	s.cmd.Stderr = &s.stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("cannot start %s: %w", words[0], err)
	}
	s.in, s.lines = in, readLines(sessionCtx, out)
	for len(s.noise) < maxNoise {
		select {
		case l, open := <-s.lines:
			if !open {
				return nil, s.fail("ended without an answer")
			}
			if strings.TrimSpace(l) == greeting {
				return s, nil
			}
			s.noise = append(s.noise, l)
		case <-ctx.Done():
			return nil, s.fail("no answer in time")
		}
	}
	return nil, s.fail("the answer does not come from this version of muster")
}

// fail ends the session and returns an error with the last line of its output.
func (s *session) fail(what string) error {
	err := s.close()
	lastLine := s.stderr.last()
	if lastLine == "" && len(s.noise) > 0 {
		lastLine = s.noise[len(s.noise)-1]
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		what += fmt.Sprintf(" (exit status %d)", exit.ExitCode())
	}
	if lastLine != "" {
		what += ": " + lastLine
	}
	return errors.New(what)
}

// ask sends one request and returns the reply.
func (s *session) ask(ctx context.Context, q question) (reply, error) {
	var r reply
	text, err := json.Marshal(q)
	if err != nil {
		return r, err
	}
	if _, err := s.in.Write(append(text, '\n')); err != nil {
		return r, s.fail("the connection ended")
	}
	select {
	case l, open := <-s.lines:
		if !open {
			return r, s.fail("the connection ended")
		}
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			return r, s.fail("another version of muster answers: " + err.Error())
		}
		if r.Error != "" {
			return r, errors.New("another version of muster answers: " + r.Error)
		}
		return r, nil
	case <-ctx.Done():
		return r, s.fail("no answer in time to " + q.Ask)
	}
}

// close closes the input of the other side and kills it after a second.
func (s *session) close() error {
	if s.ended {
		return nil
	}
	s.ended = true
	_ = s.in.Close()
	timer := time.AfterFunc(time.Second, s.cancel)
	defer timer.Stop()
	defer s.cancel()
	return s.cmd.Wait()
}

// tail keeps the end of the data written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if n := len(t.text) - 4096; n > 0 {
		t.text = t.text[n:]
	}
	return len(p), nil
}

// last returns the last line that is not empty.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.text), []byte("\n"))
	return strings.TrimSpace(string(lines[len(lines)-1]))
}
