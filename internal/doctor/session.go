package doctor

// The side that asks another host: it starts a doctor there through the user's
// remote shell and talks to it over standard input and output.

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
	noise  []string // what came before the greeting
	ended  bool
}

const maxNoise = 200 // lines

// startSession runs the words and waits for the greeting. It ends, with what
// the other side has said, when ctx does. The session itself lives until close.
func startSession(ctx context.Context, words []string) (*session, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{cmd: exec.CommandContext(life, words[0], words[1:]...), cancel: cancel}
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
		return nil, fmt.Errorf("%s cannot be started: %w", words[0], err)
	}
	s.in, s.lines = in, readLines(life, out)
	for len(s.noise) < maxNoise {
		select {
		case l, open := <-s.lines:
			if !open {
				return nil, s.failed("ended without an answer")
			}
			if strings.TrimSpace(l) == greeting {
				return s, nil
			}
			s.noise = append(s.noise, l)
		case <-ctx.Done():
			return nil, s.failed("no answer in time")
		}
	}
	return nil, s.failed("another version of muster, or no muster at all, answers")
}

// failed ends the session and says why, with the last that was heard.
func (s *session) failed(what string) error {
	err := s.close()
	said := s.stderr.last()
	if said == "" && len(s.noise) > 0 {
		said = s.noise[len(s.noise)-1]
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		what += fmt.Sprintf(" (exit status %d)", exit.ExitCode())
	}
	if said != "" {
		what += ": " + said
	}
	return errors.New(what)
}

// ask puts one question.
func (s *session) ask(ctx context.Context, q question) (reply, error) {
	var r reply
	text, err := json.Marshal(q)
	if err != nil {
		return r, err
	}
	if _, err := s.in.Write(append(text, '\n')); err != nil {
		return r, s.failed("it went away")
	}
	select {
	case l, open := <-s.lines:
		if !open {
			return r, s.failed("it went away")
		}
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			return r, s.failed("another version of muster answers: " + err.Error())
		}
		if r.Error != "" {
			return r, errors.New("another version of muster answers: " + r.Error)
		}
		return r, nil
	case <-ctx.Done():
		return r, s.failed("no answer in time to " + q.Ask)
	}
}

// close lets the other side end by itself, and ends it after a second.
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

// tail keeps the last of what is written to it.
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

// last is the last line that is not empty.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.text), []byte("\n"))
	return strings.TrimSpace(string(lines[len(lines)-1]))
}
