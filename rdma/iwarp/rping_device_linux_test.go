package iwarp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/ddp"
)

// The device as a program uses it, against rping: soft-iWARP's where make interop-siw
// names one, and the step-by-step one of rping_test.go everywhere else.

func TestTheDeviceIsRpingsClient(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		size int
	}{{Config{}, 64}, {Config{NoCRC: true}, 4000}, {Config{}, 60000}, {Config{NoThread: true}, 1000}} {
		t.Run(fmt.Sprintf("crc=%v/%d", !c.cfg.NoCRC, c.size), func(t *testing.T) {
			address := *siwServer
			if address == "" {
				address = ownServer(t, func(p *rpingPeer) error {
					_, err := p.server()
					return err
				})
			}
			e := newEnd(t, c.cfg)
			ctx, cancel := context.WithTimeout(context.Background(), rpingLimit)
			defer cancel()
			if err := e.qp.Connect(ctx, rdma.Addr(address)); err != nil {
				t.Fatal(err)
			}
			for round := range 3 {
				line, back := rpingData(round, c.size), make([]byte, c.size)
				e.offerRping(line, rdma.RemoteRead)
				e.offerRping(back, rdma.RemoteWrite)
				if !bytes.Equal(line, back) {
					t.Fatalf("round %d: written back was %q", round, back)
				}
			}
		})
	}
}

// offerRping tells the peer where a buffer is and waits until it has used it.
func (e *end) offerRping(buffer []byte, acc rdma.Access) {
	e.t.Helper()
	mr, err := e.dev.Register(buffer, acc)
	if err != nil {
		e.t.Fatal(err)
	}
	e.tellRping(mr.Base, mr.RKey, len(buffer))
	e.got = nil
	pollUntil(e.t, "the peer has used the buffer", func() bool { return len(e.got) > 0 }, e)
	if c := e.got[0]; c.Op != rdma.OpRecv || c.Status != rdma.StatusOK {
		e.t.Fatalf("instead of a message comes %+v", c)
	}
	if err := e.dev.Deregister(mr); err != nil {
		e.t.Fatal(err)
	}
}

func (e *end) tellRping(base, key uint64, size int) {
	e.t.Helper()
	wr := rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Inline, HeadLen: rpingOffer}
	binary.BigEndian.PutUint64(wr.Head[0:], base)
	binary.BigEndian.PutUint32(wr.Head[8:], uint32(key))
	binary.BigEndian.PutUint32(wr.Head[12:], uint32(size))
	if n, err := e.qp.PostSend([]rdma.SendWR{wr}); n != 1 || err != nil {
		e.t.Fatalf("post a message for rping: %d, %v", n, err)
	}
}

func TestTheDeviceIsRpingsServer(t *testing.T) {
	const rounds = 3
	for _, p2p := range []bool{false, true} {
		for _, size := range []int{64, 50000} {
			t.Run(fmt.Sprintf("p2p=%v/%d", p2p, size), func(t *testing.T) {
				e := newEnd(t, Config{})
				at, _, _, err := parseAddr(e.qp.Addr())
				if err != nil {
					t.Fatal(err)
				}
				client := make(chan error, 1)
				go func() { client <- runRpingClient(at.String(), p2p, rounds, size) }()
				ctx, cancel := context.WithTimeout(context.Background(), rpingLimit)
				defer cancel()
				if err := e.qp.Connect(ctx, Anybody); err != nil {
					t.Fatal(err)
				}
				for round := range rounds {
					data := e.moveRping(rdma.OpRead, make([]byte, size))
					if !bytes.Equal(data, rpingData(round, size)) {
						t.Fatalf("round %d: read %q", round, data)
					}
					e.moveRping(rdma.OpWrite, data)
				}
				if err := <-client; err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func runRpingClient(address string, p2p bool, rounds, size int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := dialRping(conn, rpingWishes(true, false, p2p), 0)
	if err != nil {
		return err
	}
	return p.client(rounds, size)
}

// moveRping waits for where the client's buffer is, reads or writes it, and says so.
func (e *end) moveRping(op rdma.Op, data []byte) []byte {
	e.t.Helper()
	pollUntil(e.t, "the client has said where its buffer is", func() bool { return len(e.got) > 0 }, e)
	offer := e.got[0].Data.Bytes()
	e.got = nil
	if len(offer) != rpingOffer || binary.BigEndian.Uint32(offer[12:]) != uint32(len(data)) {
		e.t.Fatalf("the client says %x", offer)
	}
	wr := rdma.SendWR{ID: 7, Op: op, Body: rdma.MemOf(data), Remote: binary.BigEndian.Uint64(offer), RKey: uint64(binary.BigEndian.Uint32(offer[8:]))}
	if n, err := e.qp.PostSend([]rdma.SendWR{wr}); n != 1 || err != nil {
		e.t.Fatalf("post a %v: %d, %v", op, n, err)
	}
	pollUntil(e.t, "the access has completed", func() bool { return len(e.got) > 0 }, e)
	if c := e.got[0]; c.ID != 7 || c.Status != rdma.StatusOK || c.Len != uint64(len(data)) {
		e.t.Fatalf("a %v of %d bytes completes as %+v", op, len(data), c)
	}
	e.got = nil
	e.tellRping(0, 0, 0)
	return data
}

// TestAPeerThatAnswersNoReads can be written to, and a Read says that it cannot be.
func TestAPeerThatAnswersNoReads(t *testing.T) {
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
		t.Errorf("the peer says %v, and what was written is not there", err)
	}
}

// takeOneWrite is a peer with a read depth of 0 that waits for the message behind a
// Write.
func takeOneWrite(address string, mem []byte, offered chan<- ddp.Tag) error {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	w := rpingWishes(true, false, true)
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
