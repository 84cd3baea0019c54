package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is a line of go test -json (go doc test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// reader prints what go test would print without -json.
type reader struct {
	out     io.Writer
	verbose bool
	step    string
	times   []testTime
	// pending is the output of tests that have not ended, by package and test: it is printed
	// if they fail.
	pending map[string][]string
	order   []string // the keys of pending
}

func (r *reader) read(in io.Reader) error {
	r.pending = map[string][]string{}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(r.out, line)
			} else {
				r.handle(&e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *reader) handle(e *event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		switch {
		case r.verbose || e.Test == "" && e.Output != "PASS\n":
			fmt.Fprint(r.out, e.Output)
		case e.Test != "" && !isProgress(e.Output):
			if _, ok := r.pending[key]; !ok {
				r.order = append(r.order, key)
			}
			r.pending[key] = append(r.pending[key], e.Output)
		}
	case "pass", "skip", "fail":
		switch {
		case e.Test != "":
			if e.Action == "fail" {
				r.print(key)
			}
			delete(r.pending, key)
			if e.Action != "skip" && !strings.Contains(e.Test, "/") {
				r.times = append(r.times, testTime{e.Elapsed, r.step, e.Package, e.Test})
			}
		case e.Action == "fail": // tests that were running when the package ended, too
			for _, key := range r.order {
				if strings.HasPrefix(key, e.Package+" ") {
					r.print(key)
					delete(r.pending, key)
				}
			}
		}
	}
}

func (r *reader) print(key string) {
	for _, line := range r.pending[key] {
		fmt.Fprint(r.out, line)
	}
}

// isProgress reports whether a line is only printed by go test -v.
func isProgress(line string) bool {
	for _, prefix := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}
