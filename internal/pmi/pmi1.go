package pmi

// The PMI-1 client. One request is on the wire at a time: lock, write a line, read lines
// until the answer has arrived, unlock. While it waits, it checks for failed ranks, so
// that a fence that a failed rank will never enter returns an error with that rank.
//
// A call that times out before its answer leaves the protocol out of step; the client
// then rejects further calls with the same error.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Timeouts of the stages. They detect a launcher that does not answer, not slow peers: a
// fence has only the deadline of its context, because ranks may reach the last one hours
// apart.
const (
	joinTimeout  = 30 * time.Second // each request of the start
	getTimeout   = time.Minute      // a value that should be available
	leaveTimeout = 10 * time.Second // the finalize request
)

// wireConn is a socket to the launcher: a net.Conn or a pollable os.File.
type wireConn interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

type wireClient struct {
	membership
	nodes    mapping
	compared bool // the launcher has compared the terms of the ranks
	board    *Board
	notice   *deathNotice            // nil: failures are on the board, if there is one
	line     atomic.Pointer[os.File] // of Watch: a copy of the connection's descriptor
	leaving  atomic.Bool             // Close was called
	survives bool                    // the job is to continue when a rank fails
	started  atomic.Bool             // a fence has been passed
	fencing  atomic.Bool             // a fence is under way, which a failed rank never enters
	lifeline string                  // descriptor of the launcher's pipe; see hold
	held     atomic.Pointer[os.File]

	token  chan struct{} // holds one token: the right to use the fields below
	conn   wireConn
	lines  lineReader
	broken error
}

// joinWire sends init to the launcher and requests the data that the environment lacks.
func joinWire(ctx context.Context, conn wireConn, rank, size int, board *Board, secret []byte, terms Terms) (*wireClient, error) {
	host, _ := os.Hostname()
	c := &wireClient{
		membership: membership{rank: rank, size: size, host: host, secret: secret}, board: board, survives: terms.Survives(),
		token: make(chan struct{}, 1), conn: conn, lines: lineReader{r: conn},
	}
	if reported, ok := conn.(interface{ deaths() *deathNotice }); ok {
		c.notice = reported.deaths()
	}
	c.token <- struct{}{}
	board.MarkJoined(rank, os.Getpid())
	ctx, cancel := context.WithTimeoutCause(ctx, joinTimeout, fmt.Errorf("no answer within %v", joinTimeout))
	defer cancel()

	hello := []string{"pmi_version", "1", "pmi_subversion", "1"}
	if text := terms.Text(); text != "" {
		hello = append(hello, fieldTerms, valueCode.EncodeToString([]byte(text)), fieldHost, valueCode.EncodeToString([]byte(host)))
	}
	m, err := c.ask(ctx, "init", "response_to_init", "init", hello...)
	if err != nil {
		return nil, err
	}
	if m.get("rc") != "0" || m.get("pmi_version") != "1" {
		return nil, fmt.Errorf("pmi: rank %d: the launcher offers PMI %s.%s (rc=%s), but Muster needs 1.1; under Slurm use srun --mpi=pmi2",
			rank, m.get("pmi_version"), m.get("pmi_subversion"), m.get("rc"))
	}
	c.compared = m.get(fieldTerms) == compared
	if m, err = c.ask(ctx, "get the job's name", "my_kvsname", "get_my_kvsname"); err != nil {
		return nil, err
	}
	if c.job = m.get("kvsname"); c.job == "" {
		return nil, fmt.Errorf("pmi: rank %d: the launcher sent no job name; its answer was %+v", rank, m)
	}
	if m, err = c.ask(ctx, "get the mapping of ranks to nodes", "get_result", "get", "kvsname", c.job, "key", mappingKey); err != nil {
		return nil, err
	}
	c.nodes = eachAlone(size)
	if m.get("rc") == "0" {
		if c.nodes, err = parseMapping(m.get("value")); err != nil {
			return nil, err
		}
	}
	c.localRank, c.localSize = c.nodes.local(rank, size)
	return c, nil
}

