package pmi

// A session is a rank's end of the server. It is fed with what the rank's socket has, so
// that one goroutine can serve the ranks of a machine, and it holds memory only for a
// request of which a part has come.

import (
	"bytes"
	"fmt"
	"io"
)

// Session parses and answers the requests of one rank. Calls of Feed must not run
// concurrently.
type Session struct {
	server *Server
	conn   serverConn
	held   []byte // the beginning of a line
}

// Session returns the session of a rank, whose answers are written to w.
func (s *Server) Session(rank int, w io.Writer) *Session {
	return &Session{server: s, conn: serverConn{rank: rank, w: w}}
}

// Feed handles data that the rank has sent. After an error the session is of no use.
func (c *Session) Feed(data []byte) error {
	if len(c.held) > 0 {
		data = append(c.held, data...)
		c.held = nil
	}
	for {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole {
			break
		}
		data = rest
		if err := c.take(line); err != nil {
			return err
		}
	}
	if len(data) > maxLine {
		return fmt.Errorf("pmi: read from rank %d: a line is longer than %d bytes", c.conn.rank, maxLine)
	}
	if len(data) > 0 {
		c.held = append([]byte(nil), data...)
	}
	return nil
}

func (c *Session) take(line []byte) error {
	rank := c.conn.rank
	if c.conn.spawning {
		if string(line) != "endcmd" {
			return nil
		}
		c.conn.spawning = false
		return c.conn.reply("spawn_result", "rc", "-1", "msg", "not_supported")
	}
	m, err := parseMessage(string(line))
	if err != nil {
		return fmt.Errorf("pmi: rank %d sent %.80q: %w", rank, line, err)
	}
	if err := c.server.answer(&c.conn, &m); err != nil {
		return fmt.Errorf("pmi: answer %s of rank %d: %w", m.cmd, rank, err)
	}
	return nil
}
