//go:build channels && linux

package channels

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/internal/seeded"
)

// A firewall, a load balancer or an administrator resets a TCP connection in mid-job. The
// host that sent the packet gets the reset; the other one hears nothing.

var resets = flag.Int("resets", 3, "runs of TestATCPResetLosesNothing for each channel")

// outcome is how a run ended, and how long after the reset if it failed.
type outcome struct {
	arrived bool
	after   time.Duration
	packets int // that the firewall answered with a reset
	out     string
}

func TestTCPReset(t *testing.T) {
	j := build(t, lab.Config{Hosts: 2})
	for _, channel := range []string{"hybrid", "rc"} {
		t.Run(channel, func(t *testing.T) {
			arrived, failed, idle := 0, 0, 0
			var slowest time.Duration
			lasts := map[string]time.Duration{}
			random := seeded.Random(t)
			for run := range *resets {
				// Both ranks send all the time, or they alternate.
				traffic := []string{"answer", "exchange"}[run/2%2]
				if lasts[traffic] == 0 {
					lasts[traffic] = j.undisturbed(t, channel, traffic)
				}
				o := j.reset(t, channel, traffic, run, lasts[traffic], random)
				switch {
				case o.packets == 0:
					idle++
				case o.arrived:
					arrived++
				default:
					failed++
					slowest = max(slowest, o.after)
					if o.after > time.Second || !strings.Contains(o.out, "rank 0") && !strings.Contains(o.out, "rank 1") {
						t.Errorf("run %d fails %v after the reset:\n%s", run, o.after, o.out)
					}
				}
			}
			t.Logf("%d runs: %d got all data, %d failed (slowest error after %v), %d had no packet to reset", *resets, arrived, failed, slowest, idle)
			if idle == *resets {
				t.Error("the firewall has reset no connection")
			}
		})
	}
}

// begin starts a job and returns when both ranks run.
func (j *job) begin(t *testing.T, channel, traffic string, out *bytes.Buffer) (cmd *exec.Cmd, ended chan error) {
	t.Helper()
	cmd = j.command(t, 1, []string{"MUSTER_CHANNEL=" + channel}, traffic, "-messages", "8000", "-longest", "50000")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for _, host := range j.hosts.Hosts() {
		j.awaitRanks(t, host, out)
	}
	return cmd, ended
}

// undisturbed returns the duration of a job without resets.
func (j *job) undisturbed(t *testing.T, channel, traffic string) time.Duration {
	t.Helper()
	var out bytes.Buffer
	_, ended := j.begin(t, channel, traffic, &out)
	at := time.Now()
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return time.Since(at)
}

// reset runs a job and resets its connections once, at a random moment. lasts is the
// duration of a job without resets.
func (j *job) reset(t *testing.T, channel, traffic string, run int, lasts time.Duration, random *rand.Rand) (o outcome) {
	t.Helper()
	var out bytes.Buffer
	cmd, ended := j.begin(t, channel, traffic, &out)
	victim, other := j.hosts.Hosts()[run%2], j.hosts.Hosts()[1-run%2]
	time.Sleep(time.Duration((0.2 + 0.6*random.Float64()) * float64(lasts))) // to a random moment of the job
	rule := []string{"INPUT", "-p", "tcp", "-s", j.hosts.Addr(other, 0), "-j", "REJECT", "--reject-with", "tcp-reset"}
	iptables := func(change string) []byte {
		args := append([]string{"netns", "exec", victim, "iptables", "-w", change}, rule...)
		list, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("iptables %s: %v\n%s", change, err, list)
		}
		return list
	}
	at := time.Now()
	iptables("-I")
	time.Sleep(time.Duration(5+random.IntN(100)) * time.Millisecond) // resets happen meanwhile
	o.packets = j.resetPackets(t, victim)
	iptables("-D")
	select {
	case err := <-ended:
		o.after, o.out = time.Since(at), out.String()
		o.arrived = err == nil && strings.Count(o.out, "has exchanged 8000 messages") == 2
		if err == nil && !o.arrived {
			t.Errorf("run %d: the job succeeds without all of its messages:\n%s", run, o.out)
		}
	case <-time.After(40 * time.Second):
		for _, host := range j.hosts.Hosts() {
			for _, pid := range j.processes(t, host) {
				_ = syscall.Kill(pid, syscall.SIGQUIT) // its stack traces show where it waits
			}
		}
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		t.Errorf("run %d: the job hangs after a reset:\n%s", run, out.String())
	}
	return o
}

// resetPackets returns the number of packets that the first rule of INPUT has rejected.
func (j *job) resetPackets(t *testing.T, host string) int {
	list, err := exec.Command("ip", "netns", "exec", host, "iptables", "-w", "-nvxL", "INPUT", "1").CombinedOutput()
	if err != nil {
		t.Fatalf("iptables -L: %v\n%s", err, list)
	}
	words := strings.Fields(string(list))
	if len(words) == 0 {
		t.Fatal(fmt.Errorf("iptables does not count packets on %s", host))
	}
	n, _ := strconv.Atoi(words[0])
	return n
}