func (c *wireClient) Compared() bool    { return c.compared }
func (c *wireClient) Node(rank int) int { return c.nodes.node(rank) }

// LocalIndex and LocalAt implement Locator.

func (c *wireClient) LocalIndex(rank int) int { return c.nodes.count(c.nodes.node(rank), rank) }

func (c *wireClient) LocalAt(index int) int { return c.nodes.at(c.nodes.node(c.rank), index) }

func (c *wireClient) Board() *Board { return c.board }

func (c *wireClient) Died() (Death, bool) {
	if c.survives && c.started.Load() && !c.fencing.Load() {
		return Death{}, false // calls to the launcher continue; the caller looks at the board
	}
	if d, ok := c.board.Death(0); ok {
		return d, true
	}
	return c.notice.death()
}

func (c *wireClient) Put(key string, val []byte) error {
	if err := checkKey(key); err != nil {
		return err
	}
	pieces, err := encodeValue(val)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	// The first piece is put last: when it is visible, so are the others.
	for i := len(pieces) - 1; i >= 0; i-- {
		m, err := c.ask(ctx, "put "+key, "put_result", "put", "kvsname", c.job, "key", pieceKey(key, c.rank, i), "value", pieces[i])
		if err != nil {
			return err
		}
		if rc := m.get("rc"); rc != "0" && rc != "" {
			return fmt.Errorf("pmi: rank %d: the launcher rejected the value of %q: rc=%s msg=%s", c.rank, key, rc, m.get("msg"))
		}
	}
	return nil
}

func (c *wireClient) Fence(ctx context.Context) error {
	c.board.Waiting(c.rank, fenceWait(ctx))
	defer c.board.Running(c.rank)
	c.fencing.Store(true)
	defer c.fencing.Store(false)
	m, err := c.ask(ctx, "Fence", "barrier_out", "barrier_in")
	if err == nil {
		if rc := m.get("rc"); rc != "" && rc != "0" {
			return fmt.Errorf("pmi: rank %d: Fence: the launcher reported an error: rc=%s msg=%s", c.rank, rc, m.get("msg"))
		}
		c.started.Store(true)
		return nil
	}
	if missing := c.notFenced(); len(missing) > 0 && ctx.Err() != nil {
		return fmt.Errorf("%w; still missing: %s", err, ranksPhrase(missing))
	}
	return err
}

