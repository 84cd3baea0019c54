package pmi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// freePort returns an unused loopback address.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func staticEnv(rank, size int, root, key string) map[string]string {
	return map[string]string{
		EnvStaticRank: fmt.Sprint(rank), EnvStaticSize: fmt.Sprint(size), EnvRoot: root, EnvKey: key,
	}
}

// goodKey is a key that is long enough.
const goodKey = "a key for these tests"

// late is a start timeout for jobs that do not start: long enough for the ranks that do
// join, on a busy machine.
const late = 3 * time.Second

type joined struct {
	client Client
	err    error
}

// gather opens all ranks concurrently. change, if not nil, changes a rank's environment;
// a rank for which it returns nil is not started.
func gather(t *testing.T, timeout time.Duration, size int, root string, change func(rank int, env map[string]string) map[string]string) []joined {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	out := make([]joined, size)
	var wg sync.WaitGroup
	for rank := range size {
		vars := staticEnv(rank, size, root, goodKey)
		if change != nil {
			if vars = change(rank, vars); vars == nil {
				continue
			}
		}
		wg.Go(func() { out[rank].client, out[rank].err = Open(ctx, env(vars), Terms{}) })
	}
	wg.Wait()
	return out
}

func clientsOf(t *testing.T, all []joined) []Client {
	t.Helper()
	var clients []Client
	for rank, j := range all {
		if j.err != nil {
			t.Fatalf("rank %d must join: %v", rank, j.err)
		}
		clients = append(clients, j.client)
	}
	return clients
}

func wantError(t *testing.T, who string, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s must get an error with %q", who, words)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: the error must contain %q: %v", who, word, err)
		}
	}
}

func TestRendezvous(t *testing.T) {
	for _, n := range []int{1, 2, 8} {
		clients := clientsOf(t, gather(t, 20*time.Second, n, freePort(t), nil))
		for rank, c := range clients {
			if c.Rank() != rank || c.Size() != n || c.JobID() != clients[0].JobID() {
				t.Errorf("rank %d of %d is rank %d of %d in job %s", rank, n, c.Rank(), c.Size(), c.JobID())
			}
			if c.LocalRank() != rank || c.LocalSize() != n || c.Node(n-1) != c.Node(0) {
				t.Errorf("ranks of one process share memory, but rank %d is %d of %d on its node", rank, c.LocalRank(), c.LocalSize())
			}
			if d, dead := c.Died(); dead {
				t.Errorf("no rank has failed, but rank %d reports %+v", rank, d)
			}
		}
		exchange(t, clients) // closes them all, rank 0 last to return
	}
}

func TestRendezvousWithJobIndex(t *testing.T) {
	clients := clientsOf(t, gather(t, 20*time.Second, 3, freePort(t), func(rank int, env map[string]string) map[string]string {
		delete(env, EnvStaticRank)
		env[envJobIndex] = fmt.Sprint(rank)
		return env
	}))
	exchange(t, clients)
}

