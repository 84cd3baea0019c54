package lab

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

func TestLinkAndCut(t *testing.T) {
	l := New(t, Config{Rails: 2})
	a, b := l.Hosts()[0], l.Hosts()[1]
	startEcho(t, l, a, ":7000")
	addr := func(rail int) string { return l.Addr(a, rail) + ":7000" }
	carrier := func() string {
		out, _ := l.Command(t.Context(), b, "cat", "/sys/class/net/"+l.Device(0)+"/carrier").Output()
		return strings.TrimSpace(string(out))
	}
	steps := []struct {
		what    string
		do      func() error
		talks   [2]bool // on each rail
		carrier string
	}{
		{"pulled", func() error { return l.Link(b, 0, false) }, [2]bool{false, true}, "0"},
		{"plugged in", func() error { return l.Link(b, 0, true) }, [2]bool{true, true}, "1"},
		{"cut", func() error { return l.Cut(b, 0) }, [2]bool{false, true}, "1"},
		{"mended", func() error { return l.Mend(b, 0) }, [2]bool{true, true}, "1"},
		{"pulled and cut everywhere", func() error { return errors.Join(l.Link(b, EveryRail, false), l.Cut(b, EveryRail)) }, [2]bool{false, false}, "0"},
		{"mended everywhere", func() error { return l.Mend(b, EveryRail) }, [2]bool{true, true}, "1"},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		for rail, should := range s.talks {
			got := answer(t, l, b, addr(rail))
			for range 20 { // a port needs a moment to forward again
				if should && got != "hello" {
					got = answer(t, l, b, addr(rail))
				}
			}
			if talks := got == "hello"; talks != should {
				t.Errorf("%s: the answer on rail %d is %q", s.what, rail, got)
			}
		}
		if got := carrier(); got != s.carrier {
			t.Errorf("%s: carrier %s", s.what, got)
		}
	}
}

func TestLoss(t *testing.T) {
	l := New(t, Config{Rails: 2})
	a, b := l.Hosts()[0], l.Hosts()[1]
	startServer(t, l, a, "count", ":7000")
	last := 0
	for _, step := range []struct {
		loss        float64
		least, most int // of 1000 packets, eight standard deviations around, and a few that are late
	}{{0, 980, 1000}, {0.5, 370, 650}, {0.05, 875, 998}, {1, 0, 20}, {0, 980, 1020}} {
		if err := l.Loss(a, 0, step.loss); err != nil {
			t.Fatal(err)
		}
		out := result(t, l, b, "shower", l.Addr(a, 0)+":7000", "LAB_TEST_ASK="+l.Addr(a, 1)+":7000")
		total, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil {
			t.Fatalf("the count is %q", out)
		}
		if got := total - last; got < step.least || got > step.most {
			t.Errorf("loss %v: of 1000 packets %d arrived, want %d to %d", step.loss, got, step.least, step.most)
		}
		last = total
	}
	if err := l.Loss(b, 0, 2); err == nil {
		t.Error("a probability of 2 was accepted")
	}
}

// A sender passes 64 KB to the kernel at once. If such a segment were lost as a whole, a
// loss of one percent would differ from that of a real cable.
func TestLossAndOffloadUseMTU(t *testing.T) {
	l := New(t, Config{})
	a, b := l.Hosts()[0], l.Hosts()[1]
	startEcho(t, l, a, ":7000")
	const size = 2 << 20
	packets := func() int {
		t.Helper()
		read := func() int {
			out, err := l.Command(t.Context(), a, "cat", "/sys/class/net/"+l.Device(0)+"/statistics/rx_packets").Output()
			if err != nil {
				t.Fatal(err)
			}
			n, _ := strconv.Atoi(strings.TrimSpace(string(out)))
			return n
		}
		before := read()
		result(t, l, b, "pour", l.Addr(a, 0)+":7000", "LAB_TEST_SIZE="+strconv.Itoa(size))
		return read() - before
	}
	const single = size / 1500
	for _, step := range []struct {
		what string
		do   func() error
		cut  bool
	}{
		{"loss", func() error { return l.Loss(a, 0, 1e-9) }, true},
		{"no loss", func() error { return l.Loss(a, 0, 0) }, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := packets(); (got > single) != step.cut {
			t.Errorf("%s: %d bytes arrived in %d packets, packets of the MTU would be more than %d", step.what, size, got, single)
		}
	}
}

func TestKill(t *testing.T) {
	l := New(t, Config{Hosts: 3})
	hosts := l.Hosts()
	var servers []*exec.Cmd
	for _, h := range hosts[:2] {
		servers = append(servers, startEcho(t, l, h, ":7000"))
	}
	if err := l.Kill(hosts[0]); err != nil {
		t.Fatal(err)
	}
	var died *exec.ExitError
	if err := servers[0].Wait(); !errors.As(err, &died) || died.ProcessState.String() != "signal: killed" {
		t.Errorf("the process on the killed host ended with %v", err)
	}
	if got := answer(t, l, hosts[2], l.Addr(hosts[0], 0)+":7000"); !strings.Contains(got, "refused") {
		t.Errorf("the killed host answers %q", got)
	}
	if got := answer(t, l, hosts[2], l.Addr(hosts[1], 0)+":7000"); got != "hello" {
		t.Errorf("the other host answers %q", got)
	}
	if err := l.Kill(hosts[0]); err != nil {
		t.Errorf("a host without processes: %v", err)
	}
}
