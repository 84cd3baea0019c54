package soft

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/lab"
	"github.com/muster-mpi/muster/internal/netprobe"
	"github.com/muster-mpi/muster/rdma"
)

// Two hosts with two cables of 1 Gbit/s each. The test runs itself on both, as a reader
// and as a writer; addresses are exchanged in files.

const (
	labFolder = "PATHS_LAB_FOLDER" // set on a host of the lab
	labRails  = "PATHS_LAB_RAILS"  // interfaces to use, separated by commas
	labRole   = "PATHS_LAB_ROLE"
	labTime   = "PATHS_LAB_TIME" // how long to write
	labSize   = 1 << 20
	labSlots  = 8
)

// labNode is a rank on a host of the lab.
type labNode struct {
	t   *testing.T
	dev *Device
	cq  rdma.CQ
	qp  rdma.QP
}

func newLabNode(t *testing.T) *labNode {
	list, err := netprobe.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	if names := os.Getenv(labRails); names != "" {
		want = strings.Split(names, ",")
	}
	found, err := netprobe.Choose(list, want)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(netprobe.Summary(found))
	c := Config{JobKey: []byte("the key of the lab")}
	for _, f := range found {
		if f.Taken {
			c.Paths = append(c.Paths, Path{Name: f.Name, Bind: netip.AddrPortFrom(f.Address.Addr(), 0), Network: f.Address.Masked()})
		}
	}
	n := &labNode{t: t}
	if n.dev, err = Open(c); err != nil {
		t.Fatal(err)
	}
	if n.cq, err = n.dev.NewCQ(0); err != nil {
		t.Fatal(err)
	}
	srq, err := n.dev.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		t.Fatal(err)
	}
	if n.qp, err = n.dev.NewQP(rdma.QPConfig{Type: rdma.RD, SendCQ: n.cq, RecvCQ: n.cq, SRQ: srq}); err != nil {
		t.Fatal(err)
	}
	return n
}