func TestIncompleteVariables(t *testing.T) {
	type vars = map[string]string
	whole := func(change func(vars)) vars {
		v := staticEnv(1, 4, "127.0.0.1:7700", goodKey)
		change(v)
		return v
	}
	for name, c := range map[string]struct {
		env  vars
		want []string
	}{
		"the rank alone":       {vars{EnvStaticRank: "1"}, []string{"MUSTER_RANK in the environment", "not MUSTER_SIZE, MUSTER_ROOT and MUSTER_KEY"}},
		"no key":               {whole(func(v vars) { delete(v, EnvKey) }), []string{"but not MUSTER_KEY:"}},
		"no rank":              {whole(func(v vars) { delete(v, EnvStaticRank) }), []string{"but not MUSTER_RANK:", "JOB_COMPLETION_INDEX"}},
		"an index, no root":    {vars{envJobIndex: "0", EnvStaticSize: "2", EnvKey: goodKey}, []string{"but not MUSTER_ROOT:"}},
		"rank beyond size":     {whole(func(v vars) { v[EnvStaticRank] = "4" }), []string{`MUSTER_RANK="4"`, "0 to 3"}},
		"index beyond size":    {whole(func(v vars) { delete(v, EnvStaticRank); v[envJobIndex] = "9" }), []string{`JOB_COMPLETION_INDEX="9"`}},
		"size is no number":    {whole(func(v vars) { v[EnvStaticSize] = "four" }), []string{`MUSTER_SIZE="four"`}},
		"root without a port":  {whole(func(v vars) { v[EnvRoot] = "node1" }), []string{`MUSTER_ROOT="node1"`, "host:port"}},
		"root with any port":   {whole(func(v vars) { v[EnvRoot] = "node1:0" }), []string{"host:port"}},
		"root without a host":  {whole(func(v vars) { v[EnvRoot] = ":7700" }), []string{"host:port"}},
		"a key without a rank": {vars{EnvKey: goodKey}, []string{"MUSTER_RANK, MUSTER_SIZE and MUSTER_ROOT"}},
	} {
		_, err := Open(t.Context(), env(c.env), Terms{})
		wantError(t, name, err, c.want...)
	}
	if c, err := Open(t.Context(), env(vars{envJobIndex: "2"}), Terms{}); err != nil || c.Size() != 1 {
		t.Errorf("a Job's index without any variable of Muster must give a world of one: %v", err)
	}
}

func TestWrongKey(t *testing.T) {
	t.Parallel() // it waits for the timeout
	root := freePort(t)
	all := gather(t, late, 3, root, func(rank int, env map[string]string) map[string]string {
		if rank == 2 {
			env[EnvKey] = "another key of the right length"
		}
		return env
	})
	wantError(t, "rank 2", all[2].err, "rank 2 of 3", root, "wrong key", "MUSTER_KEY")
	wantError(t, "rank 0", all[0].err, "rank 2 did not join", "127.0.0.1:", "has a wrong MUSTER_KEY")
	wantError(t, "rank 1, which had the key,", all[1].err, "did not start", "rank 2 did not join")
}

// Ranks do not join a process at the root's address that does not have the key.
func TestRootWithoutKey(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		readOpener(conn)
		conn.Write(opener())
		io.ReadFull(conn, make([]byte, 32))
		conn.Write(append([]byte{proofAccepted}, make([]byte, 32)...))
	}()
	_, err = Open(t.Context(), env(staticEnv(1, 2, l.Addr().String(), goodKey)), Terms{})
	wantError(t, "rank 1", err, "does not have this MUSTER_KEY")
}

// The start timeout and the end of an attempt can coincide: the deadline that one sets
// must not affect the connection that the other returns.
func TestTryJoinAtTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 200 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				readOpener(conn)
				go cancel()
				conn.Close()
			}
		}()
		p := staticJob{rank: 1, size: 2, root: l.Addr().String(), key: []byte(goodKey)}
		if _, _, _, err := tryJoin(ctx, p, newHello(p)); err == nil {
			t.Fatal("joined a root that closed the connection")
		}
		cancel()
	}
}

func TestDuplicateRank(t *testing.T) {
	t.Parallel() // it waits for the timeout
	root := freePort(t)
	all := gather(t, late, 4, root, func(rank int, env map[string]string) map[string]string {
		if rank == 3 {
			env[EnvStaticRank] = "2"
		}
		return env
	})
	wantError(t, "rank 0", all[0].err, "rank 3 did not join", "two processes have MUSTER_RANK=2")
	one, two := all[2].err, all[3].err
	if one != nil && strings.Contains(one.Error(), "did not start") {
		one, two = two, one
	}
	wantError(t, "the second rank 2", one, "two processes have MUSTER_RANK=2")
	wantError(t, "the first rank 2", two, "did not start", "rank 3 did not join")
}

func TestSizeMismatch(t *testing.T) {
	t.Parallel() // it waits for the timeout
	all := gather(t, late, 3, freePort(t), func(rank int, env map[string]string) map[string]string {
		if rank == 1 {
			env[EnvStaticSize] = "8"
		}
		return env
	})
	wantError(t, "rank 1", all[1].err, "MUSTER_SIZE=8", "rank 0 has 3")
	wantError(t, "rank 0", all[0].err, "rank 1 did not join", "MUSTER_SIZE=8")
}

