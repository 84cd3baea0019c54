package pmi

// Rank 0 of a job without a launcher: listen, authenticate by the key, encrypt, wait for
// all ranks, then serve PMI-1 from this process until all have left.
//
// An unauthenticated connection costs a goroutine, 72 bytes of reading and at most five
// seconds. There are at most maxUnauthenticated of them, and a new one replaces the
// oldest, so that idle connections cannot block the ranks. The port is closed as soon as
// all ranks have joined.

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxUnauthenticated = 256
	// maxRefusals limits the refused connections that rank 0 describes in its error.
	maxRefusals   = 4
	noticeTimeout = time.Second // to write a line to a rank
)

// root is rank 0's side of the rendezvous.
type root struct {
	staticJob
	identity tls.Certificate
	listener net.Listener
	notice   deathNotice
	changed  chan struct{} // holds a token when a rank joined or left
	server   *Server       // set when ready is closed
	ready    chan struct{}

	strangers strangers

	mu       sync.Mutex
	members  []*member // by rank; nil: has not come
	come     int
	started  bool
	leaving  bool     // this process closes the connections, so their end is not a failure
	refusals []string // on refused connections
	refused  int
	serving  sync.WaitGroup // the members' goroutines
}

// member is a rank that has sent hello.
type member struct {
	hello
	conn net.Conn
}

// gatherJob implements Open for rank 0.
func gatherJob(ctx context.Context, p staticJob) (Client, error) {
	listener, err := listenAtRoot(ctx, p.root, p.silence)
	if err != nil {
		return nil, err
	}
	return gatherAt(ctx, p, listener)
}

// gatherAt waits for the other ranks at a listener, which it closes.
func gatherAt(ctx context.Context, p staticJob, listener net.Listener) (Client, error) {
	began := time.Now()
	identity, err := newIdentity()
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("pmi: rank 0: %w", err)
	}
	r := &root{
		staticJob: p, identity: identity, listener: listener, changed: make(chan struct{}, 1), ready: make(chan struct{}),
		members: make([]*member, p.size), come: 1,
	}
	r.members[0] = &member{hello: newHello(p)}
	go r.accept()
	err = r.await(ctx, began)
	r.closePort()
	if err != nil {
		r.cancelStart(err.Error())
		return nil, fmt.Errorf("pmi: rank 0 of %d at %s: %w", p.size, listener.Addr(), err)
	}
	return r.start(ctx)
}

// listenAtRoot listens on the root's address if it belongs to this host, and otherwise on
// all addresses: behind a service or a translated address it belongs to no interface.
func listenAtRoot(ctx context.Context, addr string, silence time.Duration) (net.Listener, error) {
	host, port, _ := net.SplitHostPort(addr)
	if !ownAddress(ctx, host) {
		host = ""
	}
	var lc net.ListenConfig
	lc.KeepAliveConfig = keepAlive(silence)
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("pmi: rank 0 cannot listen at %s=%s: %w; check for another process with %s=0 on this host, or use another port",
			EnvRoot, addr, err, EnvStaticRank)
	}
	return l, nil
}

// ownAddress reports whether to listen on this address only. A name that resolves to
// loopback here, as a host's own name often does by its /etc/hosts, resolves to another
// address on other hosts and does not count.
func ownAddress(ctx context.Context, host string) bool {
	if host == "localhost" {
		return true
	}
	_, notLiteral := netip.ParseAddr(host)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(found) != 1 {
		return false
	}
	want := found[0].Unmap()
	if want.IsLoopback() {
		return notLiteral == nil
	}
	own, _ := net.InterfaceAddrs()
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Unmap() == want {
			return true
		}
	}
	return false
}

func (r *root) accept() {
	for {
		conn, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(firstPause) // for example out of descriptors, which may become free
			continue
		}
		if r.strangers.add(conn) {
			go r.receive(conn)
		}
	}
}

