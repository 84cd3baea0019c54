//go:build channels

package soft

import (
	"bytes"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/rdma"
)

// TestFillsARealLink writes over a gigabit link between two network namespaces with 1 %
// loss each way. A machine that is busy with other work slows a round down, so the best
// of several counts.
func TestFillsARealLink(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes namespaces and takes a few seconds")
	}
	const (
		rate   = 125e6 // bytes per second
		want   = 0.8   // share of the link
		least  = 0.4   // on a machine with other load
		rounds = 12
		size   = 1 << 20
		each   = 16 // writes per round
	)
	l := lab.New(t, lab.Config{Hosts: 2, Rails: 1, Rate: "1gbit"})
	for _, host := range l.Hosts() {
		if err := l.Loss(host, 0, 0.01); err != nil {
			t.Fatal(err)
		}
	}
	var ends [2]*testNode
	for i, host := range l.Hosts() {
		inNamespace(t, host, func() {
			ends[i] = newTestNode(t, Config{Bind: netip.AddrPortFrom(netip.MustParseAddr(l.Addr(host, 0)), 0)})
		})
	}
	a, b := ends[0], ends[1]
	target, source := make([]byte, size), bytes.Repeat([]byte("a piece of it "), size/14+1)[:size]
	mr, err := b.Register(target, rdma.RemoteWrite)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() { // the target polls, like a rank that waits
		var out [1]rdma.Completion
		for {
			select {
			case <-stop:
				return
			default:
				b.cq.Poll(out[:])
			}
		}
	})
	wr := rdma.SendWR{Op: rdma.OpWrite, Peer: a.resolve(t, b), Body: rdma.MemOf(source), Remote: mr.Base, RKey: mr.RKey}
	best := 0.0
	for range rounds {
		start := time.Now()
		posted, ended := 0, 0
		var out [4]rdma.Completion
		for ended < each {
			if posted < each && posted-ended < 4 {
				if n, err := a.qp.PostSend([]rdma.SendWR{wr}); n != 1 {
					t.Fatal(err)
				}
				posted++
			}
			for _, c := range out[:a.cq.Poll(out[:])] {
				if c.Status != rdma.StatusOK {
					t.Fatalf("a write ends with %v", c.Status.Err())
				}
				ended++
			}
			if time.Since(start) > testTimeout {
				t.Fatalf("%d of %d writes have ended in %v; the ends have dropped %+v and %+v", ended, each, testTimeout, a.Drops(), b.Drops())
			}
		}
		best = max(best, size*each/time.Since(start).Seconds()/rate)
		if best >= want {
			break
		}
	}
	close(stop)
	done.Wait()
	if !bytes.Equal(target, source) {
		t.Error("the bytes received differ from those written")
	}
	t.Logf("%.3f of the link", best)
	if best < least {
		t.Errorf("%.3f of a link that loses one datagram in a hundred is used, and %.1f should be", best, want)
	}
}

// inNamespace calls do on a thread in the network namespace of a host. A socket that is
// opened there stays there.
func inNamespace(t *testing.T, host string, do func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	open := func(path string) int {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatalf("open %s: %v", path, err)
		}
		return fd
	}
	here, there := open("/proc/thread-self/ns/net"), open("/run/netns/"+host)
	defer func() { _, _ = unix.Close(here), unix.Close(there) }()
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		t.Fatalf("enter the network of %s: %v", host, err)
	}
	do()
	if err := unix.Setns(here, unix.CLONE_NEWNET); err != nil {
		t.Fatalf("leave the network of %s: %v", host, err)
	}
}
