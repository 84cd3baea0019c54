package rdmatest

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// Fixture describes how to create the devices under test.
type Fixture struct {
	// Name is the name of the subtest that contains all checks.
	Name string
	// Open opens n devices that can reach each other and registers their Close with
	// t.Cleanup. Closing them earlier must be harmless.
	Open func(t testing.TB, n int) []rdma.Device
	// Reset resets the connections between the devices, as a firewall would, and returns
	// their number; 0 means that there is none yet. ResetTCP does it for TCP. A device
	// without connections leaves Reset nil and gives the reason in Unconnected.
	Reset       func() int
	Unconnected string
	// Exclude maps the names of checks that the device does not pass, such as
	// "pull-owner-alone", to the reasons. An unknown name fails the run, so that outdated
	// or misspelled entries are noticed.
	Exclude map[string]string
	// Ends is the reason why a refused access, or a message that is too long for its buffer,
	// ends the connection to that peer although the transport is RD. The checks of them do
	// not use the connection again then, as with RC; other peers are not affected.
	Ends string

	// hangTimeout is how long a check waits before it reports a hang; the tests of the
	// suite itself shorten it. 0: 10 s, far longer than any delay on a loaded machine.
	hangTimeout time.Duration
}

// check is one rule of package rdma.
type check struct {
	name string
	rule string         // the rule as a sentence
	on   rdma.Transport // the transports it applies to
	ops  rdma.OpSet     // the operations it needs
	// unless returns the reason to skip the check on a device with these attributes, or
	// "".
	unless func(*rdma.Attr) string
	run    func(r *rig)
	peers  int         // number of devices; 0: 2
	queues queueConfig // how their queues are made
}

const (
	reliable = rdma.RC | rdma.RD
	all      = rdma.RC | rdma.RD | rdma.UD
)

// checks returns the whole suite.
func checks() []check {
	return slices.Concat(
		orderChecks(), sendChecks(), postChecks(), receiveChecks(), lendChecks(),
		memoryChecks(), recordChecks(), refusalChecks(), registerChecks(), pullChecks(), assistedChecks(),
		waitChecks(), notifyChecks(), steadyChecks(), resetChecks(), closeChecks(),
	)
}

// Run runs every check on every transport of the device. It skips checks that need an
// operation that Attr does not list.
func Run(t *testing.T, f Fixture) {
	t.Run(f.Name, func(t *testing.T) {
		var attr rdma.Attr
		t.Run("attr", func(t *testing.T) {
			attr = *f.Open(t, 1)[0].Attr()
			checkAttr(t, &attr)
		})
		suite := checks()
		known := func(name string) bool {
			return slices.ContainsFunc(suite, func(c check) bool { return c.name == name })
		}
		for name := range f.Exclude {
			if !known(name) {
				t.Errorf("Exclude names the check %q, which does not exist", name)
			}
		}
		for _, kind := range []rdma.Transport{rdma.RC, rdma.RD, rdma.UD} {
			if attr.Transports&kind == 0 {
				continue
			}
			t.Run(transportName(kind), func(t *testing.T) {
				for _, c := range suite {
					if c.on&kind == 0 {
						continue
					}
					t.Run(c.name, func(t *testing.T) {
						if why := f.Exclude[c.name]; why != "" {
							t.Skipf("excluded: %s", why)
						}
						c.try(t, &f, kind, &attr)
					})
				}
			})
		}
		t.Run("close-leaves-nothing", func(t *testing.T) { checkNothingLeft(t, &f, &attr) })
	})
}

// try runs one check, or skips it if the device lacks what it needs.
func (c *check) try(t testing.TB, f *Fixture, kind rdma.Transport, attr *rdma.Attr) {
	t.Helper()
	if missing := c.ops &^ attr.Ops; missing != 0 {
		t.Skipf("the device lacks operations the check needs (Attr.Ops)")
	}
	if c.unless != nil {
		if why := c.unless(attr); why != "" {
			t.Skip(why)
		}
	}
	t.Logf("the rule: %s", c.rule)
	c.run(newRig(t, f, kind, max(c.peers, 2), c.queues))
}

func transportName(kind rdma.Transport) string {
	switch kind {
	case rdma.RC:
		return "RC"
	case rdma.RD:
		return "RD"
	case rdma.UD:
		return "UD"
	}
	return fmt.Sprintf("transport %d", kind)
}

// checkAttr reports attribute values that no user could work with.
func checkAttr(t testing.TB, a *rdma.Attr) {
	for _, must := range []struct {
		holds bool
		rule  string
	}{
		{a.Name != "" && !strings.ContainsAny(a.Name, " \t\n"), "Name is a word"},
		{a.Transports&all != 0, "Transports names a transport of package rdma"},
		{a.Ops.Has(rdma.OpSend), "Ops has OpSend, without which there are no messages"},
		{a.Ops.Has(rdma.OpPull) == a.Ops.Has(rdma.OpPush), "Ops has both halves of the cooperative copy or none"},
		{a.Ops&rdma.Ops(rdma.OpRecv, rdma.OpLowWater, rdma.OpRecord, rdma.OpRefused, rdma.OpDisconnected) == 0, "Ops has no operation that only completions report"},
		{a.MaxSend >= rdma.HeadMax, "MaxSend has room for a full Head"},
		{a.MaxInline >= 0 && a.MaxInline <= a.MaxSend, "MaxInline lies in [0, MaxSend]"},
		{a.SegmentHint >= 0 && a.SegmentHint <= a.MaxSend, "SegmentHint lies in [0, MaxSend]"},
	} {
		if !must.holds {
			t.Errorf("Attr is invalid: the rule is %q: %+v", must.rule, *a)
		}
	}
}

// checkNothingLeft compares the numbers of goroutines and open files before the devices
// were opened and after they were closed.
func checkNothingLeft(t *testing.T, f *Fixture, attr *rdma.Attr) {
	goroutines, files := runtime.NumGoroutine(), openFiles()
	t.Run("use", func(t *testing.T) {
		for _, kind := range []rdma.Transport{rdma.RC, rdma.RD} {
			if attr.Transports&kind != 0 {
				newRig(t, f, kind, 3, queueConfig{}).exchangeOnce()
			}
		}
	})
	deadline := time.Now().Add(2 * time.Second)
	for runtime.NumGoroutine() > goroutines && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond) // goroutines need a moment to end
	}
	if now := runtime.NumGoroutine(); now > goroutines {
		stacks := make([]byte, 64<<10)
		stacks = stacks[:runtime.Stack(stacks, true)]
		t.Errorf("%d goroutines before the devices were opened, %d after they were closed:\n%s", goroutines, now, stacks)
	}
	if now := openFiles(); now > files {
		t.Errorf("%d open files before the devices were opened, %d after they were closed", files, now)
	}
}

// openFiles returns the number of open file descriptors, or 0 on systems without /proc.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
