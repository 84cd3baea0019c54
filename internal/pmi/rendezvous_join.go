package pmi

// Ranks other than 0: find rank 0, prove the key, encrypt, say hello, wait for the go.
// What fails before the go is tried again until the start timeout, because the
// name of rank 0, its host, its process or its port may come up later; only a
// refusal by rank 0 is final.
//
// After the go the connection carries PMI-1, and between its lines news of
// deaths. A goroutine reads it all the time and sorts the two, so that a rank
// that computes or waits for a message learns of a death too.

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
	// verdictGrace is how much longer than itself a rank lets rank 0 take: its
	// report of who is missing is better than "no answer".
	verdictGrace = 3 * time.Second
)

// joinRoot is Open for a rank other than 0.
func joinRoot(ctx context.Context, p place) (Client, error) {
	began := time.Now()
	me := newHello(p)
	var (
		lastStage string
		lastErr   error
	)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		conn, lines, stage, err := knock(ctx, p, me)
		if err == nil {
			return joinOrClose(ctx, newRootedConn(conn, lines, p.root), p.rank, p.size, nil, p.key)
		}
		var final *verdictError
		if errors.As(err, &final) {
			return nil, fmt.Errorf("pmi: rank %d of %d, at rank 0 (%s=%s): %w", p.rank, p.size, EnvRoot, p.root, err)
		}
		if ctx.Err() != nil && lastErr != nil {
			stage, err = lastStage, lastErr // this attempt only ran out of time
		}
		lastStage, lastErr = stage, err
		select {
		case <-time.After(pause/2 + rand.N(pause)): // ranks that start together do not come together again
			continue
		case <-ctx.Done():
		}
		return nil, fmt.Errorf("pmi: rank %d of %d could not join rank 0 at %s=%s %s: %s: %w; check that rank 0 runs, that the name is its host's and that the port is open",
			p.rank, p.size, EnvRoot, p.root, after(ctx, began), stage, err)
	}
}

// knock is one attempt. stage reports how far it came.
func knock(ctx context.Context, p place, me hello) (_ net.Conn, _ *lineReader, stage string, err error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive()}
	conn, err := dialer.DialContext(ctx, "tcp", p.root)
	if err != nil {
		var dns *net.DNSError
		if errors.As(err, &dns) {
			return nil, nil, "resolving the name", err
		}
		return nil, nil, "connecting", err
	}
	hurry := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now().Add(verdictGrace)) })
	channel, lines, stage, err := enter(ctx, conn, p, me)
	if !hurry() && err == nil {
		err = context.Cause(ctx) // the deadline that was set could end the connection later
	}
	if err != nil {
		conn.Close()
		return nil, nil, stage, plainly(err)
	}
	channel.SetDeadline(time.Time{})
	return channel, lines, "", nil
}

// enter makes a channel of a connection to rank 0, and returns after the go.
func enter(ctx context.Context, conn net.Conn, p place, me hello) (channel net.Conn, lines *lineReader, stage string, err error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err := introduce(conn, p.key); err != nil {
		return nil, nil, "proving the key", err
	}
	encrypted, err := encryptAsRank(conn, p.key)
	if errors.Is(err, errIntercepted) {
		err = &verdictError{err.Error()}
	}
	if err != nil {
		return nil, nil, "encrypting the connection", err
	}
	lines = &lineReader{r: encrypted}
	if _, err := encrypted.Write(appendMessage(nil, cmdHello,
		"rank", strconv.Itoa(me.rank), "size", strconv.Itoa(me.size),
		"host", textField(me.host), "where", textField(me.whereabouts), "process", me.process)); err != nil {
		return nil, nil, "saying hello", err
	}
	if err := readVerdict(lines, cmdWelcome); err != nil {
		return nil, nil, "saying hello", err
	}
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline.Add(verdictGrace))
	return encrypted, lines, "waiting until all ranks have come", readVerdict(lines, cmdGo)
}

// plainly says what an end of the connection means.
func plainly(err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it closed the connection")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("it did not answer")
	}
	return err
}

// deathNews keeps the first death that a client has heard of, and reports it to who
// listens.
type deathNews struct {
	first    atomic.Pointer[Death]
	listener atomic.Pointer[func(Death)]
	report   sync.Once
}

func (n *deathNews) tell(d Death) {
	if n.first.CompareAndSwap(nil, &d) {
		n.reportTo()
	}
}

func (n *deathNews) listen(listener func(Death)) {
	n.listener.Store(&listener)
	n.reportTo()
}

// reportTo is called after each of the two has been set: the later call finds both.
func (n *deathNews) reportTo() {
	if d, listener := n.first.Load(), n.listener.Load(); d != nil && listener != nil {
		n.report.Do(func() { (*listener)(*d) })
	}
}

func (n *deathNews) heard() (Death, bool) {
	if n == nil {
		return Death{}, false
	}
	d := n.first.Load()
	if d == nil {
		return Death{}, false
	}
	return *d, true
}

// rootedConn is the connection to rank 0 as the PMI-1 client sees it: without
// the news.
type rootedConn struct {
	net.Conn          // writes go straight to rank 0
	answers  net.Conn // reads come through a pipe
	news     *deathNews
}

func newRootedConn(conn net.Conn, lines *lineReader, root string) *rootedConn {
	answers, sorted := net.Pipe()
	c := &rootedConn{Conn: conn, answers: answers, news: &deathNews{}}
	go c.sort(lines, sorted, root)
	return c
}

func (c *rootedConn) sort(lines *lineReader, sorted net.Conn, root string) {
	defer sorted.Close()
	for {
		line, err := lines.next()
		if err != nil {
			// A client that has closed no longer asks.
			c.news.tell(Death{Rank: 0, Host: root, Status: "its connection ended: " + plainly(err).Error()})
			return
		}
		if m, err := parseMessage(string(line)); err == nil && m.cmd == cmdDeath {
			c.news.tell(Death{Rank: m.number("rank", 0), Host: fieldText(&m, "host"), Status: fieldText(&m, "status")})
			continue
		}
		if _, err := sorted.Write(append(line[:len(line):len(line)], '\n')); err != nil {
			return // the client is closed
		}
	}
}

func (c *rootedConn) Read(b []byte) (int, error)        { return c.answers.Read(b) }
func (c *rootedConn) SetReadDeadline(t time.Time) error { return c.answers.SetReadDeadline(t) }
func (c *rootedConn) deaths() *deathNews                { return c.news }

func (c *rootedConn) Close() error {
	c.answers.Close()
	return c.Conn.Close()
}
