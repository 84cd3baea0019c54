package hybrid

import (
	"context"
	"sync"
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

// dialer runs the goroutines that connect.
type dialer struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	results chan result
}

func (d *dialer) open() {
	d.results = make(chan result, mostResults)
	d.ctx, d.cancel = context.WithCancel(context.Background())
}

// hasResult reports whether a dial has ended. Any goroutine may call it.
func (d *dialer) hasResult() bool { return len(d.results) > 0 }

// dial connects a connection with the queue pair that its peer has named, and then calls wake.
func (d *dialer) dial(c *connection, wake func()) {
	remote := c.peer.remote
	d.running.Go(func() {
		ctx, cancel := context.WithTimeout(d.ctx, dialTimeout)
		defer cancel()
		err := c.qp.Connect(ctx, remote)
		select {
		case d.results <- result{c, err}:
			wake()
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
	m.handleConnect(r.err == nil)
	d.run(m)
}
