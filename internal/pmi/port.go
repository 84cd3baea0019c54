package pmi

// Ports, at which running jobs meet (MPI-4.1 section 11.9). A port name is a join token: the
// address of a listener and a key, which both ends prove before anything else is read
// (handshake.go), and under which TLS starts (channel.go). The caller then sends the size of its
// group; the answer is the join token to the rendezvous of both groups, made for it alone.

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

const (
	cmdCall   = "muster_call"
	cmdAnswer = "muster_answer"
	cmdReady  = "muster_ready"
)

// maxCallers limits the connections of callers with the key that have not been answered.
const maxCallers = 256

// MaxPortName is the length of the names of ports: one less than MPI_MAX_PORT_NAME of MPICH.
const MaxPortName = 255

// ErrPortClosed reports that nobody listens at a port.
var ErrPortClosed = errors.New("the port is closed, or its process has ended; get its name again from the process that accepts")

// Port is a listener with a name.
type Port struct {
	JoinToken
	listener  net.Listener
	identity  tls.Certificate
	strangers strangers
	callers   chan *Caller
	closed    chan struct{}
}

// Caller is a process that has the name of a port and waits for an answer.
type Caller struct {
	Size  int // of its group
	conn  net.Conn
	lines *lineReader
}

// OpenPort opens a port.
func OpenPort() (*Port, error) {
	m, err := OpenRendezvous()
	if err != nil {
		return nil, err
	}
	p := &Port{JoinToken: m.JoinToken, listener: m.listener, callers: make(chan *Caller), closed: make(chan struct{})}
	p.Key = rand.Text()
	for len(p.String()) > MaxPortName && len(p.Addrs) > 1 { // those last that other hosts may not reach
		p.Addrs = p.Addrs[:len(p.Addrs)-1]
	}
	if p.identity, err = newIdentity(); err != nil {
		m.Close()
		return nil, err
	}
	go p.listen()
	return p, nil
}

// Close closes the port and the connections of those that have not been answered.
func (p *Port) Close() {
	p.listener.Close()
	p.strangers.close()
	close(p.closed)
}

func (p *Port) listen() {
	slots := make(chan struct{}, maxCallers)
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(firstPause)
			continue
		}
		if !p.strangers.add(conn) {
			return
		}
		go func() {
			c := p.receive(conn)
			if c == nil {
				conn.Close()
				return
			}
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			default:
				conn.Close()
				return
			}
			select {
			case p.callers <- c:
			case <-p.closed:
				conn.Close()
			}
		}()
	}
}

// receive returns the caller of a connection, nil if it is a stranger.
func (p *Port) receive(conn net.Conn) *Caller {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	err := acceptHandshake(conn, []byte(p.Key))
	p.strangers.remove(conn)
	if err != nil {
		return nil
	}
	channel, err := encryptAsRoot(conn, []byte(p.Key), p.identity)
	if err != nil {
		return nil
	}
	c := &Caller{conn: channel, lines: &lineReader{r: channel}}
	m, err := c.read(cmdCall)
	if c.Size = m.number("size", 0); err != nil || c.Size < 1 || c.Size > maxMapped {
		return nil
	}
	channel.SetDeadline(time.Time{})
	return c
}

func (c *Caller) read(cmd string) (message, error) {
	line, err := c.lines.next()
	if err != nil {
		return message{}, describeEnd(err)
	}
	m, err := parseMessage(string(line))
	if err == nil && m.cmd != cmd {
		err = fmt.Errorf("it sent %.60q", line)
	}
	return m, err
}

// Accept answers the next caller: size is that of the group of this process. It returns the size
// of the caller's group.
func (p *Port) Accept(ctx context.Context, size int, v JoinToken) (int, error) {
	for {
		select {
		case c := <-p.callers:
			err := c.answer(size, v)
			c.conn.Close()
			if err == nil {
				return c.Size, nil
			} // it has given up; there may be another one
		case <-p.closed:
			return 0, ErrPortClosed
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (c *Caller) answer(size int, v JoinToken) error {
	c.conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if _, err := c.conn.Write(appendMessage(nil, cmdAnswer, "size", strconv.Itoa(size), "meet", textField(v.String()))); err != nil {
		return err
	}
	_, err := c.read(cmdReady)
	return err
}

// Call calls a port for a group, and waits until the port accepts. It returns the size of the
// group that accepts, and the join token to meet it.
func (v JoinToken) Call(ctx context.Context, size int) (theirs int, meet JoinToken, err error) {
	var why error
	for _, addr := range v.addrs() {
		dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: keepAlive(0)}
		conn, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			why = errors.Join(why, fmt.Errorf("%w: %w", ErrPortClosed, err))
			continue
		}
		stop := context.AfterFunc(ctx, func() { conn.Close() })
		theirs, meet, err = v.callOn(conn, size)
		stop()
		conn.Close()
		if err == nil {
			return theirs, meet, nil
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		why = errors.Join(why, fmt.Errorf("%s: %w", addr, err))
	}
	return 0, meet, why
}

func (v JoinToken) callOn(conn net.Conn, size int) (theirs int, meet JoinToken, err error) {
	conn.SetDeadline(time.Now().Add(handshakeTimeout))
	if err := dialHandshake(conn, []byte(v.Key)); err != nil {
		return 0, meet, describeEnd(err)
	}
	channel, err := encryptAsRank(conn, []byte(v.Key))
	if err != nil {
		return 0, meet, describeEnd(err)
	}
	c := &Caller{conn: channel, lines: &lineReader{r: channel}}
	if _, err := channel.Write(appendMessage(nil, cmdCall, "size", strconv.Itoa(size))); err != nil {
		return 0, meet, err
	}
	conn.SetDeadline(time.Time{}) // Accept may be called much later
	m, err := c.read(cmdAnswer)
	if err != nil {
		return 0, meet, err
	}
	if meet, err = ParseJoinToken(fieldText(&m, "meet")); err != nil {
		return 0, meet, err
	}
	_, err = channel.Write(appendMessage(nil, cmdReady))
	return m.number("size", 0), meet, err
}