// publish and fetch exchange a line of text through a file.
func publish(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(os.Getenv(labFolder), name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func fetch(t *testing.T, name string) string {
	t.Helper()
	var text []byte
	waitUntil(t, "the other host publishes "+name, func() bool {
		var err error
		text, err = os.ReadFile(filepath.Join(os.Getenv(labFolder), name))
		return err == nil
	})
	return string(text)
}

// poll processes completions, or sleeps a moment.
func (n *labNode) poll(take func(*rdma.Completion)) {
	var out [16]rdma.Completion
	k := n.cq.Poll(out[:])
	for i := range out[:k] {
		take(&out[i])
	}
	if k == 0 {
		if err := n.cq.Wait(20 * time.Millisecond); err != nil {
			n.t.Fatal(err)
		}
	}
}

// TestLabRank runs on the hosts.
func TestLabRank(t *testing.T) {
	switch os.Getenv(labRole) {
	case "read":
		labRead(newLabNode(t))
	case "write":
		labWrite(newLabNode(t))
	default:
		t.Skip("it runs on the hosts of TestTwoCables")
	}
}

// labRead lets the writer write to its memory, and checks it whenever a message says
// so.
func labRead(n *labNode) {
	region := make([]byte, labSlots*labSize)
	mr, err := n.dev.Register(region, rdma.RemoteWrite)
	if err != nil {
		n.t.Fatal(err)
	}
	publish(n.t, "reader", fmt.Sprintf("%s %d %d", n.qp.Addr(), mr.Base, mr.RKey))
	next, ended := uint64(0), false
	for !ended {
		n.poll(func(c *rdma.Completion) {
			if c.Op != rdma.OpRecv {
				return
			}
			text := c.Data.Bytes()
			number := binary.LittleEndian.Uint64(text)
			if ended = text[8] == 1; ended {
				return
			}
			if number != next {
				n.t.Fatalf("got message %d, want %d", number, next)
			}
			next++
			slot := region[number%labSlots*labSize:][:labSize]
			for i := 0; i < labSize; i += 4096 {
				if got := binary.LittleEndian.Uint64(slot[i:]); got != number {
					n.t.Fatalf("message %d has arrived, and byte %d holds %d", number, i, got)
				}
			}
		})
	}
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); { // send pending acks
		n.poll(func(*rdma.Completion) {})
	}
}

// labWrite writes megabytes for some time, each followed by a message, and prints the
// rate and the longest pause.
func labWrite(n *labNode) {
	limit, err := time.ParseDuration(os.Getenv(labTime))
	if err != nil {
		n.t.Fatal(err)
	}
	var addr string
	var base, key uint64
	if _, err := fmt.Sscan(fetch(n.t, "reader"), &addr, &base, &key); err != nil {
		n.t.Fatal(err)
	}
	peer, err := n.dev.Resolve(rdma.Addr(addr))
	if err != nil {
		n.t.Fatal(err)
	}
	post := func(wr rdma.SendWR) {
		wr.Peer = peer
		for {
			if k, err := n.qp.PostSend([]rdma.SendWR{wr}); k == 1 {
				return
			} else if !errors.Is(err, rdma.ErrAgain) {
				n.t.Fatal(err)
			}
			n.poll(func(*rdma.Completion) {})
		}
	}
	var bodies [labSlots / 2][]byte // half of the slots: the reader has time to check
	for i := range bodies {
		bodies[i] = make([]byte, labSize)
	}
	publish(n.t, "writing", "")
	start := time.Now()
	posted, done, measured := uint64(0), uint64(0), uint64(0)
	var warm, last time.Time
	longest := time.Duration(0)
	for time.Since(start) < limit || done < posted {
		for time.Since(start) < limit && posted-done < uint64(len(bodies)) {
			body := bodies[posted%uint64(len(bodies))]
			for i := 0; i < labSize; i += 4096 {
				binary.LittleEndian.PutUint64(body[i:], posted)
			}
			post(rdma.SendWR{Op: rdma.OpWrite, Body: rdma.MemOf(body), Remote: base + posted%labSlots*labSize, RKey: key})
			wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: 16}
			binary.LittleEndian.PutUint64(wr.Head[:], posted)
			post(wr)
			posted++
		}
		n.poll(func(c *rdma.Completion) {
			if c.Status != rdma.StatusOK {
				n.t.Fatalf("after %v: %+v", time.Since(start), *c)
			}
			done++
			now := time.Now()
			if warm.IsZero() && done >= 16 {
				warm, measured = now, done
			}
			if !last.IsZero() {
				longest = max(longest, now.Sub(last))
			}
			last = now
		})
	}
	rate := float64(done-measured) * labSize / last.Sub(warm).Seconds() / 1e6
	wr := rdma.SendWR{Op: rdma.OpSend, HeadLen: 16}
	wr.Head[8] = 1
	post(wr)
	ended := false
	for !ended {
		n.poll(func(*rdma.Completion) { ended = true })
	}
	fmt.Printf("rate %.1f pause %d counts", rate, longest.Milliseconds())
	for _, c := range n.dev.Counts() {
		fmt.Printf(" %d %d %d", c.Bytes>>20, c.Left, c.Back)
	}
	fmt.Println()
}