// receive handles a connection from the handshake to its end.
func (r *root) receive(stranger net.Conn) {
	defer stranger.Close()
	stranger.SetDeadline(time.Now().Add(handshakeTimeout))
	err := acceptHandshake(stranger, r.key)
	r.strangers.remove(stranger)
	if err != nil {
		switch {
		case errors.Is(err, errWrongKey):
			r.noteRefusal("%s has a wrong %s", stranger.RemoteAddr(), EnvKey)
		case errors.Is(err, errVersion):
			r.noteRefusal("%s: %v", stranger.RemoteAddr(), err)
		}
		return
	}
	conn, err := encryptAsRoot(stranger, r.key, r.identity)
	if err != nil {
		if errors.Is(err, errIntercepted) {
			r.noteRefusal("%s: %v", stranger.RemoteAddr(), err)
		}
		return
	}
	lines := &lineReader{r: conn}
	line, err := lines.next()
	if err != nil {
		return
	}
	m, err := parseMessage(string(line))
	if err != nil || m.cmd != cmdHello {
		r.noteRefusal("%s has the key but sent %.60q", conn.RemoteAddr(), line)
		return
	}
	one := &member{conn: conn, hello: hello{
		rank: m.number("rank", -1), size: m.number("size", -1),
		host: fieldText(&m, "host"), memoryDomain: fieldText(&m, "where"), process: m.get("process"),
	}}
	if refusal := r.addMember(one); refusal != "" {
		r.noteRefusal("%s", refusal)
		conn.Write(replyLine(cmdWelcome, refusal))
		return
	}
	defer r.serving.Done()
	conn.SetReadDeadline(time.Time{})
	// The next byte arrives after go and belongs to PMI-1.
	var first [1]byte
	_, err = io.ReadFull(conn, first[:])
	if err != nil && r.removeMember(one) {
		return
	}
	<-r.ready
	if err == nil {
		err = r.server.Serve(one.rank, struct {
			io.Reader
			io.Writer
		}{io.MultiReader(strings.NewReader(string(first[:])), conn), conn})
	}
	r.handleEnd(one, err)
}

// addMember makes a connection a member and sends welcome, or returns why not. The lock
// is held while welcome, a short line on an empty connection, is written, so that go, which
// may follow at once, comes second. A failed write is detected when the connection is read.
func (r *root) addMember(one *member) string {
	from := one.conn.RemoteAddr()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.started:
		return fmt.Sprintf("rank %d on %s (%s) joined after the job had started", one.rank, one.host, from)
	case one.size != r.size:
		return fmt.Sprintf("rank %d on %s (%s) has %s=%d, but rank 0 has %d", one.rank, one.host, from, EnvStaticSize, one.size, r.size)
	case one.rank < 0 || one.rank >= r.size:
		return fmt.Sprintf("%s (%s) claims to be rank %d of %d", one.host, from, one.rank, r.size)
	case one.rank == 0:
		return fmt.Sprintf("a second rank 0 on %s (%s)", one.host, from)
	}
	other := r.members[one.rank]
	if other != nil && other.process != one.process {
		return fmt.Sprintf("two processes have %s=%d: one on %s (%s), one on %s (%s)",
			EnvStaticRank, one.rank, other.host, other.conn.RemoteAddr(), one.host, from)
	}
	if other != nil {
		other.conn.Close() // its process has abandoned it and retries
	} else {
		r.come++
	}
	one.conn.Write(replyLine(cmdWelcome, ""))
	one.conn.SetWriteDeadline(time.Time{})
	r.members[one.rank] = one
	r.serving.Add(1)
	r.wake()
	return ""
}

// removeMember removes a member whose connection ended before go: a restarted process may
// replace it. It returns false after go, when the end of a connection is a failure.
func (r *root) removeMember(one *member) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started && r.members[one.rank] == one {
		return false
	}
	if r.members[one.rank] == one {
		r.members[one.rank] = nil
		r.come--
	}
	return true
}

func (r *root) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *root) noteRefusal(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused++; len(r.refusals) < maxRefusals {
		r.refusals = append(r.refusals, fmt.Sprintf(format, args...))
	}
}

