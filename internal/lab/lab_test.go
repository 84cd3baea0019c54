package lab

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestHostsCommunicateOnEachRail(t *testing.T) {
	l := New(t, Config{Hosts: 3, Rails: 2, MTU: 9000})
	hosts := l.Hosts()
	startEcho(t, l, hosts[0], ":7000")
	for _, addr := range []string{l.Addr(hosts[0], 0), l.Addr(hosts[0], 1), hosts[0], "h1"} {
		for _, from := range hosts {
			if got := answer(t, l, from, addr+":7000"); got != "hello" {
				t.Errorf("from %s to %s: %q", from, addr, got)
			}
		}
	}
	out, err := l.Command(t.Context(), hosts[2], "cat", "/sys/class/net/"+l.Device(1)+"/mtu").Output()
	if err != nil || string(out) != "9000\n" {
		t.Errorf("the MTU is %q, %v", out, err)
	}
}

func TestHostsUseCubic(t *testing.T) {
	l := New(t, Config{})
	if known, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control"); !strings.Contains(string(known), congestion) {
		t.Skip("this kernel has no " + congestion)
	}
	for _, host := range l.Hosts() {
		if out, err := l.Command(t.Context(), host, "cat", currentControl).Output(); err != nil || string(out) != congestion+"\n" {
			t.Errorf("%s uses %q, %v", host, out, err)
		}
	}
}

func TestRsh(t *testing.T) {
	l := New(t, Config{})
	a, b := l.Hosts()[0], l.Hosts()[1]
	args := append(strings.Fields(strings.ReplaceAll(l.Rsh(), "{host}", b)), "ip", "-brief", "addr", "show", l.Device(0))
	out, err := l.Command(t.Context(), a, args[0], args[1:]...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), l.Addr(b, 0)+"/24") {
		t.Errorf("asked through %s, %s has %q, %v", a, b, out, err)
	}
}

func TestDown(t *testing.T) {
	l := New(t, Config{})
	cmd := startEcho(t, l, l.Hosts()[0], ":7000")
	for range 2 {
		if err := l.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	var died *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &died) || died.ProcessState.String() != "signal: killed" {
		t.Errorf("the process on the host ended with %v", err)
	}
	for _, host := range append(l.Hosts(), l.switchName()) {
		if exists(host) {
			t.Errorf("%s is still there", host)
		}
		if _, err := os.Stat(hostFiles + "/" + host); err == nil {
			t.Errorf("the files of %s are still there", host)
		}
	}
}

func TestLabsOfOneProcessAreIsolated(t *testing.T) {
	one, two := New(t, Config{}), New(t, Config{})
	startEcho(t, one, one.Hosts()[0], ":7000")
	if got := answer(t, two, two.Hosts()[1], two.Addr(two.Hosts()[0], 0)+":7000"); !strings.Contains(got, "refused") {
		t.Errorf("the same address in another lab answers %q", got)
	}
}

func TestUpRejectsBadConfig(t *testing.T) {
	for _, cfg := range []Config{{Hosts: -1}, {Hosts: 251}, {Rails: 17}, {MTU: 100}, {Queue: 1000}, {Prefix: "a/b"}, {Prefix: "Big"},
		{Name: "-a"}, {Name: "a-b"}, {Name: "1a"}, {Rate: "fast"}, {Loss: -0.1}, {Loss: 1.1}, {Loss: math.NaN()},
	} {
		if l, err := Create(cfg); err == nil {
			l.Remove()
			t.Errorf("%+v was made", cfg)
		}
	}
}
