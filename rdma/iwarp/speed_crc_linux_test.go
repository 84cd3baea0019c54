//go:build !muster_portable

package iwarp

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// BenchmarkShareOfCRC reports the processor time of a transfer, both ends in one thread, with
// and without CRC in alternating rounds, and the share of the CRC in percent.
func BenchmarkShareOfCRC(b *testing.B) {
	const bytes = 4 << 20 // of a round
	for _, size := range []int{8 << 10, 64 << 10, 1 << 20} {
		for _, op := range []rdma.Op{rdma.OpSend, rdma.OpWrite, rdma.OpRead} {
			if op == rdma.OpSend && size > 32<<10 || op != rdma.OpSend && size < 32<<10 {
				continue // short messages are sent, long ones are read or written
			}
			b.Run(fmt.Sprintf("%d/%v", size, op), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var rounds [2]func() time.Duration
				count := bytes / size
				for i, cfg := range []Config{{}, {NoCRC: true}} {
					if op == rdma.OpSend {
						count = bytes / size / 2
						rounds[i] = pairEcho(b, cfg, size, count).onOneThread(b)
						count *= 2
						continue
					}
					rounds[i] = pairStream(b, cfg, op, size, count).onOneThread(b)
				}
				var times [2][]float64
				for range max(b.N, 50) {
					for i, round := range rounds {
						times[i] = append(times[i], float64(round().Nanoseconds())/1e3/float64(count))
					}
				}
				slices.Sort(times[0])
				slices.Sort(times[1])
				with, without := times[0][len(times[0])/2], times[1][len(times[1])/2]
				b.ReportMetric(with, "crc-us")
				b.ReportMetric(without, "us")
				b.ReportMetric(100*(with-without)/with, "%crc")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
