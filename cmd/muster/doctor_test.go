//go:build !windows

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// findings is what a test needs of the doctor's JSON.
type findings struct {
	Hosts []struct {
		Name string
		Here bool
	}
	Trials []struct {
		From, To, TCP, Full string
		FullSize            int `json:"full_size"`
	}
	Checks []struct {
		Check    string
		Findings []struct {
			Level, Detail, Advice string
			Hosts                 []string
		}
	}
	Problems int
}

// level returns the worst level of a check and its text.
func (f *findings) level(check string) (level, text string) {
	for _, c := range f.Checks {
		if c.Check != check {
			continue
		}
		for _, found := range c.Findings {
			if level == "" || level == "ok" || found.Level == "problem" {
				level, text = found.Level, found.Detail+" → "+found.Advice
			}
		}
	}
	return level, text
}

func TestDoctorLocal(t *testing.T) {
	got := muster(t, t.TempDir(), "doctor")
	if got.status != 0 || !strings.Contains(got.out, " checks: ") || !strings.Contains(got.out, "process_vm") || got.err != "" {
		t.Errorf("%+v", got)
	}
	verbose := muster(t, t.TempDir(), "doctor", "-v")
	if len(verbose.out) <= len(got.out) || !strings.Contains(verbose.out, "127.0.0.1/8") {
		t.Errorf("with -v it prints no more:\n%s", verbose.out)
	}
	var f findings
	if out := muster(t, t.TempDir(), "doctor", "--json"); json.Unmarshal([]byte(out.out), &f) != nil || f.Problems != 0 || len(f.Hosts) != 1 {
		t.Errorf("%+v", out)
	}
}

func TestDoctorRejectsBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"doctor", "a"}, {"doctor", "--hosts", "a", "--hostfile", "b"}, {"doctor", "--hosts", "a:x"},
		{"doctor", "--hosts", "a", "--rsh", "'"}, {"doctor", "--hostfile", "not-there"},
	} {
		if got := muster(t, t.TempDir(), args...); got.status != 2 || got.err == "" || got.out != "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestDoctorNamesUnreachableHost(t *testing.T) {
	got := muster(t, t.TempDir(), "doctor", "--hosts", "elsewhere", "--rsh", "sh -c 'echo no way to {host} >&2; exit 7'")
	if got.status != 1 || !strings.Contains(got.out, "elsewhere: ended without an answer (exit status 7): no way to elsewhere") {
		t.Errorf("%+v", got)
	}
}

// examine runs the doctor on the first host of a lab, for all of them.
func examine(t *testing.T, l *lab.Lab) *findings {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := l.Command(ctx, l.Hosts()[0], self, "doctor", "--json", "--rsh", l.Rsh(), "--hosts", strings.Join(l.Hosts(), ","))
	cmd.Env = append(os.Environ(), asMuster+"=1", "GORACE=atexit_sleep_ms=0")
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	var f findings
	if jsonErr := json.Unmarshal(out, &f); jsonErr != nil {
		t.Fatalf("%v, %v: %s%s", err, jsonErr, out, errOut.Bytes())
	}
	if failed := err != nil; failed != (f.Problems > 0) {
		t.Errorf("%d problems, and it ended with %v", f.Problems, err)
	}
	return &f
}

func onHost(t *testing.T, l *lab.Lab, host string, args ...string) {
	t.Helper()
	if out, err := l.Command(t.Context(), host, args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
}

func TestDoctorHostsReachEachOther(t *testing.T) {
	l := lab.New(t, lab.Config{Hosts: 3, MTU: 9000})
	f := examine(t, l)
	if len(f.Hosts) != 3 || !f.Hosts[0].Here || f.Hosts[0].Name != l.Hosts()[0] {
		t.Errorf("the hosts are %+v", f.Hosts)
	}
	for _, check := range []string{"reach", "same version", "interfaces", "routes", "connect", "packet size", "same time"} {
		if level, text := f.level(check); level != "ok" {
			t.Errorf("%s: %s: %s", check, level, text)
		}
	}
	if len(f.Trials) != 6 {
		t.Errorf("three hosts with an address each have six ways, and %d were tried", len(f.Trials))
	}
	for _, tr := range f.Trials {
		if tr.TCP != "" || tr.Full != "" || tr.FullSize != 9000 {
			t.Errorf("%+v", tr)
		}
	}
}

func TestDoctorFindsNetworkFaults(t *testing.T) {
	for _, c := range []struct {
		what   string
		harm   func(t *testing.T, l *lab.Lab, host string)
		check  string
		level  string
		text   string
		advice string
	}{
		{"a firewall", func(t *testing.T, l *lab.Lab, host string) {
			if _, err := exec.LookPath("iptables"); err != nil {
				t.Skip("there is no iptables command (Debian package iptables)")
			}
			onHost(t, l, host, "iptables", "-A", "INPUT", "-p", "tcp", "--syn", "-j", "DROP")
		}, "connect", "problem", "timeout", "firewall"},
		{"a smaller MTU at one end", func(t *testing.T, l *lab.Lab, host string) {
			onHost(t, l, host, "ip", "link", "set", l.Device(0), "mtu", "1300")
		}, "packet size", "problem", "1500 bytes lost on the way", "one MTU"},
		{"a pulled cable", func(t *testing.T, l *lab.Lab, host string) {
			if err := l.Link(host, 0, false); err != nil {
				t.Fatal(err)
			}
		}, "interfaces", "problem", "no carrier on eth0", "cable"},
		{"a silent switch", func(t *testing.T, l *lab.Lab, host string) {
			if err := l.Cut(host, 0); err != nil {
				t.Fatal(err)
			}
		}, "connect", "problem", "→", "route"},
		{"a doubled network", func(t *testing.T, l *lab.Lab, host string) {
			onHost(t, l, host, "ip", "link", "add", "dummy7", "type", "veth", "peer", "name", "dummy8")
			onHost(t, l, host, "ip", "addr", "add", "10.61.0.77/24", "dev", "dummy7")
			onHost(t, l, host, "ip", "link", "set", "dummy7", "up")
			onHost(t, l, host, "ip", "link", "set", "dummy8", "up")
		}, "routes", "warning", "are both in 10.61.0.0/24", "MUSTER_INTERFACE"},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := lab.New(t, lab.Config{Hosts: 2})
			c.harm(t, l, l.Hosts()[1])
			f := examine(t, l)
			level, text := f.level(c.check)
			if level != c.level || !strings.Contains(text, c.text) || !strings.Contains(text, c.advice) {
				t.Errorf("%s: %s: %s", c.check, level, text)
			}
		})
	}
}
