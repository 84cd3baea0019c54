//go:build ofi && cgo && linux

package ofi

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// Tests that need another process start this binary again, with a role.

const roleVariable = "MUSTER_OFI_TEST_ROLE"

func TestMain(m *testing.M) {
	roles := map[string]func() error{
		"echo":     echoRole,
		"handlers": handlersRole,
		"linger":   lingerRole,
		"reads":    readsRole,
	}
	if name := os.Getenv(roleVariable); name != "" {
		if err := roles[name](); err != nil {
			fmt.Fprintln(os.Stderr, "role", name+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a process with a role. What it prints can be read line by line.
type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner
	in  interface{ Write([]byte) (int, error) }
}

func start(t testing.TB, role string, env ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatalf("start this binary as %s: %v", role, err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	c.out = bufio.NewScanner(out)
	return c
}

// line returns the next line the child prints.
func (c *child) line(t testing.TB) string {
	t.Helper()
	if !c.out.Scan() {
		t.Fatalf("the child ended: %v", c.out.Err())
	}
	return c.out.Text()
}

// rank is a device with its queues, as tests use it.
type rank struct {
	dev rdma.Device
	cq  rdma.CQ
	qp  rdma.QP
	out []rdma.Completion
	wrs []rdma.SendWR // one
}

func openRank(cfg Config) (*rank, error) { return openCutting(cfg, 0) }

// openCutting is openRank with reads and writes split into parts; 0: not.
func openCutting(cfg Config, part int) (*rank, error) {
	if cfg.Interface == "" {
		cfg.Interface = "127.0.0.1"
	}
	d, err := open(cfg, libraryName, part)
	if err != nil {
		return nil, err
	}
	r := &rank{dev: d, out: make([]rdma.Completion, 16), wrs: make([]rdma.SendWR, 1)}
	if r.cq, err = d.NewCQ(0); err != nil {
		return nil, err
	}
	srq, err := d.NewSRQ(rdma.SRQConfig{Lend: true})
	if err != nil {
		return nil, err
	}
	kind := cfg.Transport
	if kind == 0 {
		kind = rdma.RD
	}
	r.qp, err = d.NewQP(rdma.QPConfig{Type: kind, SendCQ: r.cq, RecvCQ: r.cq, SRQ: srq})
	return r, err
}

// mustRank is openRank in a test.
func mustRank(t testing.TB, cfg Config) *rank { return mustCut(t, cfg, 0) }

// mustCut is openCutting in a test.
func mustCut(t testing.TB, cfg Config, part int) *rank {
	t.Helper()
	r, err := openCutting(cfg, part)
	if err != nil {
		t.Fatalf("open rank %d: %v", cfg.Index, err)
	}
	t.Cleanup(func() {
		if err := r.dev.Close(); err != nil {
			t.Errorf("close rank %d: %v", cfg.Index, err)
		}
	})
	return r
}

const testTimeout = 20 * time.Second

// meet resolves another rank of this process.
func (r *rank) meet(other *rank) (rdma.PeerID, error) { return r.dev.Resolve(other.qp.Addr()) }

// post posts a request until it is accepted.
func (r *rank) post(wr rdma.SendWR) error {
	r.wrs[0] = wr
	_, err := r.qp.PostSend(r.wrs)
	if err == nil {
		return nil
	}
	for end := time.Now().Add(testTimeout); errors.Is(err, rdma.ErrAgain); _, err = r.qp.PostSend(r.wrs) {
		if time.Now().After(end) {
			return fmt.Errorf("the queue to peer %d stayed full", wr.Peer)
		}
		r.cq.Poll(nil)
	}
	return err
}

// send sends a message inline.
func (r *rank) send(to rdma.PeerID, id uint64, text string) error {
	return r.post(rdma.SendWR{ID: id, Op: rdma.OpSend, Flags: rdma.Inline, Peer: to, Body: rdma.MemOf([]byte(text))})
}

// next waits for a completion, polling the others as well. Data is valid only until the
// next call.
func (r *rank) next(others ...*rank) (rdma.Completion, error) {
	var sink [8]rdma.Completion
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		if n := r.cq.Poll(r.out[:1]); n == 1 {
			return r.out[0], nil
		}
		for _, o := range others {
			if n := o.cq.Poll(sink[:]); n > 0 {
				return rdma.Completion{}, fmt.Errorf("another rank has received %+v meanwhile", sink[0])
			}
		}
	}
	return rdma.Completion{}, fmt.Errorf("nothing arrived in %v", testTimeout)
}

// bind pins this goroutine to a core.
func bind(core int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(core % runtime.NumCPU())
	_ = unix.SchedSetaffinity(0, &set) // a benchmark on another core is still useful
}

// echoRole is the other side of a ping-pong: it sends back what it receives, after copying
// it out and in as a user would, until it receives a stop message.
func echoRole() error {
	bind(1)
	r, err := openRank(Config{Provider: os.Getenv("PROVIDER"), Job: "echo", Index: 1, Peers: 2})
	if err != nil {
		return err
	}
	in := bufio.NewReader(os.Stdin)
	memory := make([]byte, 1<<20)
	mr, err := r.dev.Register(memory, rdma.RemoteRead|rdma.RemoteWrite)
	if err != nil {
		return err
	}
	fmt.Println(r.qp.Addr(), mr.Base, mr.RKey)
	text, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	peer, err := r.dev.Resolve(rdma.Addr(strings.TrimSpace(text)))
	if err != nil {
		return err
	}
	last := time.Now()
	for looks := 0; ; looks++ {
		n := r.cq.Poll(r.out)
		for _, c := range r.out[:n] {
			if c.Op != rdma.OpRecv {
				return c.Status.Err()
			}
			if c.Data.Len() == 1 {
				return r.dev.Close()
			}
			wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, Peer: peer, HeadLen: 24}
			k := copy(memory, c.Data.Bytes()[24:])
			wr.Body = rdma.MemOf(memory[:k])
			if err := r.post(wr); err != nil {
				return err
			}
		}
		if looks%(1<<16) == 0 && time.Since(last) > 10*testTimeout {
			return errors.New("the ping-pong does not end")
		}
	}
}
