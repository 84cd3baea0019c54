package hybrid

import (
	"context"
	"time"
)

// Connecting takes milliseconds and waits for the peer, so a goroutine does it in the
// background. The next Poll handles its result.

// dialTimeout is how long both ends may take to connect. An end that computes may be late:
// nothing waits for it meanwhile, datagrams continue.
const dialTimeout = 30 * time.Second

// result is the outcome of a dial.
type result struct {
	conn *connection
	err  error
}

// dial connects the queue pair of a peer with the one that the peer has named.
func (d *Device) dial(m *peerState) {
	c, remote, wake := m.conn, m.remote, d.pair.recvCQ
	d.dialers.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, dialTimeout)
		defer cancel()
		err := c.qp.Connect(ctx, remote)
		select {
		case d.results <- result{c, err}:
			wake.Wake()
		case <-d.ctx.Done():
		}
	})
}

// mostResults is the number of results that wait for a Poll; further dialers wait.
const mostResults = 64

// takeResult passes an outcome to the state machine of the peer.
func (d *Device) takeResult(r result) {
	m := r.conn.peer
	if m.conn != r.conn || r.conn.closed {
		return // it was abandoned meanwhile
	}
	if r.err != nil {
		d.policy.fail(&m.score)
	}
	m.connected(r.err == nil)
	d.run(m)
}
