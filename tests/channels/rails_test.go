//go:build channels && linux

package channels

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/rdma/shm"
)

var lapLine = regexp.MustCompile(`lap of \d+ bytes, longest call (\S+)`)

const (
	// lapsOfAllSizes is the number of laps in which every collective has had every size.
	lapsOfAllSizes = 3
	// longestCall is the time that a collective of 1 MB may take, also when a rail goes
	// down meanwhile: it takes well below a second on one rail.
	longestCall = 5 * time.Second
	// ownPackets is more than a port of the switch sends for itself. A lap of the ranks
	// sends thousands.
	ownPackets = 20
)

// A rail of one host goes down and comes back while the ranks are in long collectives: first
// with its carrier, which the host notices, then without a notice. No call fails, every byte
// is correct, and no call takes long. The rail is used before and after. Busy peers have TCP
// connections if ranks share cores.
func TestRailDownInCollectives(t *testing.T) {
	for name, perHost := range map[string]int{"datagrams": 2, "connections": shm.OnlineCores() + 1} {
		t.Run(name, func(t *testing.T) { railDownInCollectives(t, perHost) })
	}
}

func railDownInCollectives(t *testing.T, perHost int) {
	j := build(t, lab.Config{Hosts: 4, Rails: 2, Rate: "1gbit"})
	laps := j.startLaps(t, perHost)
	host := j.hosts.Hosts()[1]
	laps.wait(t, lapsOfAllSizes)
	if n := j.received(t, host, 1); n == 0 {
		t.Error("the second rail was not used before it went down")
	}
	unplug := func(host string, rail int) error { return j.hosts.Link(host, rail, false) }
	for _, fault := range []struct {
		name string
		down func(host string, rail int) error
	}{{"without carrier", unplug}, {"cut in the switch", j.hosts.Cut}} {
		if err := fault.down(host, 1); err != nil {
			t.Fatal(err)
		}
		laps.wait(t, 1) // packets that are queued in the switch still arrive
		before := j.received(t, host, 1)
		laps.wait(t, lapsOfAllSizes)
		// The port itself sends some packets of IPv6 when it leaves the bridge.
		if n := j.received(t, host, 1) - before; n >= ownPackets {
			t.Errorf("%s: %d packets arrived on a rail that was down", fault.name, n)
		}
		if err := j.hosts.Mend(host, 1); err != nil {
			t.Fatal(err)
		}
		// The rail is tried again from time to time.
		before = j.received(t, host, 1)
		for deadline := time.Now().Add(30 * time.Second); j.received(t, host, 1)-before < 100; laps.wait(t, 1) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the rail was not used again after it came back", fault.name)
			}
		}
	}
	laps.end(t)
	if laps.longest > longestCall {
		t.Errorf("the longest call took %v, want at most %v", laps.longest, longestCall)
	}
	t.Logf("%d laps, longest call %v", laps.count, laps.longest)
}

// lapJob is a running job of storm laps.
type lapJob struct {
	input   io.Closer
	lines   *bufio.Scanner
	exited  func() error
	errors  *bytes.Buffer
	count   int
	longest time.Duration
}

func (j *job) startLaps(t *testing.T, perHost int) *lapJob {
	t.Helper()
	cmd := j.command(t, perHost, nil, "laps")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l := &lapJob{input: input, lines: bufio.NewScanner(output), exited: cmd.Wait, errors: new(bytes.Buffer)}
	cmd.Stderr = l.errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return l
}

// wait returns after a number of further laps.
func (l *lapJob) wait(t *testing.T, laps int) {
	t.Helper()
	for range laps {
		if !l.next(t) {
			err := l.exited()
			t.Fatalf("the job ended after %d laps: %v\n%s", l.count, err, l.errors)
		}
	}
}

// next reads the line of a lap. It returns false at the end of the output.
func (l *lapJob) next(t *testing.T) bool {
	t.Helper()
	for l.lines.Scan() {
		m := lapLine.FindStringSubmatch(l.lines.Text())
		if m == nil {
			continue
		}
		took, err := time.ParseDuration(m[1])
		if err != nil {
			t.Fatal(err)
		}
		l.count++
		l.longest = max(l.longest, took)
		return true
	}
	return false
}

// end ends the input of the job and waits for its end.
func (l *lapJob) end(t *testing.T) {
	t.Helper()
	if err := l.input.Close(); err != nil {
		t.Fatal(err)
	}
	for l.next(t) {
	}
	if err := l.exited(); err != nil {
		t.Fatalf("%v\n%s", err, l.errors)
	}
}

// received returns the number of packets that a host has received on a rail.
func (j *job) received(t *testing.T, host string, rail int) int {
	t.Helper()
	path := "/sys/class/net/" + j.hosts.Device(rail) + "/statistics/rx_packets"
	out, err := j.hosts.Command(t.Context(), host, "cat", path).Output()
	if err != nil {
		t.Fatalf("read %s on %s: %v", path, host, err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
