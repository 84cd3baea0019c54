package lab

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The test binary is also the program that runs on the hosts.
func TestMain(m *testing.M) {
	switch os.Getenv("LAB_TEST_ROLE") {
	case "echo":
		echo()
	case "ask":
		ask()
	}
	os.Exit(m.Run())
}

// echo listens where it is told, says so, and answers one connection at a time
// until it is killed.
func echo() {
	l, err := net.Listen("tcp", os.Getenv("LAB_TEST_ADDR"))
	if err != nil {
		io.WriteString(os.Stdout, err.Error()+"\n")
		os.Exit(1)
	}
	io.WriteString(os.Stdout, "ready\n")
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		io.Copy(c, c)
		c.Close()
	}
}

// ask sends a word to an address and prints what comes back, or the error.
func ask() {
	c, err := net.DialTimeout("tcp", os.Getenv("LAB_TEST_ADDR"), 500*time.Millisecond)
	if err == nil {
		c.SetDeadline(time.Now().Add(2 * time.Second))
		io.WriteString(c, "hello")
		c.(*net.TCPConn).CloseWrite()
		_, err = io.Copy(os.Stdout, c)
	}
	if err != nil {
		io.WriteString(os.Stdout, err.Error())
	}
	os.Exit(0)
}

func start(t *testing.T, l *Lab, host, role, addr string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	cmd := l.Command(ctx, host, os.Args[0])
	cmd.Env = append(os.Environ(), "LAB_TEST_ROLE="+role, "LAB_TEST_ADDR="+addr)
	return cmd
}

func startEcho(t *testing.T, l *Lab, host, addr string) *exec.Cmd {
	t.Helper()
	cmd := start(t, l, host, "echo", addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	word := make([]byte, 100)
	n, err := out.Read(word)
	if said := string(word[:n]); err != nil || said != "ready\n" {
		t.Fatalf("the echo server said %q, %v", said, err)
	}
	return cmd
}

func answer(t *testing.T, l *Lab, host, addr string) string {
	t.Helper()
	out, err := start(t, l, host, "ask", addr).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestHostsTalkByAddressAndByNameOnEachRail(t *testing.T) {
	l := New(t, Config{Hosts: 3, Rails: 2, MTU: 9000})
	hosts := l.Hosts()
	startEcho(t, l, hosts[0], ":7000")
	for _, addr := range []string{l.Addr(hosts[0], 0), l.Addr(hosts[0], 1), hosts[0]} {
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

func TestAHostReachesTheOthersThroughRsh(t *testing.T) {
	l := New(t, Config{})
	a, b := l.Hosts()[0], l.Hosts()[1]
	args := append(strings.Fields(strings.ReplaceAll(l.Rsh(), "{host}", b)), "ip", "-brief", "addr", "show", l.Device(0))
	out, err := l.Command(t.Context(), a, args[0], args[1:]...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), l.Addr(b, 0)+"/24") {
		t.Errorf("asked through %s, %s has %q, %v", a, b, out, err)
	}
}

func TestAPulledCableAndASilentCutStopTraffic(t *testing.T) {
	l := New(t, Config{})
	a, b := l.Hosts()[0], l.Hosts()[1]
	startEcho(t, l, a, ":7000")
	addr := l.Addr(a, 0) + ":7000"
	carrier := func() string {
		out, _ := l.Command(t.Context(), b, "cat", "/sys/class/net/"+l.Device(0)+"/carrier").Output()
		return strings.TrimSpace(string(out))
	}
	steps := []struct {
		what    string
		do      func() error
		talks   bool
		carrier string
	}{
		{"pulled", func() error { return l.Link(b, 0, false) }, false, "0"},
		{"plugged in", func() error { return l.Link(b, 0, true) }, true, "1"},
		{"cut", func() error { return l.Cut(b, 0) }, false, "1"},
		{"healed", func() error { return l.Mend(b, 0) }, true, "1"},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		got := answer(t, l, b, addr)
		for range 20 { // a port takes a moment to forward again
			if s.talks && got != "hello" {
				got = answer(t, l, b, addr)
			}
		}
		if talks := got == "hello"; talks != s.talks {
			t.Errorf("%s: the answer is %q", s.what, got)
		}
		if got := carrier(); got != s.carrier {
			t.Errorf("%s: carrier %s", s.what, got)
		}
	}
}

func TestLossAndRateCanBeSetChangedAndTakenAway(t *testing.T) {
	l := New(t, Config{})
	a, b := l.Hosts()[0], l.Hosts()[1]
	startEcho(t, l, a, ":7000")
	addr := l.Addr(a, 0) + ":7000"
	for _, rate := range []string{"1gbit", "10mbit", ""} {
		if err := l.Rate(b, 0, rate); err != nil {
			t.Fatal(err)
		}
		if got := answer(t, l, b, addr); got != "hello" {
			t.Errorf("rate %q: %q", rate, got)
		}
	}
	for _, loss := range []float64{0.5, 1, 0} {
		if err := l.Loss(b, 0, loss); err != nil {
			t.Fatal(err)
		}
		if got := answer(t, l, b, addr); loss != 0.5 && (got == "hello") != (loss == 0) {
			t.Errorf("loss %v: %q", loss, got)
		}
	}
	if err := l.Loss(b, 0, 2); err == nil {
		t.Error("a probability of 2 was taken")
	}
	if _, err := exec.LookPath("ethtool"); err == nil {
		if err := l.Offload(b, 0, false); err != nil {
			t.Error(err)
		}
	}
}

func TestDownKillsWhatIsLeftAndCanBeRepeated(t *testing.T) {
	l := New(t, Config{})
	cmd := startEcho(t, l, l.Hosts()[0], ":7000")
	for range 2 {
		if err := l.Down(); err != nil {
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

func TestALabOfADeadProcessIsRemovedByTheNext(t *testing.T) {
	if err := Usable(); err != nil {
		t.Skip(err)
	}
	child := exec.CommandContext(t.Context(), "true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	stale := "mustertest" + strconv.Itoa(child.Process.Pid) + "a-h1"
	if err := command("", "ip", "netns", "add", stale); err != nil {
		t.Fatal(err)
	}
	defer removeHost(stale)
	New(t, Config{Prefix: "mustertest", Hosts: 1})
	if exists(stale) {
		t.Errorf("%s is still there", stale)
	}
}

func TestTwoLabsOfOneProcessDoNotMeet(t *testing.T) {
	one, two := New(t, Config{}), New(t, Config{})
	startEcho(t, one, one.Hosts()[0], ":7000")
	if got := answer(t, two, two.Hosts()[1], two.Addr(two.Hosts()[0], 0)+":7000"); !strings.Contains(got, "refused") {
		t.Errorf("the same address in another lab answers %q", got)
	}
}

func TestAnUnreasonableLabIsRefused(t *testing.T) {
	for _, cfg := range []Config{{Hosts: -1}, {Hosts: 251}, {Rails: 17}, {MTU: 100}, {Prefix: "a/b"}, {Prefix: "Big"}} {
		if l, err := Up(cfg); err == nil {
			l.Down()
			t.Errorf("%+v was made", cfg)
		}
	}
}
