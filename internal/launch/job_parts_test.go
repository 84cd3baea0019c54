package launch

import (
	"bytes"
	"io"
	"syscall"
	"testing"
	"time"
)

func TestRoster(t *testing.T) {
	r := newRoster(3)
	if _, ok := r.firstEnded(); ok || r.pending != 3 || r.living != 0 {
		t.Errorf("before the start all ranks are pending, and none has ended: %+v", r)
	}
	for rank := range 3 {
		r.start(rank, 100+rank)
	}
	if !r.remove(2, ending{code: 7}) || r.remove(2, ending{code: 8}) {
		t.Error("a rank ends once")
	}
	r.remove(1, ending{signal: syscall.SIGKILL})
	if rank, ok := r.firstEnded(); !ok || rank != 1 || r.hasEnded(0) || !r.hasEnded(2) {
		t.Errorf("rank 1 is the lowest that has ended: %d, %v", rank, ok)
	}
	if r.pending != 0 || r.living != 1 || r.ended != 2 || r.all[2].end.code != 7 || r.all[2].pid != 102 {
		t.Errorf("one of three ranks is alive: %+v", r)
	}
}

func TestOutcomeIsTheFirstFailure(t *testing.T) {
	var o outcome
	o.fail(3, "first", 256)
	o.fail(4, "second", 9)
	if o.cause.rank != 3 || o.cause.text != "first" || o.status != 1 {
		t.Errorf("the first failure is the cause, and its status must not look like success: %+v, status %d", o.cause, o.status)
	}
}

func TestForwardedSignals(t *testing.T) {
	var f forwarded
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	if f.interruptsAgain(at(0)) || f.interruptsAgain(at(50)) || !f.interruptsAgain(at(500)) {
		t.Error("two SIGINT of one keystroke are one; a later one is the second")
	}
	if f.quitsAgain(at(0)) || !f.quitsAgain(at(1500)) || f.quitsAgain(at(4000)) {
		t.Error("a SIGQUIT within 2 s of the report is the second in a row")
	}
}

func TestShutdownReport(t *testing.T) {
	s := newShutdown(grace{})
	s.asked, s.survivors, s.noticed, s.killed = true, 5, 2, 1
	if lines := s.report(6, true); len(lines) != 2 {
		t.Errorf("killed ranks and ranks that had not noticed the failure are reported: %q", lines)
	}
	if lines := s.report(6, false); len(lines) != 1 {
		t.Errorf("ranks that had not all started cannot have noticed it: %q", lines)
	}
}

func TestConsole(t *testing.T) {
	for _, c := range []struct {
		label Label
		ranks int
		quiet bool
		want  string
	}{
		{LabelAuto, 1, false, "text\nmuster: note\n"},
		{LabelAuto, 2, false, "[0] text\nmuster: note\n"},
		{LabelAlways, 1, false, "[0] text\nmuster: note\n"},
		{LabelNever, 2, true, "text\n"},
	} {
		var out bytes.Buffer
		con := newConsole(&Output{Stdout: &out, Stderr: &out, Label: c.label, Quiet: c.quiet}, c.ranks)
		con.lines(0, false)([]byte("text\n"))
		con.notice("note")
		if out.String() != c.want {
			t.Errorf("%+v: the console has %q", c, out.String())
		}
	}
}

func TestDefaultsOfLimitsAndOutput(t *testing.T) {
	for _, c := range []struct {
		limits Limits
		remote bool
		want   Limits
	}{
		{Limits{}, false, Limits{Stuck: defaultStuckAfter}},
		{Limits{}, true, Limits{Stuck: defaultStuckAfter, Start: defaultStart}},
		{Limits{Start: -1, Stuck: -1, Job: time.Hour}, true, Limits{Start: -1, Stuck: -1, Job: time.Hour}},
	} {
		got := c.limits
		if err := got.complete(c.remote); err != nil || got != c.want {
			t.Errorf("%+v of hosts %v becomes %+v, want %+v (%v)", c.limits, c.remote, got, c.want, err)
		}
	}
	for _, bad := range []Limits{{Job: -1}, {Grace: -1}} {
		if err := bad.complete(false); err == nil {
			t.Errorf("%+v must be refused", bad)
		}
	}
	out := Output{Stdout: io.MultiWriter()}
	out.complete()
	if out.Stderr != io.Discard || out.whole(1, false) != out.Stdout || out.whole(2, false) != nil {
		t.Error("output is discarded by default, and that of one rank goes to the writer as it is")
	}
	if out.Label = LabelAlways; out.whole(1, true) != nil {
		t.Error("labelled output is written by lines")
	}
	r := Remote{TreeWidth: -1}
	if err := r.complete(); err == nil {
		t.Error("a tree of width -1 must be refused")
	}
	if r.TreeWidth = 0; r.complete() != nil || r.TreeWidth != defaultTreeWidth || r.AgentPath == "" {
		t.Errorf("the agents are this program, in a tree of the default width: %+v", r)
	}
}
