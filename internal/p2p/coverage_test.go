package p2p

// Which events are possible in which stages. The scripts must cover the whole table and
// nothing else. Other combinations are impossible:
//
//   - taken, ACK: only eager sends have a handle in inline packets.
//   - CTS: only a put requests it, and only its sender waits for it, in rts.
//   - FIN: goes to a sender in rts (get; coop and put only if the receiver
//     refuses, or a coop message is empty), to a put's receiver in cts or to
//     that of a speculative message in fill.
//   - REVOKED: is no event; the receive waits in ready or cancelling, or needs it
//     no more.
//   - matched: only directly after an RTS has matched a receive, in matched.
//   - done: completes an RDMA request, so in transfer, or in rts for the push of a coop;
//     for eager packets only failures are reported.
//   - no event reaches an operation in idle or done: its handle is stale. In idle an
//     operation can fail to start.
//
// A packet with such an event fails the link (order_test.go).

import (
	"fmt"
	"path/filepath"
	"sort"
	"testing"

	"github.com/muster-mpi/muster/rdma"
)

var possible = []string{
	"eager idle failed",    // started on a failed link
	"eager posted failed",  // receive that waits for anything
	"eager partial failed", // receive that waits for segments
	"eager post taken", "eager post ACK", "eager post done bad", "eager post failed",
	"eager ack ACK", "eager ack done bad", "eager ack failed",
	"eager acked taken", "eager acked done bad", "eager acked failed",

	"rndv_get idle failed", // registration refused
	"rndv_get rts FIN", "rndv_get rts FIN bad", "rndv_get rts failed",
	"rndv_get matched matched", "rndv_get matched failed",
	"rndv_get transfer done", "rndv_get transfer done bad", "rndv_get transfer failed",

	"rndv_put rts CTS", "rndv_put rts FIN bad", "rndv_put rts failed",
	"rndv_put transfer done", "rndv_put transfer done bad", "rndv_put transfer failed",
	"rndv_put matched matched", "rndv_put matched failed",
	"rndv_put cts FIN", "rndv_put cts FIN bad", "rndv_put cts failed",

	"rndv_coop idle failed", // registration refused
	"rndv_coop rts done", "rndv_coop rts done bad", "rndv_coop rts FIN", "rndv_coop rts FIN bad", "rndv_coop rts failed",
	"rndv_coop matched matched", "rndv_coop matched failed",
	"rndv_coop transfer done", "rndv_coop transfer done bad", "rndv_coop transfer failed",

	"rndv_spec idle failed",   // registration refused
	"rndv_spec ready failed",  // receive with an open RTR
	"eager cancelling failed", // receive that is being cancelled
	"rndv_spec transfer done", "rndv_spec transfer done bad", "rndv_spec transfer failed",
	"rndv_spec matched matched",
	"rndv_spec fill FIN", "rndv_spec fill FIN bad", "rndv_spec fill failed",
}

func TestScriptCoverage(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txt")
	count := map[string]int{}
	for _, file := range files {
		runScript(t, file, func(x *Xfer, ev Event) {
			bad := ""
			if ev.Status != rdma.StatusOK {
				bad = " bad"
			}
			count[fmt.Sprintf("%s %s %s%s", x.Protocol(), x.Stage(), ev.Kind, bad)]++
		})
	}
	for _, p := range possible {
		if count[p] == 0 {
			t.Errorf("no script shows: %s", p)
		}
		delete(count, p)
	}
	var rest []string
	for p := range count {
		rest = append(rest, p)
	}
	sort.Strings(rest)
	for _, p := range rest {
		t.Errorf("a script shows what the table calls impossible: %s", p)
	}
}
