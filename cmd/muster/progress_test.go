package main

import (
	"strings"
	"testing"
	"time"
)

func TestProgressLine(t *testing.T) {
	p := &progress{name: "sim", total: 8}
	if got, want := p.line(time.Second), "sim: 0 % done after 1s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.step(2, "ring of 8 bytes")
	if got, want := p.line(3*time.Second), "sim: 25 % done after 3s, about 9s left, now ring of 8 bytes"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p.step(6, "")
	if got, want := p.line(4*time.Second), "sim: 100 % done after 4s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgressReportsEachSecond(t *testing.T) {
	var out strings.Builder
	p := startProgress(&out, "work", 1)
	time.Sleep(1200 * time.Millisecond)
	p.output(func() { out.WriteString("row\n") })
	p.stop()
	if got := out.String(); !strings.HasPrefix(got, "work: 0 % done after 1s\n") || !strings.Contains(got, "row\n") {
		t.Errorf("got %q", got)
	}
}
