//go:build ofi && cgo && linux

package ofi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// connectPause is the time between two checks of a connection.
const connectPause = 200 * time.Microsecond

// Connect connects a queue pair to a peer, which must connect at the same time. The one
// whose address comes first dials, the other waits.
func (q *queuePair) Connect(ctx context.Context, peer rdma.Addr) error {
	d := q.dev
	if q.closed {
		return rdma.ErrClosed
	}
	if d.cfg.Transport != rdma.RC {
		return fmt.Errorf("ofi: connect: %w: this kind of queue pair needs none", rdma.ErrUnsupported)
	}
	where, err := parseAddress(peer)
	if err != nil {
		return fmt.Errorf("ofi: connect: %w", err)
	}
	if where.provider != d.what.provider || where.transport != rdma.RC {
		return fmt.Errorf("ofi: connect with peer %d: it uses %s over provider %s, this queue pair RC over %s",
			where.index, transportWord(where.transport), where.provider, d.what.provider)
	}
	for {
		err := q.end.connect(d.lib, q.addr < peer, []byte(where.name), where.index)
		if err == nil {
			return nil
		}
		if !errors.Is(err, rdma.ErrAgain) {
			return fmt.Errorf("ofi: connect with peer %d over provider %s: %w", where.index, d.what.provider, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ofi: connect with peer %d over provider %s: it did not connect as well: %w", where.index, d.what.provider, ctx.Err())
		case <-time.After(connectPause):
		}
	}
}