func TestMissingRanks(t *testing.T) {
	t.Parallel() // it waits for the timeout
	all := gather(t, late, 6, freePort(t), func(rank int, env map[string]string) map[string]string {
		if rank >= 3 {
			return nil
		}
		return env
	})
	for rank := range 3 {
		wantError(t, fmt.Sprintf("rank %d", rank), all[rank].err, "ranks 3-5 did not join within 3")
	}
}

func TestUnreachableRoot(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() }) // after the parallel cases
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { web.Close() })
	go func() {
		for {
			conn, err := web.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	nobody := freePort(t)
	for name, c := range map[string]struct {
		root string
		want []string
	}{
		"no listener":      {nobody, []string{nobody, "connect:", "refused"}},
		"unknown name":     {"no-such-host.invalid:7700", []string{"no-such-host.invalid:7700", "resolve the name"}},
		"another protocol": {web.Addr().String(), []string{web.Addr().String(), "prove the key", "does not come from a rank 0 of Muster"}},
		"no answer":        {silent.Addr().String(), []string{silent.Addr().String(), "prove the key", "did not answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), late/2)
			defer cancel()
			began := time.Now()
			_, err := Open(ctx, env(staticEnv(1, 2, c.root, goodKey)), Terms{})
			wantError(t, "rank 1", err, append(c.want, "rank 1 of 2")...)
			if d := time.Since(began); d > 8*time.Second {
				t.Errorf("the error took %v", d)
			}
		})
	}
}

func TestRootPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Open(t.Context(), env(staticEnv(0, 2, l.Addr().String(), goodKey)), Terms{})
	wantError(t, "rank 0", err, l.Addr().String(), "another process with MUSTER_RANK=0", "another port")
}

func TestLateRanks(t *testing.T) {
	root := freePort(t)
	delay := map[int]time.Duration{0: 300 * time.Millisecond, 2: 600 * time.Millisecond}
	var mu sync.Mutex
	all := make([]joined, 3)
	var wg sync.WaitGroup
	for rank := range all {
		wg.Go(func() {
			time.Sleep(delay[rank]) // ranks start apart, over real sockets
			c, err := Open(t.Context(), env(staticEnv(rank, 3, root, goodKey)), Terms{})
			mu.Lock()
			all[rank] = joined{c, err}
			mu.Unlock()
		})
	}
	wg.Wait()
	exchange(t, clientsOf(t, all))
}

// The nodes follow from the memory domains that the ranks report, in any order.
func TestRendezvousNodes(t *testing.T) {
	root := freePort(t)
	here := memoryDomain()
	all := make([]joined, 5)
	var wg sync.WaitGroup
	wg.Go(func() { all[0].client, all[0].err = Open(t.Context(), env(staticEnv(0, 5, root, goodKey)), Terms{}) })
	for rank, where := range map[int]string{1: "pod a", 2: here, 3: "pod b", 4: "pod a"} {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
			defer cancel()
			p := staticJob{rank: rank, size: 5, root: root, key: []byte(goodKey)}
			me := newHello(p)
			me.memoryDomain = where
			for {
				conn, lines, _, err := tryJoin(ctx, p, me)
				if err == nil {
					all[rank].client, all[rank].err = joinOrClose(ctx, newRootedConn(conn, lines, root), rank, 5, nil, p.key, Terms{})
					return
				}
				if ctx.Err() != nil {
					all[rank].err = err
					return
				}
				time.Sleep(5 * time.Millisecond) // until rank 0 listens on a real socket
			}
		})
	}
	wg.Wait()
	clients := clientsOf(t, all)
	for rank, c := range clients {
		var nodes []int
		for r := range 5 {
			nodes = append(nodes, c.Node(r))
		}
		if want := []int{0, 1, 0, 2, 1}; !slices.Equal(nodes, want) {
			t.Errorf("rank %d sees the ranks on nodes %v, want %v", rank, nodes, want)
		}
	}
	if c := clients[4]; c.LocalRank() != 1 || c.LocalSize() != 2 {
		t.Errorf("rank 4 shares its node with rank 1, but is %d of %d there", c.LocalRank(), c.LocalSize())
	}
	exchange(t, clients)
}

