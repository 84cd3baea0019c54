package advise

import (
	"testing"

	"github.com/muster-mpi/muster/internal/trace"
)

// A rank packs each message for 30 of 100 ns, and the other waits for it.
func TestPackedMessages(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		for i := range int64(5) {
			switch r.Rank {
			case 0:
				send(r, 1, 4096, "a.go:1", i*100+90, i*100+100)
				r.Events[len(r.Events)-1].Packing = 30
			case 1:
				recv(r, 0, 4096, "a.go:2", i*100, i*100+100)
			}
		}
	}))
	only(t, all, "layout packed at each call", "a.go:1", .3)
	predicted(t, all[0], 500, 350)
}

// What a wait unpacks is the data of the receive.
func TestUnpackedMessages(t *testing.T) {
	all := Find(job4(func(r *trace.Rank) {
		for i := range int64(5) {
			switch r.Rank {
			case 0:
				send(r, 1, 4096, "a.go:1", i*100+50, i*100+60)
			case 1:
				recv(r, 0, 4096, "a.go:2", i*100, i*100+10)
				e := &r.Events[len(r.Events)-1]
				e.Starts, e.By = true, int32(len(r.Events))
				call(r, "Wait", "wait", "a.go:3", i*100+40, i*100+100).Packing = 20
			}
		}
	}))
	only(t, all, "layout packed at each call", "a.go:2", .2)
	predicted(t, all[0], 500, 480) // the sender is on time only by its own computation
}
