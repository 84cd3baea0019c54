package hybrid

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/iwarp"
	"github.com/muster-mpi/muster/rdma/soft"
)

// BenchmarkPingPong shows the overhead of combining two devices: a round trip of some
// lengths over this device, next to one over the device below. One goroutine polls both
// ends, so it measures the work, not wake-ups.
func BenchmarkPingPong(b *testing.B) {
	key := []byte("the key of the test")
	hybrid := func(c Config) func(testing.TB) rdma.Device {
		return func(t testing.TB) rdma.Device { return openTest(t, c) }
	}
	for _, v := range []struct {
		name string
		open func(testing.TB) rdma.Device
	}{
		{"dgram", func(t testing.TB) rdma.Device {
			d, err := soft.Open(soft.Config{Bind: netip.MustParseAddrPort("127.0.0.1:0"), JobKey: key})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}},
		{"hybrid unmoved", hybrid(Config{BusyAfter: 1 << 30})},
		{"iwarp", func(t testing.TB) rdma.Device {
			d, err := iwarp.Open(iwarp.Config{Key: key})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}},
		{"at once", hybrid(Config{CountMessages: true, BusyAfter: 1})},
		{"hybrid moved", hybrid(Config{CountMessages: true, BusyAfter: 32})},
	} {
		for _, size := range []int{8, 2 << 10, 8 << 10, 48 << 10} {
			b.Run(fmt.Sprintf("%s/%d", v.name, size), func(b *testing.B) {
				ends := [2]rdma.Device{v.open(b), v.open(b)}
				pingPong(b, ends, size)
				for _, d := range ends {
					_ = d.Close() // the cleanup of openTest closes it again, which is harmless
				}
			})
		}
	}
}

func pingPong(b *testing.B, ends [2]rdma.Device, size int) {
	kind := rdma.RD
	if ends[0].Attr().Transports&kind == 0 {
		kind = rdma.RC
	}
	var cqs [2]rdma.CQ
	var qps [2]rdma.QP
	for i, d := range ends {
		cq, err := d.NewCQ(0)
		if err != nil {
			b.Fatal(err)
		}
		srq, err := d.NewSRQ(rdma.SRQConfig{Lend: true})
		if err != nil {
			b.Fatal(err)
		}
		if qps[i], err = d.NewQP(rdma.QPConfig{Type: kind, SendCQ: cq, RecvCQ: cq, SRQ: srq}); err != nil {
			b.Fatal(err)
		}
		cqs[i] = cq
	}
	var wrs [2][1]rdma.SendWR
	var wg sync.WaitGroup
	for i := range ends {
		wrs[i][0] = rdma.SendWR{Op: rdma.OpSend, HeadLen: 8, Body: rdma.MemOf(make([]byte, size-8))}
		if size <= 256 {
			wrs[i][0].Flags = rdma.Inline
		}
		if kind == rdma.RC {
			wg.Go(func() {
				if err := qps[i].Connect(context.Background(), qps[1-i].Addr()); err != nil {
					b.Error(err)
				}
			})
			continue
		}
		id, err := ends[i].Resolve(qps[1-i].Addr())
		if err != nil {
			b.Fatal(err)
		}
		wrs[i][0].Peer = id
	}
	wg.Wait()
	var out [16]rdma.Completion
	pass := func(from int) {
		for {
			if n, _ := qps[from].PostSend(wrs[from][:]); n == 1 {
				break
			}
			cqs[from].Poll(out[:])
			cqs[1-from].Poll(out[:])
		}
		for got := false; !got; {
			for _, c := range out[:cqs[1-from].Poll(out[:])] {
				got = got || c.Op == rdma.OpRecv
			}
			if !got {
				cqs[from].Poll(out[:]) // it may have more to send
			}
		}
	}
	for range 3000 { // until the paths have settled
		pass(0)
		pass(1)
	}
	b.ResetTimer()
	for range b.N {
		pass(0)
		pass(1)
	}
}
