package advise

import (
	"flag"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/trace"
)

var (
	scaleRanks = flag.Int("scale.ranks", 64, "ranks of TestLongTrace")
	scaleCalls = flag.Int("scale.calls", 2000, "calls of each rank of TestLongTrace")
	scaleMost  = flag.Int("scale.most", 1<<16, "calls of all ranks that TestLongTrace keeps; muster advise keeps 12582912")
)

// writeLong writes a trace of ranks that exchange with their neighbors in a ring and then add up.
func writeLong(out io.Writer, ranks, calls int) error {
	if _, err := io.WriteString(out, trace.Header); err != nil {
		return err
	}
	var text []byte
	for r := range ranks {
		k := &trace.Rank{Rank: r, Host: string(rune('a' + r%16)), Comms: world}
		for i := range calls {
			at := int64(i) * 1000
			switch i % 4 {
			case 0, 1:
				to, from := (r+1)%ranks, (r+ranks-1)%ranks
				e := call(k, "Sendrecv", "sendrecv", "halo.go:10 (main.exchange)", at, at+400)
				e.Sends, e.Peer, e.Tag, e.Bytes, e.From, e.FromTag, e.FromBytes = true, int32(to), int32(i%4), 64<<10, int32(from), int32(i%4), 64<<10
			case 2:
				send(k, (r+1)%ranks, 8, "halo.go:20 (main.notify)", at, at+100)
			default:
				late := int64(0)
				if r == 3 {
					late = 300
				}
				call(k, "Allreduce", "collective", "halo.go:30 (main.sum)", at+late, at+500).Bytes = 8
			}
		}
		k.Number()
		text = trace.Append(text[:0], k)
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, trace.Footer)
	return err
}

// TestLongTrace gives advice for a trace of which only a part is kept:
//
//	go test ./internal/advise -run LongTrace -v -args -scale.ranks 1024 -scale.calls 10000 -scale.most 12582912
func TestLongTrace(t *testing.T) {
	in, out := io.Pipe()
	go func() { out.CloseWithError(writeLong(out, *scaleRanks, *scaleCalls)) }()
	debug.SetMemoryLimit(1600 << 20) // as muster advise
	began := time.Now()
	tr, err := trace.ReadPart(in, *scaleMost)
	if err != nil {
		t.Fatal(err)
	}
	read := time.Since(began)
	all := Find(tr)
	if len(all) == 0 || len(tr.Ranks) != *scaleRanks {
		t.Errorf("%d ranks, found %+v", len(tr.Ranks), all)
	}
	if len(Propose(tr)) == 0 {
		t.Error("no setting to try for long messages between hosts")
	}
	memory := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(memory)
	status, _ := os.ReadFile("/proc/self/status") // other systems do not have it
	_, most, _ := strings.Cut(string(status), "VmHWM:")
	most, _, _ = strings.Cut(strings.TrimSpace(most), "\n")
	t.Logf("%d ranks with %d calls each: read in %v, advice after %v, %d MB of memory, at most %s; %d findings", *scaleRanks, *scaleCalls, read, time.Since(began), (memory[0].Value.Uint64()-memory[1].Value.Uint64())>>20, most, len(all))
	for _, f := range all {
		t.Logf("%s, %.1f %%: %s; %+v", f.Problem, 100*f.Gain, f.Evidence, f.Prediction)
	}
}
