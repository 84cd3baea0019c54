//go:build !muster_portable

package iwarp

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// The device against Linux's soft-iWARP, through the provider interface: rping in both
// roles on queue pairs. As in siw_live_test.go, the other side is ours where there is no
// soft-iWARP; then it is the rping of rping_test.go, which shares only the protocol code
// with the device.

var siwDevice = flag.String("siw.device", "", "`address:port` where a device listens for rping -c, and another on the next port; without it our own client connects")

func TestSiwServesOurDevice(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		size int
	}{{Config{}, 64}, {Config{NoCRC: true}, 4000}, {Config{}, 65000}, {Config{NoThread: true}, 1000}} {
		t.Run(fmt.Sprintf("crc=%v/%d", !c.cfg.NoCRC, c.size), func(t *testing.T) {
			address := *siwServer
			if address == "" {
				address = ownServer(t, func(p *rpingPeer) error {
					_, err := p.server()
					return err
				})
			}
			e := openEnd(t, c.cfg)
			e.expectOffers(t, 8)
			ctx, cancel := context.WithTimeout(t.Context(), rpingLimit)
			defer cancel()
			if err := e.qp.Connect(ctx, rdma.Addr(address)); err != nil {
				t.Fatal(err)
			}
			for round := range 4 {
				line, back := rpingData(round, c.size), make([]byte, c.size)
				e.offer(t, line, rdma.RemoteRead)
				e.offer(t, back, rdma.RemoteWrite)
				if !bytes.Equal(line, back) {
					t.Fatalf("round %d: the peer wrote back %q", round, back)
				}
			}
		})
	}
}

func TestSiwClientIsServedByOurDevice(t *testing.T) {
	for i, c := range []struct {
		crc, p2p bool
		size     int // of our own client
	}{{false, true, 4000}, {true, true, 64}, {true, false, 64}, {true, false, 50000}} {
		if *siwDevice != "" && i > 1 {
			break // there are only two clients
		}
		t.Run(fmt.Sprintf("crc=%v/p2p=%v/%d", c.crc, c.p2p, c.size), func(t *testing.T) {
			cfg := Config{NoCRC: !c.crc}
			if *siwDevice != "" {
				at, err := netip.ParseAddrPort(*siwDevice)
				if err != nil {
					t.Fatal(err)
				}
				cfg.Address, cfg.Port = at.Addr().String(), int(at.Port())+i
			}
			e := openEnd(t, cfg)
			e.expectOffers(t, 8)
			if *siwDevice == "" {
				at, _, _, err := parseAddr(e.qp.Addr())
				if err != nil {
					t.Fatal(err)
				}
				client := make(chan error, 1)
				go func() { client <- runRpingClient(at.String(), c.crc, c.p2p, *siwRounds, c.size) }()
				defer func() {
					if err := <-client; err != nil {
						t.Error("our client: ", err)
					}
				}()
			}
			ctx, cancel := context.WithTimeout(t.Context(), rpingLimit)
			defer cancel()
			if err := e.qp.Connect(ctx, Anybody); err != nil {
				t.Fatal(err)
			}
			for round := range *siwRounds {
				e.serve(t, round)
			}
		})
	}
}

func runRpingClient(address string, crc, p2p bool, rounds, size int) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	p, err := dialRping(conn, rpingPreferences(crc, false, p2p), 0)
	if err != nil {
		return err
	}
	return p.client(rounds, size)
}

// expectOffers posts receives for the given number of rping messages.
func (e *deviceEnd) expectOffers(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		if _, err := e.qp.PostRecv([]rdma.RecvWR{{ID: uint64(i), Body: rdma.MemOf(make([]byte, rpingOffer))}}); err != nil {
			t.Fatal(err)
		}
	}
}

// finish waits for the next completion of a kind, which must be successful.
func (e *deviceEnd) finish(t *testing.T, op rdma.Op) rdma.Completion {
	t.Helper()
	until(t, op.String(), func() bool { return len(e.done[op]) > 0 }, e)
	c := e.done[op][0]
	e.done[op] = e.done[op][1:]
	if err := c.Status.Err(); err != nil {
		t.Fatalf("%v: %v", op, err)
	}
	return c
}

// offer sends the address of a buffer to the peer, and waits until it has used it.
func (e *deviceEnd) offer(t *testing.T, buffer []byte, access rdma.Access) {
	t.Helper()
	mr, err := e.dev.Register(buffer, access)
	if err != nil {
		t.Fatal(err)
	}
	message := make([]byte, rpingOffer)
	binary.BigEndian.PutUint64(message[0:], mr.Base)
	binary.BigEndian.PutUint32(message[8:], uint32(mr.RKey))
	binary.BigEndian.PutUint32(message[12:], uint32(len(buffer)))
	e.post(t, rdma.SendWR{Op: rdma.OpSend, Body: rdma.MemOf(message)})
	e.finish(t, rdma.OpSend)
	e.finish(t, rdma.OpRecv)
	if err := e.dev.Deregister(mr); err != nil {
		t.Error(err)
	}
}

// serve runs one round of rping's server: Read, Send, Write, Send.
func (e *deviceEnd) serve(t *testing.T, round int) {
	t.Helper()
	data := []byte(nil)
	for _, op := range []rdma.Op{rdma.OpRead, rdma.OpWrite} {
		offer := e.finish(t, rdma.OpRecv).Data.Bytes()
		size := binary.BigEndian.Uint32(offer[12:])
		if op == rdma.OpRead {
			data = make([]byte, size)
		}
		e.post(t, rdma.SendWR{Op: op, Body: rdma.MemOf(data), Remote: binary.BigEndian.Uint64(offer), RKey: uint64(binary.BigEndian.Uint32(offer[8:]))})
		e.finish(t, op)
		if want := rpingData(round, int(size)); !bytes.Equal(data, want) {
			t.Fatalf("round %d, %v: %q, want %q", round, op, data, want)
		}
		e.post(t, rdma.SendWR{Op: rdma.OpSend, Body: rdma.MemOf(make([]byte, rpingOffer))})
		e.finish(t, rdma.OpSend)
	}
}
