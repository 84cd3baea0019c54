//go:build !muster_portable

package iwarp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// TestPeerWithoutReads: a peer that answers no Reads can be written to, and a Read fails.
func TestPeerWithoutReads(t *testing.T) {
	e := newEnd(t, Config{})
	at, _, _, err := parseAddr(e.qp.Addr())
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, 3000)
	offered := make(chan ddp.Tag, 1)
	client := make(chan error, 1)
	go func() { client <- takeOneWrite(at.String(), mem, offered) }()
	ctx, cancel := context.WithTimeout(context.Background(), rpingLimit)
	defer cancel()
	if err := e.qp.Connect(ctx, Anybody); err != nil {
		t.Fatal(err)
	}
	tag := uint64(<-offered)
	wrs := []rdma.SendWR{
		{ID: 1, Op: rdma.OpWrite, Body: rdma.MemOf(rpingData(0, len(mem))), RKey: tag},
		{ID: 2, Op: rdma.OpRead, Body: rdma.MemOf(make([]byte, 8)), RKey: tag},
		{ID: 3, Op: rdma.OpSend, Body: rdma.MemOf(make([]byte, rpingOffer))},
	}
	if n, err := e.qp.PostSend(wrs); n != len(wrs) || err != nil {
		t.Fatal(n, err)
	}
	pollUntil(t, "all work has completed", func() bool { return len(e.got) == len(wrs) }, e)
	for _, c := range e.got {
		want := rdma.StatusOK
		if c.Op == rdma.OpRead {
			want = rdma.StatusFault
		}
		if c.Status != want {
			t.Errorf("a %v completes with %v, expected %v", c.Op, c.Status, want)
		}
	}
	if err := <-client; err != nil || !bytes.Equal(mem, rpingData(0, len(mem))) {
		t.Errorf("the peer returns %v, and the Write has not arrived", err)
	}
}

// takeOneWrite runs a peer with a read depth of 0 that waits for the message after a
// Write.
func takeOneWrite(address string, mem []byte, offered chan<- ddp.Tag) error {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	w := rpingPreferences(true, false, true)
	w.ird = 0
	p, err := dialRping(conn, w, 0)
	if err != nil {
		close(offered)
		return err
	}
	tag, err := p.table.Register(ddp.Region{Mem: rdma.MemOf(mem), Access: rdma.RemoteWrite})
	offered <- tag
	_, awaited := p.await(ddp.Received)
	return errors.Join(err, awaited)
}
