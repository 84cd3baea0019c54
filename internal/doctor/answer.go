package doctor

// The answering side: a doctor that another one has started on this host. It answers
// requests, one line of JSON each, until its input ends.
//
//	asker → host   {"ask":"facts"}
//	host → asker   {"facts":{…}}
//	               {"ask":"clock"}          return the time; sent several times
//	               {"ask":"listen"}         open ports for trials on every address
//	               {"ask":"try","places":…} connect to those of the other hosts

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// greeting is the first line of an answering doctor. Output before it comes from a login
// shell.
const greeting = "muster doctor answers 1"

// answerTime limits the run time of a doctor whose asker is gone without closing.
const answerTime = 5 * time.Minute

type question struct {
	Ask       string   `json:"ask"`
	Name      string   `json:"name,omitempty"`     // the asker's name for the host
	Provider  string   `json:"provider,omitempty"` // see Config
	Interface string   `json:"interface,omitempty"`
	Targets   []Target `json:"places,omitempty"` // to try
}

type reply struct {
	Facts   *Facts   `json:"facts,omitempty"`
	Clock   int64    `json:"clock,omitempty"` // nanoseconds since 1970
	Targets []Target `json:"places,omitempty"`
	Trials  []Trial  `json:"trials,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// answerer answers requests. An asker on the same host uses it directly.
type answerer struct {
	cfg        Config
	trialPorts *trialPorts // nil until asked to listen
}

func (a *answerer) answer(ctx context.Context, q question) (r reply) {
	switch q.Ask {
	case "facts":
		cfg := a.cfg
		cfg.Provider, cfg.Interface = q.Provider, q.Interface
		r.Facts = Gather(ctx, cfg)
	case "clock":
		r.Clock = time.Now().UnixNano()
	case "listen":
		if a.trialPorts == nil {
			a.trialPorts = openTrialPorts(interfaces())
		}
		r.Targets = a.trialPorts.targets
	case "try":
		r.Trials = tryAll(ctx, q.Name, q.Targets, interfaces())
	default:
		r.Error = fmt.Sprintf("this version of muster doctor does not support the request %q", q.Ask)
	}
	return r
}

func (a *answerer) close() {
	if a.trialPorts != nil {
		a.trialPorts.close()
	}
}

// Answer serves an asker over a pair of streams, until the input ends or a time limit of
// several minutes is reached.
func Answer(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	a := &answerer{cfg: cfg}
	defer a.close()
	if _, err := fmt.Fprintln(out, greeting); err != nil {
		return err
	}
	lines := readLines(ctx, in)
	enc := json.NewEncoder(out)
	for {
		select {
		case <-ctx.Done():
			return errors.New("doctor: no request before the time limit")
		case l, open := <-lines:
			if !open {
				return nil
			}
			var q question
			r := reply{}
			if err := json.Unmarshal([]byte(l), &q); err != nil {
				r.Error = "invalid request: " + err.Error()
			} else {
				r = a.answer(ctx, q)
			}
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
	}
}

// maxLine is enough for the targets of a few thousand hosts.
const maxLine = 16 << 20

// readLines reads until the end of a stream or of ctx. Its goroutine may stay in a
// blocking read until the process exits.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scan := bufio.NewScanner(in)
		scan.Buffer(nil, maxLine)
		for scan.Scan() {
			select {
			case lines <- scan.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
