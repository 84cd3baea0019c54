package iwarp

import (
	"slices"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/soft"
)

// Completion queues, and driving the sockets: Poll drives those of all queue pairs of the
// device, and so does the progress thread while the application computes. Goroutines sleep
// on the set of all sockets.

type completionQueue struct {
	soft.CQ[lentBuffer]
	dev *device
}

// fewSockets is the number of sockets up to which checking each one is less expensive than
// asking the kernel which of them are ready.
const fewSockets = 4

func (d *device) NewCQ(int) (rdma.CQ, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := &completionQueue{dev: d}
	if err := c.Open(&d.Device, lentBuffer.end); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *completionQueue) Poll(out []rdma.Completion) int {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	lent, ok := c.Begin()
	if !ok {
		return 0
	}
	for _, loan := range lent {
		loan.end()
	}
	if n := c.Len(); n < len(out) || n == 0 {
		c.dev.looking()
		if len(c.dev.queues) <= fewSockets {
			for _, q := range c.dev.queues {
				q.progress()
			}
		} else {
			c.dev.progress()
		}
	}
	n := c.Take(out)
	if n == 0 {
		c.dev.giveWayLocked()
	}
	return n
}

// progress drives the sockets that are ready, after the queue pairs that need no event: those that
// defer responses until the next call do so in progressReady.
func (d *device) progress() {
	for _, q := range d.queues {
		if q.runnable() {
			q.progress()
		}
	}
	d.progressReady()
}

// progressBeside is progress for the progress thread. The sockets do not indicate what it
// has processed.
func (d *device) progressBeside() time.Duration {
	d.looking()
	d.progress()
	d.MarkMoved()
	if d.onlyStarved() {
		return starvedPause
	}
	return 0
}

// starvedPause is the time between two attempts of the progress thread while nothing but
// messages without a buffer is left. Lent buffers come back only when the application polls.
const starvedPause = 100 * time.Microsecond

// onlyStarved reports whether all queue pairs that could proceed wait for a receive buffer.
func (d *device) onlyStarved() (starved bool) {
	for _, q := range d.queues {
		if q.runnable() {
			if !q.in.starved {
				return false
			}
			starved = true
		}
	}
	return starved
}

// sleep reports whether there is work that no socket indicates. The one timer is that of
// endSilent.
func (d *device) sleep(limit time.Duration) time.Duration {
	limit = min(limit, d.endSilent())
	if slices.ContainsFunc(d.queues, (*queuePair).runnable) {
		return 0
	}
	for _, q := range d.queues {
		q.awaitRest()
	}
	return limit
}
