//go:build !muster_portable

package iwarp

import (
	"bytes"
	"errors"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

// TestInlineIntoFullSocket posts long inline bodies until the socket accepts no more, and
// changes the memory after each: the peer receives what was posted, including the part
// that had to wait.
func TestInlineIntoFullSocket(t *testing.T) {
	for name, cfg := range map[string]Config{
		"plain": {NoThread: true, NoCRC: true}, "summed": {NoThread: true}, "encrypted": encrypted,
	} {
		t.Run(name, func(t *testing.T) {
			a, b := settled(t, cfg)
			q := a.qp.(*queuePair)
			body := make([]byte, maxInline)
			posted := 0
			for ; ; posted++ {
				for i := range body {
					body[i] = byte(posted + 1)
				}
				n, err := a.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Inline, Body: rdma.MemOf(body)}})
				if n == 0 {
					if !errors.Is(err, rdma.ErrAgain) {
						t.Fatal(err)
					}
					break
				}
			}
			clear(body)
			kept := 0
			for i := range q.works.list {
				if q.works.list[i].kept != nil {
					kept++
				}
			}
			if q.works.count < q.works.depth && kept != 1 {
				t.Errorf("a full socket makes %d copies", kept)
			}
			pollUntil(t, "all have arrived", func() bool { return len(b.got) == posted }, a, b)
			for i, c := range b.got {
				if want := bytes.Repeat([]byte{byte(i + 1)}, maxInline); !bytes.Equal(c.Data.Bytes(), want) {
					t.Fatalf("message %d of %d is not what was posted", i, posted)
				}
			}
			for i := range q.works.list {
				if q.works.list[i].kept != nil {
					t.Errorf("the copy of work %d was not released", i)
				}
			}
		})
	}
}
