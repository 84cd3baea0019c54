//go:build channels && linux

package channels

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
)

// The network between two hosts drops all packets for a while. The launcher still reaches
// both.

// partition starts or stops dropping packets between the hosts.
func (j *job) partition(t *testing.T, on bool) {
	t.Helper()
	a, b := j.hosts.Hosts()[0], j.hosts.Hosts()[1]
	change := "-D"
	if on {
		change = "-I"
	}
	for _, rule := range [][]string{{"INPUT", "-s"}, {"OUTPUT", "-d"}} {
		args := []string{"netns", "exec", a, "iptables", "-w", change, rule[0], rule[1], j.hosts.Addr(b, 0), "-j", "DROP"}
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("iptables: %v\n%s", err, out)
		}
	}
}

var pause = regexp.MustCompile(`rank 0 has exchanged \d+ messages, longest pause (\S+)`)

const (
	peerTimeout    = 4 * time.Second
	shortPartition = 2 * time.Second
)

// errorWatch keeps what a job prints, and when ranks report that nothing was heard.
type errorWatch struct {
	text   bytes.Buffer
	errors []time.Time
}

func (w *errorWatch) String() string { return w.text.String() }

func (w *errorWatch) Write(b []byte) (int, error) {
	for range bytes.Count(b, []byte("nothing was heard")) {
		w.errors = append(w.errors, time.Now())
	}
	return w.text.Write(b)
}

func TestPartition(t *testing.T) {
	j := build(t, lab.Config{Hosts: 2})
	for _, channel := range []string{"hybrid", "rc", "rd", "ud"} {
		t.Run(channel, func(t *testing.T) {
			for _, heals := range []bool{true, false} {
				t.Run(fmt.Sprintf("heals %v", heals), func(t *testing.T) { j.partitioned(t, channel, heals) })
			}
		})
	}
}

func (j *job) partitioned(t *testing.T, channel string, heals bool) {
	env := []string{"MUSTER_CHANNEL=" + channel, "MUSTER_PEER_TIMEOUT=" + peerTimeout.String()}
	cmd := j.command(t, 1, env, "answer", "-messages", "1000", "-longest", "50000", "-think", "300us")
	var out errorWatch
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	j.awaitRanks(t, j.hosts.Hosts()[1], &out)
	time.Sleep(500 * time.Millisecond) // until messages flow
	at := time.Now()
	j.partition(t, true)
	if heals {
		time.Sleep(shortPartition) // of a real network
		j.partition(t, false)
		partition := time.Since(at) // iptables may take a while on a busy machine
		if partition > peerTimeout*3/4 {
			_ = cmd.Process.Kill()
			<-ended
			t.Skipf("the machine is so busy that a partition of %v lasts %v", shortPartition, partition)
		}
		if err := <-ended; err != nil {
			t.Fatalf("a partition of %v: %v\n%s", shortPartition, err, out.String())
		}
		m := pause.FindStringSubmatch(out.String())
		if m == nil {
			t.Fatalf("rank 0 does not report its pause:\n%s", out.String())
		}
		took, err := time.ParseDuration(m[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("the partition lasts %v, the longest pause %v", partition, took)
		if took < shortPartition/2 || took > partition+time.Second {
			t.Errorf("after a partition of %v the longest pause is %v", partition, took)
		}
		return
	}
	err := <-ended
	j.partition(t, false)
	t.Logf("the job ends after %v:\n%s", time.Since(at), out.String())
	if err == nil || len(out.errors) == 0 {
		t.Fatalf("the job ends with %v and reports no timeout", err)
	}
	// Connections time out first, after a third of the time, then datagrams.
	for _, one := range out.errors {
		if took := one.Sub(at); took < peerTimeout-500*time.Millisecond || took > peerTimeout*4/3+time.Second {
			t.Errorf("a rank reports the timeout after %v, want %v", took, peerTimeout)
		}
	}
	for _, want := range []string{"nothing was heard for 4", "the network between", "MUSTER_PEER_TIMEOUT", "over " + channel} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the error does not contain %q", want)
		}
	}
}
