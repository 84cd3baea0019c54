package main

// Progress of long commands: what is done and the time that is left, once a second. On a
// terminal the line is overwritten, and rows of the output appear above it.

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// statusInterrupted is the exit status of a command that SIGINT has ended, as that of a shell.
const statusInterrupted = 128 + int(syscall.SIGINT)

// interruptible returns a context that a signal ends, so that the command can keep what it has.
// A second signal ends the process.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// progress counts parts of a command, in any unit.
type progress struct {
	name string
	w    io.Writer
	end  func()

	mu          sync.Mutex
	began       time.Time
	done, total float64
	now         string // what is under way
	shown       bool   // a line on the terminal is to be removed
}

// startProgress begins to report. A nil w reports nothing.
func startProgress(w io.Writer, name string, total float64) *progress {
	p := &progress{name: name, w: w, began: time.Now(), total: total}
	stop, over := make(chan struct{}), make(chan struct{})
	p.end = func() { close(stop); <-over }
	go func() {
		defer close(over)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for {
			select {
			case <-second.C:
				p.report()
			case <-stop:
				return
			}
		}
	}()
	return p
}

// stop ends the reports.
func (p *progress) stop() {
	p.end()
	p.output(func() {})
}

// step adds what is done, and sets what follows.
func (p *progress) step(done float64, now string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += done
	p.now = now
}

// output calls a function that writes to the terminal.
func (p *progress) output(write func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K") // ECMA-48 8.3.41 (EL): erase the line
		p.shown = false
	}
	write()
}

func (p *progress) report() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.w == nil {
		return
	}
	line := p.line(time.Since(p.began))
	if onTerminal(p.w) {
		fmt.Fprintf(p.w, "\r\x1b[K%s", line)
		p.shown = true
		return
	}
	fmt.Fprintln(p.w, line)
}

// line is the report after a time.
func (p *progress) line(elapsed time.Duration) string {
	parts := []string{fmt.Sprintf("%s: %.0f %% done after %v", p.name, 100*p.done/max(p.total, 1e-9), elapsed.Round(time.Second))}
	if p.done > 0 && p.done < p.total {
		left := time.Duration(float64(elapsed) * (p.total - p.done) / p.done)
		parts = append(parts, fmt.Sprintf("about %v left", left.Round(time.Second)))
	}
	if p.now != "" {
		parts = append(parts, "now "+p.now)
	}
	return strings.Join(parts, ", ")
}