// notFenced returns the ranks that do not wait in a fence according to the board, or none
// without a board.
func (c *wireClient) notFenced() (ranks []int) {
	for r := range c.board.Size() {
		if row := c.board.Row(r); row.State != RowWaiting || !strings.HasPrefix(row.Wait.Op, fenceOp) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (c *wireClient) Get(ctx context.Context, rank int, key string) ([]byte, error) {
	ctx, cancel, err := c.limitGet(ctx, rank, key)
	if err != nil {
		return nil, err
	}
	defer cancel()
	first, err := c.getPiece(ctx, rank, key, 0)
	if err != nil {
		return nil, err
	}
	val, pieces, err := decodeFirst(first)
	for i := 1; i < pieces && err == nil; i++ {
		var piece string
		if piece, err = c.getPiece(ctx, rank, key, i); err != nil {
			return nil, err
		}
		if val, err = valueCode.AppendDecode(val, []byte(piece)); err != nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("pmi: the value of %q from rank %d is damaged: %w", key, rank, err)
	}
	return val, nil
}

// getPiece repeats the request until the value is available: PMI-1 has no blocking get.
func (c *wireClient) getPiece(ctx context.Context, rank int, key string, piece int) (string, error) {
	stage := fmt.Sprintf("get %s of rank %d", key, rank)
	for pause := time.Millisecond; ; pause = min(2*pause, deathPoll) {
		m, err := c.ask(ctx, stage, "get_result", "get", "kvsname", c.job, "key", pieceKey(key, rank, piece))
		if err != nil {
			return "", err
		}
		if m.get("rc") == "0" {
			return m.get("value"), nil
		}
		if d, ok := c.Died(); ok {
			return "", &DeadError{stage, d}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("pmi: rank %d has not put %q: %w", rank, key, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func (c *wireClient) Abort(code int, why string) {
	const keep = 480 // in base64 the line stays below 1024 characters
	why = why[:min(len(why), keep)]
	// Another goroutine's call, such as Fence, may hold the token, and an abort must not
	// wait for it. The line is short, and a single write is not interleaved with others.
	c.conn.SetWriteDeadline(time.Now().Add(time.Second))
	c.conn.Write(appendMessage(nil, "abort", "exitcode", strconv.Itoa(code), abortWhy, valueCode.EncodeToString([]byte(why))))
}

// Unreachable reports to the launcher that this rank cannot reach another one over the
// network. The launcher decides which of them has failed. It does not return an error:
// without an answer the launcher is gone, which Watch reports.
func (c *wireClient) Unreachable(rank int) {
	if !c.survives || !c.compared || c.leaving.Load() {
		return // nobody decides
	}
	ctx, cancel := context.WithTimeout(context.Background(), joinTimeout)
	defer cancel()
	_, _ = c.ask(ctx, "report an unreachable rank", unreachableAnswer, unreachableCommand, "rank", strconv.Itoa(rank))
}

func (c *wireClient) AbortReports() bool { return c.board != nil || c.notice != nil }

func (c *wireClient) Close() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), leaveTimeout, fmt.Errorf("no answer within %v", leaveTimeout))
	defer cancel()
	c.endWatch()
	c.board.MarkLeft(c.rank)
	_, err := c.ask(ctx, "leave the job", "finalize_ack", "finalize")
	if errors.Is(err, ErrClosed) {
		return nil
	}
	select {
	case <-c.token:
		c.broken = ErrClosed
		c.token <- struct{}{}
	case <-ctx.Done():
	}
	c.conn.Close()
	return err
}

// ask sends a request and waits for its answer.
func (c *wireClient) ask(ctx context.Context, stage, answer, cmd string, fields ...string) (message, error) {
	select {
	case <-c.token:
	case <-ctx.Done():
		return message{}, fmt.Errorf("pmi: rank %d: %s: another call is still waiting for the launcher: %w", c.rank, stage, context.Cause(ctx))
	}
	defer func() { c.token <- struct{}{} }()
	if c.broken != nil {
		return message{}, c.broken
	}
	m, err := c.converse(ctx, stage, answer, appendMessage(nil, cmd, fields...))
	if err != nil {
		c.broken = err
	}
	return m, err
}

func (c *wireClient) converse(ctx context.Context, stage, answer string, request []byte) (message, error) {
	c.conn.SetWriteDeadline(time.Now().Add(joinTimeout))
	if _, err := c.conn.Write(request); err != nil {
		return message{}, c.connectionError(stage, err)
	}
	for {
		c.conn.SetReadDeadline(time.Now().Add(deathPoll))
		line, err := c.lines.next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if d, ok := c.Died(); ok {
				return message{}, &DeadError{stage, d}
			}
			if ctx.Err() != nil {
				return message{}, fmt.Errorf("pmi: rank %d of %d: %s: %w", c.rank, c.size, stage, context.Cause(ctx))
			}
			continue
		}
		if err != nil {
			return message{}, c.connectionError(stage, err)
		}
		m, err := parseMessage(string(line))
		if err != nil {
			return message{}, fmt.Errorf("pmi: rank %d: %s: the launcher sent %.80q: %w", c.rank, stage, line, err)
		}
		if m.cmd == answer {
			return m, nil
		}
		// Unsolicited messages are ignored, except errors.
		if rc := m.get("rc"); rc != "" && rc != "0" || strings.HasPrefix(m.cmd, "unknown") {
			return message{}, fmt.Errorf("pmi: rank %d: %s: the launcher answered %.80q", c.rank, stage, line)
		}
	}
}

func (c *wireClient) connectionError(stage string, err error) error {
	if d, ok := c.Died(); ok {
		return &DeadError{stage, d}
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it closed the connection")
	}
	return fmt.Errorf("pmi: rank %d of %d: %s: the launcher is gone: %w", c.rank, c.size, stage, err)
}
