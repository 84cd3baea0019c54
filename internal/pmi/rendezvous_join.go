package pmi

// Ranks other than 0: connect to rank 0, prove the key, encrypt, send hello, wait for go.
// Failures before go are retried until the start timeout, because the name of rank 0, its
// host, its process or its port may become available later. Only a refusal by rank 0 is
// final.
//
// After go the connection carries PMI-1 lines interleaved with notices of failures. A
// goroutine reads it continuously and separates the two, so that a rank that computes or
// waits for a message also notices a failure.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout      = 5 * time.Second // one attempt, name and connection
	handshakeTimeout = 5 * time.Second
	firstPause       = 20 * time.Millisecond
	longestPause     = time.Second
	// replyGrace is the extra time that a rank gives rank 0 beyond its own deadline:
	// rank 0's list of missing ranks is more useful than "no answer".
	replyGrace = 3 * time.Second
	proveKey   = "prove the key" // a step of enter
)

// joinRoot implements Open for a rank other than 0.
func joinRoot(ctx context.Context, p staticJob) (Client, error) {
	began := time.Now()
	me := newHello(p)
	var (
		lastStage string
		lastErr   error
	)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, lines, stage, err := tryJoin(ctx, p, me)
		if err == nil {
			return joinOrClose(ctx, newRootedConn(conn, lines, p.root), p.rank, p.size, nil, p.key, p.terms)
		}
		var final *refusedError
		if errors.As(err, &final) {
			return nil, fmt.Errorf("pmi: rank %d of %d: rank 0 (%s=%s) refused: %w", p.rank, p.size, EnvRoot, p.root, err)
		}
		if ctx.Err() != nil && lastErr != nil {
			stage, err = lastStage, lastErr // the last attempt only timed out
		}
		lastStage, lastErr = stage, err
		select {
		case <-time.After(pause/2 + rand.N(pause)): // jitter, so that ranks do not retry in lockstep
			continue
		case <-ctx.Done():
		}
		return nil, fmt.Errorf("pmi: rank %d of %d could not join rank 0 at %s=%s %s: %s: %w; check that rank 0 is running, that the host name is correct and that the port is open",
			p.rank, p.size, EnvRoot, p.root, describeTimeout(ctx, began), stage, err)
	}
}

// tryJoin makes one attempt to join. stage names the step that failed.
func tryJoin(ctx context.Context, p staticJob, me hello) (_ net.Conn, _ *lineReader, stage string, err error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive(p.silence)}
	conn, err := dialer.DialContext(ctx, "tcp", p.root)
	if err != nil {
		var dns *net.DNSError
		if errors.As(err, &dns) {
			return nil, nil, "resolve the name", err
		}
		return nil, nil, "connect", err
	}
	hurry := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now().Add(replyGrace)) })
	channel, lines, stage, err := enter(ctx, conn, p, me)
	if !hurry() && err == nil {
		err = context.Cause(ctx) // the deadline set by AfterFunc would end the connection later
	}
	if err != nil {
		conn.Close()
		return nil, nil, stage, describeEnd(err)
	}
	channel.SetDeadline(time.Time{})
	return channel, lines, "", nil
}

// enter authenticates and encrypts a connection to rank 0 and returns after go.
func enter(ctx context.Context, conn net.Conn, p staticJob, me hello) (channel net.Conn, lines *lineReader, stage string, err error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err := dialHandshake(conn, p.key); err != nil {
		return nil, nil, proveKey, err
	}
	encrypted, err := encryptAsRank(conn, p.key)
	if errors.Is(err, errIntercepted) {
		err = &refusedError{err.Error()}
	}
	if err != nil {
		return nil, nil, "encrypt the connection", err
	}
	lines = &lineReader{r: encrypted}
	if _, err := encrypted.Write(appendMessage(nil, cmdHello,
		"rank", strconv.Itoa(me.rank), "size", strconv.Itoa(me.size),
		"host", textField(me.host), "where", textField(me.memoryDomain), "process", me.process)); err != nil {
		return nil, nil, "send hello", err
	}
	if err := readReply(lines, cmdWelcome); err != nil {
		return nil, nil, "wait for the answer to hello", err
	}
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline.Add(replyGrace))
	return encrypted, lines, "wait until all ranks have joined", readReply(lines, cmdGo)
}

// describeEnd replaces EOF and timeout errors by a plain description.
func describeEnd(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it closed the connection")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("it did not answer")
	}
	return err
}

// deathNotice stores the first failure reported to a client and passes it to a listener.
type deathNotice struct {
	first    atomic.Pointer[Death]
	listener atomic.Pointer[func(Death)]
	report   sync.Once
	each     atomic.Pointer[func()] // called at each notice
}

func (n *deathNotice) record(d Death) {
	if n.first.CompareAndSwap(nil, &d) {
		n.reportTo()
	}
	if each := n.each.Load(); each != nil {
		(*each)()
	}
}

func (n *deathNotice) listen(listener func(Death)) {
	n.listener.Store(&listener)
	n.reportTo()
}

// reportTo is called after each of the two fields has been set: the later call finds both.
func (n *deathNotice) reportTo() {
	if d, listener := n.first.Load(), n.listener.Load(); d != nil && listener != nil {
		n.report.Do(func() { (*listener)(*d) })
	}
}

func (n *deathNotice) death() (Death, bool) {
	if n == nil {
		return Death{}, false
	}
	d := n.first.Load()
	if d == nil {
		return Death{}, false
	}
	return *d, true
}

// rootedConn is the connection to rank 0 as the PMI-1 client sees it: without the
// notices.
type rootedConn struct {
	net.Conn          // writes go directly to rank 0
	answers  net.Conn // reads go through a pipe
	notice   *deathNotice
}

func newRootedConn(conn net.Conn, lines *lineReader, root string) *rootedConn {
	answers, sorted := net.Pipe()
	c := &rootedConn{Conn: conn, answers: answers, notice: &deathNotice{}}
	go c.sort(lines, sorted, root)
	return c
}

func (c *rootedConn) sort(lines *lineReader, sorted net.Conn, root string) {
	defer sorted.Close()
	for {
		line, err := lines.next()
		if err != nil {
			// After Close no call reads the notice.
			c.notice.record(Death{Rank: 0, Host: root, Status: "its connection ended: " + describeEnd(err).Error()})
			return
		}
		if m, err := parseMessage(string(line)); err == nil && m.cmd == cmdDeath {
			c.notice.record(Death{Rank: m.number("rank", 0), Host: fieldText(&m, "host"), Status: fieldText(&m, "status")})
			continue
		}
		if _, err := sorted.Write(append(line[:len(line):len(line)], '\n')); err != nil {
			return // the client is closed
		}
	}
}

func (c *rootedConn) Read(b []byte) (int, error)        { return c.answers.Read(b) }
func (c *rootedConn) SetReadDeadline(t time.Time) error { return c.answers.SetReadDeadline(t) }
func (c *rootedConn) deaths() *deathNotice              { return c.notice }

func (c *rootedConn) Close() error {
	c.answers.Close()
	return c.Conn.Close()
}