// await returns when all ranks have joined.
func (r *root) await(ctx context.Context, began time.Time) error {
	for {
		r.mu.Lock()
		r.started = r.come == r.size
		all := r.started
		r.mu.Unlock()
		if all {
			return nil
		}
		select {
		case <-r.changed:
			continue
		case <-ctx.Done():
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		var missing []int
		for rank, one := range r.members {
			if one == nil {
				missing = append(missing, rank)
			}
		}
		err := fmt.Errorf("%s did not join %s", ranksPhrase(missing), describeTimeout(ctx, began))
		if r.refused > 0 {
			more := ""
			if r.refused > len(r.refusals) {
				more = fmt.Sprintf("; and %d more", r.refused-len(r.refusals))
			}
			err = fmt.Errorf("%w; refused: %s%s", err, strings.Join(r.refusals, "; "), more)
		}
		return err
	}
}

// closePort closes the listener and the unauthenticated connections.
func (r *root) closePort() {
	r.listener.Close()
	r.strangers.close()
}

// cancelStart notifies the members that the job does not start.
func (r *root) cancelStart(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.members[1:] {
		if one != nil {
			one.conn.SetWriteDeadline(time.Now().Add(noticeTimeout))
			one.conn.Write(replyLine(cmdGo, "the job did not start: "+why))
			one.conn.Close()
		}
	}
}

// start serves PMI-1 to all ranks, including this one, and sends go.
func (r *root) start(ctx context.Context) (Client, error) {
	nodes := make([]int, r.size)
	seen := map[string]int{}
	for rank, one := range r.members {
		node, ok := seen[one.memoryDomain]
		if !ok {
			node = len(seen)
			seen[one.memoryDomain] = node
		}
		nodes[rank] = node
	}
	r.server = NewServer(ServerConfig{Size: r.size, Mapping: FormatMapping(nodes), Event: r.event})
	close(r.ready)
	ours, theirs := net.Pipe()
	go r.server.Serve(0, theirs)
	// Rank 0 joins first: the terms of the others are compared with its own.
	c, err := joinWire(ctx, ours, 0, r.size, r.board, r.key, r.terms)
	if err != nil {
		ours.Close()
		r.dropAll()
		return nil, err
	}
	c.notice = &r.notice
	for _, one := range r.members[1:] {
		// If the write fails, the member's goroutine reports the failure.
		one.conn.Write(replyLine(cmdGo, ""))
	}
	return &rootClient{wireClient: c, root: r}, nil
}

func (r *root) event(e Event) {
	switch {
	case e.Refused != "":
		d := Death{Rank: e.Rank, Host: r.members[e.Rank].host, Status: e.Refused}
		r.sendDeath(r.members[e.Rank], d) // it waits for the answer to init
		r.reportDeath(d)
	case e.Phase == PhaseAborted:
		r.reportDeath(Death{Rank: e.Rank, Host: r.members[e.Rank].host, Status: abortStatus(e.Code, e.Why)})
	}
}

// handleEnd handles the end of a member's connection.
func (r *root) handleEnd(one *member, err error) {
	r.mu.Lock()
	leaving := r.leaving
	r.mu.Unlock()
	if p := r.server.Phase(one.rank); leaving || p == PhaseFinalized || p == PhaseAborted {
		return
	}
	status := "its connection to rank 0 ended without Finalize"
	if err != nil && !errors.Is(err, io.EOF) {
		status += ": " + err.Error()
	}
	r.reportDeath(Death{Rank: one.rank, Host: one.host, Status: status})
}

// reportDeath reports a failure to all ranks, this one last: it may then exit, and its
// exit must not be mistaken for the cause.
func (r *root) reportDeath(d Death) {
	defer r.notice.record(d)
	for rank, one := range r.members {
		if rank != 0 && rank != d.Rank {
			r.sendDeath(one, d)
		}
	}
}

func (r *root) sendDeath(to *member, d Death) {
	line := appendMessage(nil, cmdDeath, "rank", strconv.Itoa(d.Rank), "host", textField(d.Host), "status", textField(d.Status))
	to.conn.SetWriteDeadline(time.Now().Add(noticeTimeout))
	to.conn.Write(line) // a single write is not interleaved with others
	to.conn.SetWriteDeadline(time.Time{})
}

// dropAll closes all connections.
func (r *root) dropAll() {
	r.mu.Lock()
	r.leaving = true
	r.mu.Unlock()
	for _, one := range r.members[1:] {
		one.conn.Close()
	}
}

// rootClient is rank 0's own client.
type rootClient struct {
	*wireClient
	root *root
}

// Abort reports to the others before it returns, because this process, which runs the
// server, exits next.
func (c *rootClient) Abort(code int, why string) {
	c.root.reportDeath(Death{Rank: 0, Host: c.host, Status: abortStatus(code, why)})
}

// Close leaves the job after the others, because this process serves them.
func (c *rootClient) Close() error {
	err := c.wireClient.Close()
	gone := make(chan struct{})
	go func() {
		c.root.serving.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-time.After(leaveTimeout):
		if err == nil {
			err = c.root.notFinalized()
		}
	}
	c.root.dropAll()
	return err
}

func (r *root) notFinalized() error {
	var ranks []int
	for rank := range r.members {
		if r.server.Phase(rank) != PhaseFinalized {
			ranks = append(ranks, rank)
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	return fmt.Errorf("pmi: rank 0 leaves the job after waiting %v for %s", leaveTimeout, ranksPhrase(ranks))
}
