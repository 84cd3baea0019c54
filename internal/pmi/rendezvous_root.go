package pmi

// Rank 0 of a job without a launcher: listen, let in who knows the key, encrypt,
// wait for all, then serve PMI-1 from this process until all have left.
//
// Before a connection has proven the key it costs a goroutine, 72 bytes of
// reading and five seconds at most; there are never more than maxStrangers of
// them, and a new one takes the place of the oldest, so that connections which
// are opened and left alone keep nobody out. The port is closed as soon as all
// ranks have come.

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
	maxStrangers = 256
	// maxRemarks bounds what rank 0 remembers of refused connections.
	maxRemarks = 4
	newsWait   = time.Second // for writing a line to a rank
)

// root is rank 0's side of the rendezvous.
type root struct {
	place
	identity tls.Certificate
	listener net.Listener
	news     deathNews
	changed  chan struct{} // holds a token when someone came or left
	server   *Server       // set when ready is closed
	ready    chan struct{}

	mu        sync.Mutex
	strangers []net.Conn // have not proven the key, oldest first
	members   []*member  // by rank; nil: has not come
	come      int
	started   bool
	leaving   bool     // this process ends the connections, so their end says nothing
	remarks   []string // on refused connections
	refused   int
	serving   sync.WaitGroup // the members' goroutines
}

// member is a rank that has said hello.
type member struct {
	hello
	conn net.Conn
}

// gatherJob is Open for rank 0.
func gatherJob(ctx context.Context, p place) (Client, error) {
	began := time.Now()
	identity, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("pmi: rank 0: %w", err)
	}
	listener, err := listenAtRoot(ctx, p.root)
	if err != nil {
		return nil, err
	}
	r := &root{
		place: p, identity: identity, listener: listener, changed: make(chan struct{}, 1), ready: make(chan struct{}),
		members: make([]*member, p.size), come: 1,
	}
	r.members[0] = &member{hello: newHello(p)}
	go r.accept()
	err = r.await(ctx, began)
	r.closePort()
	if err != nil {
		r.dismiss(err.Error())
		return nil, fmt.Errorf("pmi: rank 0 of %d, listening at %s: %w", p.size, listener.Addr(), err)
	}
	return r.start(ctx)
}

// listenAtRoot listens on the root's address if it is one of this host, else on
// all: behind a service or a translated address the host does not know it by
// that name.
func listenAtRoot(ctx context.Context, addr string) (net.Listener, error) {
	host, port, _ := net.SplitHostPort(addr)
	if !ownAddress(ctx, host) {
		host = ""
	}
	var lc net.ListenConfig
	lc.KeepAliveConfig = keepAlive()
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("pmi: rank 0 cannot listen at %s=%s: %w; another process with %s=0 may be running here, or choose another port",
			EnvRoot, addr, err, EnvStaticRank)
	}
	return l, nil
}

// ownAddress reports whether to listen on this address alone. A name that means
// loopback here, as a host's own name often does in its /etc/hosts, means
// something else elsewhere and is not taken.
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
			time.Sleep(firstPause) // out of descriptors, for example: others may give some back
			continue
		}
		if r.letWait(conn) {
			go r.receive(conn)
		}
	}
}

// letWait takes a connection among the strangers.
func (r *root) letWait(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		conn.Close()
		return false
	}
	if len(r.strangers) == maxStrangers {
		r.strangers[0].Close()
		r.strangers = r.strangers[1:]
	}
	r.strangers = append(r.strangers, conn)
	return true
}

// known takes a connection from among the strangers.
func (r *root) known(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, s := range r.strangers {
		if s == conn {
			r.strangers = append(r.strangers[:i:i], r.strangers[i+1:]...)
			return
		}
	}
}

// receive is the life of a connection.
func (r *root) receive(stranger net.Conn) {
	defer stranger.Close()
	stranger.SetDeadline(time.Now().Add(handshakeTimeout))
	err := admit(stranger, r.key)
	r.known(stranger)
	if err != nil {
		switch {
		case errors.Is(err, errWrongKey):
			r.remark("%s came with a wrong %s", stranger.RemoteAddr(), EnvKey)
		case errors.Is(err, errVersion):
			r.remark("%s: %v", stranger.RemoteAddr(), err)
		}
		return
	}
	conn, err := encryptAsRoot(stranger, r.key, r.identity)
	if err != nil {
		if errors.Is(err, errIntercepted) {
			r.remark("%s: %v", stranger.RemoteAddr(), err)
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
		r.remark("%s knows the key but sent %.60q", conn.RemoteAddr(), line)
		return
	}
	one := &member{conn: conn, hello: hello{
		rank: m.number("rank", -1), size: m.number("size", -1),
		host: fieldText(&m, "host"), whereabouts: fieldText(&m, "where"), process: m.get("process"),
	}}
	if refusal := r.enlist(one); refusal != "" {
		r.remark("%s", refusal)
		conn.Write(verdict(cmdWelcome, refusal))
		return
	}
	defer r.serving.Done()
	conn.SetReadDeadline(time.Time{})
	// The next byte comes after the go, and belongs to PMI-1.
	var first [1]byte
	_, err = io.ReadFull(conn, first[:])
	if err != nil && r.strike(one) {
		return
	}
	<-r.ready
	if err == nil {
		err = r.server.Serve(one.rank, struct {
			io.Reader
			io.Writer
		}{io.MultiReader(strings.NewReader(string(first[:])), conn), conn})
	}
	r.left(one, err)
}

// enlist makes a connection a member and welcomes it, or says why not. The lock
// is held over the welcome, a short line on an empty connection, so that the go,
// which may follow at once, comes second. A write that fails shows when the
// connection is read.
func (r *root) enlist(one *member) string {
	from := one.conn.RemoteAddr()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.started:
		return fmt.Sprintf("rank %d on %s (%s) came after the job had started", one.rank, one.host, from)
	case one.size != r.size:
		return fmt.Sprintf("rank %d on %s (%s) has %s=%d, but rank 0 has %d", one.rank, one.host, from, EnvStaticSize, one.size, r.size)
	case one.rank < 0 || one.rank >= r.size:
		return fmt.Sprintf("%s (%s) says it is rank %d of %d", one.host, from, one.rank, r.size)
	case one.rank == 0:
		return fmt.Sprintf("a second rank 0 on %s (%s)", one.host, from)
	}
	other := r.members[one.rank]
	if other != nil && other.process != one.process {
		return fmt.Sprintf("two processes have %s=%d: one on %s (%s), one on %s (%s)",
			EnvStaticRank, one.rank, other.host, other.conn.RemoteAddr(), one.host, from)
	}
	if other != nil {
		other.conn.Close() // given up by its process, which tries again
	} else {
		r.come++
	}
	one.conn.Write(verdict(cmdWelcome, ""))
	one.conn.SetWriteDeadline(time.Time{})
	r.members[one.rank] = one
	r.serving.Add(1)
	r.wake()
	return ""
}