// A process that exits before the job starts may be restarted, as pods are.
func TestRestartBeforeGo(t *testing.T) {
	root := freePort(t)
	var (
		zero joined
		done = make(chan struct{})
		last net.Conn
	)
	go func() {
		defer close(done)
		zero.client, zero.err = Open(t.Context(), env(staticEnv(0, 3, root, goodKey)), Terms{})
	}()
	// Two connections of the same process send hello; the second replaces the first and
	// is closed.
	for range 2 {
		conn := dialWhenListening(t, root)
		defer conn.Close()
		if err := dialHandshake(conn, []byte(goodKey)); err != nil {
			t.Fatal(err)
		}
		channel, err := encryptAsRank(conn, []byte(goodKey))
		if err != nil {
			t.Fatal(err)
		}
		channel.Write(appendMessage(nil, cmdHello, "rank", "1", "size", "3", "host", "", "where", "", "process", "p"))
		if err := readReply(&lineReader{r: channel}, cmdWelcome); err != nil {
			t.Fatalf("a process that has lost its connection may rejoin: %v", err)
		}
		last = channel
	}
	last.Close()
	all := make([]joined, 3)
	var wg sync.WaitGroup
	for _, rank := range []int{1, 2} {
		wg.Go(func() {
			for { // rank 0 must first notice the closed connection
				all[rank].client, all[rank].err = Open(t.Context(), env(staticEnv(rank, 3, root, goodKey)), Terms{})
				if err := all[rank].err; err == nil || !strings.Contains(err.Error(), "two processes") {
					return
				}
			}
		})
	}
	wg.Wait()
	<-done
	all[0] = zero
	exchange(t, clientsOf(t, all))
}