// labRun runs both ranks and returns the writer's results.
func labRun(t *testing.T, l *lab.Lab, rails string, limit time.Duration, meanwhile func()) (rate float64, pause int, counts [2][3]int) {
	t.Helper()
	folder := t.TempDir()
	start := func(host, role string) func() string {
		cmd := l.Command(t.Context(), host, os.Args[0], "-test.run=^TestLabRank$", "-test.v")
		cmd.Env = append(os.Environ(), labFolder+"="+folder, labRails+"="+rails, labRole+"="+role, labTime+"="+limit.String())
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return func() string {
			if err := cmd.Wait(); err != nil {
				t.Fatalf("the %sr: %v\n%s", role, err, out.String())
			}
			return out.String()
		}
	}
	reader, writer := start(l.Hosts()[0], "read"), start(l.Hosts()[1], "write")
	if meanwhile != nil {
		waitUntil(t, "the writer begins", func() bool {
			_, err := os.Stat(filepath.Join(folder, "writing"))
			return err == nil
		})
		meanwhile()
	}
	text := writer()
	reader()
	at := strings.Index(text, "rate ")
	if at < 0 {
		t.Fatalf("the writer prints no rate:\n%s", text)
	}
	c := &counts
	if _, err := fmt.Sscanf(text[at:], "rate %f pause %d counts %d %d %d %d %d %d", &rate, &pause, &c[0][0], &c[0][1], &c[0][2], &c[1][0], &c[1][1], &c[1][2]); err != nil && rails == "" {
		t.Fatalf("%v:\n%s", err, text)
	}
	return rate, pause, counts
}

func TestTwoCables(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds")
	}
	l := lab.New(t, lab.Config{Hosts: 2, Rails: 2})
	for _, h := range l.Hosts() {
		if err := l.Rate(h, lab.EveryRail, "1gbit"); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("rate", func(t *testing.T) {
		var ones, twos []float64
		var counts [2][3]int
		for range 3 { // alternating, because the machine may have other work
			one, _, _ := labRun(t, l, l.Device(0), 500*time.Millisecond, nil)
			two, pause, c := labRun(t, l, "", 500*time.Millisecond, nil)
			t.Logf("Writes of 1 MB: %.1f MB/s over one cable, %.1f MB/s over two, longest pause %d ms; MB, left, back: %v", one, two, pause, c)
			ones, twos, counts = append(ones, one), append(twos, two), c
		}
		slices.Sort(ones)
		slices.Sort(twos)
		one, two := ones[1], twos[1]
		t.Logf("in the median %.1f MB/s over one and %.1f MB/s over two: × %.2f", one, two, two/one)
		if counts[0][0] == 0 || counts[1][0] == 0 {
			t.Errorf("a cable carried nothing: %v", counts)
		}
		if runtime.NumCPU() < 4 {
			return // the ranks and the cables share cores: the figure is only logged
		}
		if two < 1.9*one {
			t.Errorf("two cables carry %.2f times what one does, expected 1.9", two/one)
		}
	})
	for _, v := range []struct {
		name     string
		cut, end func() error
	}{
		{"cut", func() error { return l.Cut(l.Hosts()[1], 1) }, func() error { return l.Mend(l.Hosts()[1], 1) }},
		{"pulled", func() error { return l.Link(l.Hosts()[0], 1, false) }, func() error { return l.Link(l.Hosts()[0], 1, true) }},
	} {
		t.Run(v.name, func(t *testing.T) {
			run := func() (pause int) {
				rate, pause, counts := labRun(t, l, "", 4*time.Second, func() {
					time.Sleep(time.Second) // real time: other processes send meanwhile
					if err := v.cut(); err != nil {
						t.Error(err)
					}
					time.Sleep(1500 * time.Millisecond) // the same
					if err := v.end(); err != nil {
						t.Error(err)
					}
				})
				t.Logf("%.1f MB/s with a cable %s for 1.5 s of 4 s, longest pause %d ms; MB, left, back: %v", rate, v.name, pause, counts)
				if counts[1][1] == 0 || counts[1][2] == 0 {
					t.Errorf("the cable was left %d times and used again %d times", counts[1][1], counts[1][2])
				}
				return pause
			}
			// A pause of the machine counts as well, but it does not recur.
			pauses := []int{run()}
			for slices.Min(pauses) > 1000 && len(pauses) < 3 {
				pauses = append(pauses, run())
			}
			if slices.Min(pauses) > 1000 {
				t.Errorf("the longest pauses were %d ms", pauses)
			}
		})
	}
}
