//go:build !linux

package soft

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"

	"github.com/muster-mpi/muster/rdma"
)

// Other systems have no device yet: batches and events use system calls that only Linux
// has.

type rawAddress struct{ id rdma.PeerID }

func rawOfPeer(id rdma.PeerID) rawAddress { return rawAddress{id} }

func (r *rawAddress) peer() rdma.PeerID { return r.id }

func rawOf(netip.AddrPort) rawAddress { return rawAddress{} }

func (*rawAddress) addrPort() netip.AddrPort { return netip.AddrPort{} }

type socket struct {
	local              netip.AddrPort
	batching, cameLast bool
	bulk               uint8
}

const readable = 0

func openSocket(netip.AddrPort, int) (*socket, error) {
	return nil, fmt.Errorf("rdma/soft needs Linux, not %s: %w", runtime.GOOS, rdma.ErrUnsupported)
}

func (*socket) reaches(netip.AddrPort) bool         { return false }
func (*socket) allowRuns(int)                       {}
func (*socket) runs() bool                          { return false }
func (*socket) maxMessages() int                    { return batchSize }
func (*socket) receiveOne(*slot) bool               { return false }
func (*socket) receive([]*slot) int                 { return 0 }
func (*socket) peeks() bool                         { return false }
func (*socket) lookAt(int, []byte) bool             { return false }
func (*socket) look([]byte) (n, whole int)          { return 0, 0 }
func (*socket) receiveInto(*slot, int, []byte) bool { return false }
func (*socket) send([]packet) (n int, full bool)    { return 0, true }
func (*socket) refusals(func(netip.AddrPort, bool)) {}
func (*socket) source() (int, *atomic.Bool)         { return -1, nil }
func (*socket) close() error                        { return nil }