func TestDeathReachesAllRanks(t *testing.T) {
	clients := clientsOf(t, gather(t, 20*time.Second, 4, freePort(t), nil))
	fences := make(chan error, 3)
	for _, rank := range []int{0, 1, 3} {
		go func() { fences <- clients[rank].Fence(t.Context()) }()
	}
	time.Sleep(20 * time.Millisecond)     // so that the fences wait: real sockets
	clients[2].(*wireClient).conn.Close() // as the kernel does when the process dies
	for range 3 {
		select {
		case err := <-fences:
			var dead *DeadError
			if !errors.As(err, &dead) || dead.Rank != 2 {
				t.Errorf("a Fence must end with the death of rank 2: %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("a Fence hangs after a death")
		}
	}
	for _, rank := range []int{0, 1, 3} {
		if d, ok := clients[rank].Died(); !ok || d.Rank != 2 {
			t.Errorf("rank %d must have heard that rank 2 died: %+v, %v", rank, d, ok)
		}
		if _, err := clients[rank].Get(t.Context(), 2, "card"); err == nil {
			t.Errorf("rank %d must not wait for a value of a dead rank", rank)
		}
	}
}

func TestEndOfRootReachesAllRanks(t *testing.T) {
	clients := clientsOf(t, gather(t, 20*time.Second, 3, freePort(t), nil))
	clients[0].(*rootClient).root.dropAll()
	for _, rank := range []int{1, 2} {
		awaitDeath(t, clients[rank], 0, "connection ended")
	}
}

func TestAbortReachesAllRanks(t *testing.T) {
	for _, who := range []int{0, 1} {
		clients := clientsOf(t, gather(t, 20*time.Second, 3, freePort(t), nil))
		clients[who].Abort(7, "no mesh")
		for rank, c := range clients {
			if rank != who {
				awaitDeath(t, c, who, "aborted the job with code 7: no mesh")
			}
		}
	}
}

func awaitDeath(t *testing.T, c Client, rank int, status string) {
	t.Helper()
	var d Death
	waitFor(t, time.Millisecond, fmt.Sprintf("the death of rank %d at rank %d", rank, c.Rank()), func() (ok bool) {
		d, ok = c.Died()
		return ok
	})
	if d.Rank != rank || !strings.Contains(d.Status, status) {
		t.Errorf("rank %d must report the death of rank %d (%q); it reports %+v", c.Rank(), rank, status, d)
	}
}

// waitFor polls cond at the given interval, for at most ten seconds.
func waitFor(t *testing.T, interval time.Duration, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(interval) {
		if time.Now().After(end) {
			t.Fatalf("timeout while waiting for %s", what)
		}
	}
}

// dialWhenListening connects to an address where a listener may appear later.
func dialWhenListening(t *testing.T, addr string) (conn net.Conn) {
	t.Helper()
	waitFor(t, 5*time.Millisecond, "a listener at "+addr, func() bool {
		var err error
		conn, err = net.Dial("tcp", addr)
		return err == nil
	})
	return conn
}

// A port scan, garbage and idle connections do not prevent a job from starting, and leave
// no resources behind.
func TestUnauthenticatedConnections(t *testing.T) {
	root := freePort(t)
	zero := make(chan joined, 1)
	go func() {
		c, err := Open(t.Context(), env(staticEnv(0, 4, root, goodKey)), Terms{})
		zero <- joined{c, err}
	}()
	dial := func() net.Conn { return dialWhenListening(t, root) }
	for range 50 { // the scan: connect and close
		dial().Close()
	}
	garbage := []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00", strings.Repeat("\x00", 4096),
		handshakeMagic, handshakeMagic + strings.Repeat("x", 400), "cmd=init pmi_version=1 pmi_subversion=1\n",
	}
	for _, g := range garbage {
		conn := dial()
		defer conn.Close()
		io.WriteString(conn, g)
	}
	for range maxUnauthenticated + 50 { // idle connections
		defer dial().Close()
	}
	began := time.Now()
	all := make([]joined, 4)
	var wg sync.WaitGroup
	for _, rank := range []int{1, 2, 3} {
		wg.Go(func() {
			all[rank].client, all[rank].err = Open(t.Context(), env(staticEnv(rank, 4, root, goodKey)), Terms{})
		})
	}
	wg.Wait()
	all[0] = <-zero
	clients := clientsOf(t, all)
	if d := time.Since(began); d > handshakeTimeout-time.Second {
		t.Errorf("with unauthenticated connections the start took %v: ranks must not wait until they time out", d)
	}
	r := clients[0].(*rootClient).root
	exchange(t, clients)
	if conn, err := net.Dial("tcp", root); err == nil {
		conn.Close()
		t.Error("the port must be closed once the job has started")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused != 1 {
		t.Errorf("one of them sent a complete wrong proof, but %d are reported: %q", r.refused, r.refusals)
	}
}

// FuzzAcceptHandshake checks that rank 0 reads no more than a handshake before the key is
// proven.
func FuzzAcceptHandshake(f *testing.F) {
	f.Add([]byte(handshakeMagic))
	f.Add([]byte(handshakeMagic + strings.Repeat("n", 32) + strings.Repeat("p", 32) + "more"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		in := &countingReader{r: strings.NewReader(string(sent))}
		if acceptHandshake(struct {
			io.Reader
			io.Writer
		}{in, io.Discard}, []byte("key")) == nil {
			t.Error("a proof without the key was accepted")
		}
		if in.n > openerBytes+32 {
			t.Errorf("%d bytes were read from an unauthenticated peer", in.n)
		}
	})
}

type countingReader struct {
	r io.Reader
	n int
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += n
	return n, err
}

// A host that is silent is noticed within MUSTER_PEER_TIMEOUT.
func TestKeepAlive(t *testing.T) {
	for text, want := range map[string]time.Duration{"": 5 * time.Second, "60s": 10 * time.Second, "100ms": time.Second, "soon": 5 * time.Second} {
		env := map[string]string{EnvStaticRank: "0", EnvStaticSize: "2", EnvRoot: "a:1", EnvKey: goodKey, EnvPeerTimeout: text}
		p, given, err := readStaticJob(func(name string) string { return env[name] })
		if err != nil || !given {
			t.Fatal(given, err)
		}
		if k := keepAlive(p.silence); k.Idle != want || k.Interval != want || k.Count != 3 || !k.Enable {
			t.Errorf("%s=%s: %+v, want three probes with pauses of %v", EnvPeerTimeout, text, k, want)
		}
	}
}