// strike takes a member off the list that has gone before the go: a process
// that is started again may take its place. It is false after the go, when a
// member's end is a death.
func (r *root) strike(one *member) bool {
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

func (r *root) remark(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused++; len(r.remarks) < maxRemarks {
		r.remarks = append(r.remarks, fmt.Sprintf(format, args...))
	}
}

// await returns when all ranks have come.
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
		err := fmt.Errorf("%s did not come %s", ranksPhrase(missing), after(ctx, began))
		if r.refused > 0 {
			more := ""
			if r.refused > len(r.remarks) {
				more = fmt.Sprintf("; and %d more", r.refused-len(r.remarks))
			}
			err = fmt.Errorf("%w; refused: %s%s", err, strings.Join(r.remarks, "; "), more)
		}
		return err
	}
}

// closePort ends listening, and the connections that have not proven the key.
func (r *root) closePort() {
	r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.strangers {
		conn.Close()
	}
}

// dismiss tells those who have come that the job does not start.
func (r *root) dismiss(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.members[1:] {
		if one != nil {
			one.conn.SetWriteDeadline(time.Now().Add(newsWait))
			one.conn.Write(verdict(cmdGo, "the job did not start: "+why))
			one.conn.Close()
		}
	}
}

// start serves PMI-1 to all, this rank included, and says go.
func (r *root) start(ctx context.Context) (Client, error) {
	nodes := make([]int, r.size)
	seen := map[string]int{}
	for rank, one := range r.members {
		node, ok := seen[one.whereabouts]
		if !ok {
			node = len(seen)
			seen[one.whereabouts] = node
		}
		nodes[rank] = node
	}
	r.server = NewServer(ServerConfig{Size: r.size, Mapping: formatMapping(nodes), Event: r.event})
	close(r.ready)
	for _, one := range r.members[1:] {
		// Who cannot be told is lost, and its goroutine will say so.
		one.conn.Write(verdict(cmdGo, ""))
	}
	ours, theirs := net.Pipe()
	go r.server.Serve(0, theirs)
	c, err := joinWire(ctx, ours, 0, r.size, nil, r.key)
	if err != nil {
		ours.Close()
		r.dropAll()
		return nil, err
	}
	c.news = &r.news
	return &rootClient{wireClient: c, root: r}, nil
}

func (r *root) event(e Event) {
	if e.Phase == PhaseAborted {
		r.lose(Death{Rank: e.Rank, Host: r.members[e.Rank].host, Status: abortStatus(e.Code, e.Why)})
	}
}

// left is the end of a member's connection.
func (r *root) left(one *member, err error) {
	r.mu.Lock()
	leaving := r.leaving
	r.mu.Unlock()
	if p := r.server.Phase(one.rank); leaving || p == PhaseFinalized || p == PhaseAborted {
		return
	}
	status := "its connection to rank 0 ended without a farewell"
	if err != nil && !errors.Is(err, io.EOF) {
		status += ": " + err.Error()
	}
	r.lose(Death{Rank: one.rank, Host: one.host, Status: status})
}

// lose tells all ranks of a death, this one last: it may end its process, which
// must not be taken for the cause.
func (r *root) lose(d Death) {
	defer r.news.tell(d)
	line := appendMessage(nil, cmdDeath, "rank", strconv.Itoa(d.Rank), "host", textField(d.Host), "status", textField(d.Status))
	for rank, one := range r.members {
		if rank != 0 && rank != d.Rank {
			one.conn.SetWriteDeadline(time.Now().Add(newsWait))
			one.conn.Write(line) // one write is not mixed with another
			one.conn.SetWriteDeadline(time.Time{})
		}
	}
}

// dropAll ends this process's part in the job.
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

// Abort tells the others before it returns: this process ends next, and with it
// the server.
func (c *rootClient) Abort(code int, why string) {
	c.root.lose(Death{Rank: 0, Host: c.host, Status: abortStatus(code, why)})
}

// Close leaves the job after the others have, because it is this process that
// answers them.
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
			err = c.root.stillHere()
		}
	}
	c.root.dropAll()
	return err
}

func (r *root) stillHere() error {
	var ranks []int
	for rank := range r.members {
		if r.server.Phase(rank) != PhaseFinalized {
			ranks = append(ranks, rank)
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	return fmt.Errorf("pmi: rank 0 has left the job %v before %s", leaveTimeout, ranksPhrase(ranks))
}
