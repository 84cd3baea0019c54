//go:build linux

package soft

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// BenchmarkWork is BenchmarkHalfRoundTrip with one thread at both ends. Nothing waits,
// so it measures the work per message, in the kernel and here, and a busy machine does
// less harm.
func BenchmarkWork(b *testing.B) {
	for _, size := range []int{64, 8192} {
		for _, kind := range []rdma.Transport{rdma.UD, rdma.RD} {
			b.Run(fmt.Sprintf("%v/%d", kind, size), func(b *testing.B) {
				bare, one := newBareUDP(b), newDevicePlayerOf(b, kind, Config{NoCRC: true})
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var mine, theirs []time.Duration
				for b.Loop() {
					start := time.Now()
					for i := range round {
						bare.send(i&1, size)
						bare.look(i & 1)
						bare.receive(1 - i&1)
					}
					middle := time.Now()
					for i := range round {
						one.send(i&1, size)
						one.look(i & 1)
						one.receive(1 - i&1)
					}
					theirs, mine = append(theirs, middle.Sub(start)), append(mine, time.Since(middle))
				}
				b.ReportMetric(float64(fastest(mine))/float64(fastest(theirs)), "×bareUDP")
				b.ReportMetric(float64(fastest(mine).Nanoseconds())/round, "ns/message")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// look finds nothing, like a sender that polls for the reply.
func (u *bareUDP) look(i int) {
	unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(u.fds[i]), uintptr(unsafe.Pointer(&u.buffer[i][0])), maxDatagram, unix.MSG_DONTWAIT, 0, 0)
}

func (p *devicePlayer) look(i int) { p.cq[i].Poll(p.out[i][:]) }
