package doctor

// The side that is asked: a doctor that another one has started on this host. It
// answers one question after the other, a line of JSON each, until its input ends.
//
//	asker → host   {"ask":"facts"}
//	host → asker   {"facts":{…}}
//	               {"ask":"clock"}          what time is it; asked several times
//	               {"ask":"listen"}         open ports for trials on every address
//	               {"ask":"try","places":…} reach those of the others

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// greeting is the first line that a doctor who is asked writes. What stands
// before it comes from a login shell.
const greeting = "muster doctor answers 1"

// answerTime bounds the life of a doctor whose asker has gone without closing.
const answerTime = 5 * time.Minute

type question struct {
	Ask       string   `json:"ask"`
	Name      string   `json:"name,omitempty"`     // what the host is called by the asker
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

// answerer answers; it is used directly by an asker on the same host.
type answerer struct {
	cfg   Config
	stand *stand // nil until asked to listen
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
		if a.stand == nil {
			a.stand = openStand(interfaces())
		}
		r.Targets = a.stand.places
	case "try":
		r.Trials = tryAll(ctx, q.Name, q.Targets, interfaces())
	default:
		r.Error = fmt.Sprintf("%q is no question that this version of muster doctor knows", q.Ask)
	}
	return r
}

func (a *answerer) close() {
	if a.stand != nil {
		a.stand.close()
	}
}

// Answer serves an asker over a pair of streams, until the input ends or for
// some minutes.
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
			return errors.New("doctor: nobody asked for minutes")
		case l, open := <-lines:
			if !open {
				return nil
			}
			var q question
			r := reply{}
			if err := json.Unmarshal([]byte(l), &q); err != nil {
				r.Error = "not understood: " + err.Error()
			} else {
				r = a.answer(ctx, q)
			}
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
	}
}

// maxLine is room for the places of a few thousand hosts.
const maxLine = 16 << 20

// readLines reads until the end of a stream or of ctx. The goroutine stays in a
// read that nobody ends; so does the process that it belongs to.
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
