//go:build ofi && cgo && linux

package ofi

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// Adapters accept a few megabytes in one operation. Here the limit is lower, so that it
// can be reached with any provider.
func TestLongTransfersAreSplit(t *testing.T) {
	const part = 1000
	for _, provider := range []string{"net", "tcp;ofi_rxm"} {
		t.Run(provider, func(t *testing.T) {
			cfg := Config{Provider: provider, Peers: 2, Job: fmt.Sprintf("parts %p", t)}
			a := mustCut(t, cfg, part)
			cfg.Index = 1
			b := mustCut(t, cfg, part)
			peer, err := a.meet(b)
			if err != nil {
				t.Fatal(err)
			}
			there := make([]byte, 10*part)
			mr, err := b.dev.Register(there, rdma.RemoteRead|rdma.RemoteWrite)
			if err != nil {
				t.Fatal(err)
			}
			for i, size := range []int{1, part - 1, part, part + 1, 2 * part, 7*part + 123, 10 * part} {
				for _, op := range []rdma.Op{rdma.OpWrite, rdma.OpRead} {
					here := bytes.Repeat([]byte{byte(10 + i)}, size)
					clear(there)
					if op == rdma.OpRead {
						for j := range there {
							there[j] = byte(j * 7)
						}
					}
					if err := a.post(rdma.SendWR{ID: 7, Op: op, Peer: peer, Body: rdma.MemOf(here), Remote: mr.Base, RKey: mr.RKey}); err != nil {
						t.Fatal(err)
					}
					c, err := a.next(b)
					if err != nil || c.ID != 7 || c.Op != op || c.Status != rdma.StatusOK || c.Len != uint64(size) {
						t.Fatalf("%v of %d bytes ends with %+v, %v", op, size, c, err)
					}
					if !bytes.Equal(here, there[:size]) {
						t.Errorf("%v of %d bytes in parts of %d transfers the wrong bytes", op, size, part)
					}
					if op == rdma.OpWrite && bytes.ContainsAny(there[size:], string([]byte{byte(10 + i)})) {
						t.Errorf("a write of %d bytes exceeds its end", size)
					}
				}
			}
			if err := b.dev.Deregister(mr); err != nil {
				t.Error(err)
			}
		})
	}
}
