package soft

import (
	"reflect"
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/reliable"
)

// TestIdlePeerIsSmall checks the size that the documentation promises.
func TestIdlePeerIsSmall(t *testing.T) {
	// The map entry counts twice because maps keep spare room.
	name := reflect.TypeFor[uint64]().Size() + reflect.TypeFor[rdma.PeerID]().Size()
	size := reflect.TypeFor[peer]().Size() + reflect.TypeFor[address]().Size() + 2*name
	t.Logf("%d bytes, %d of them for the conversation", size, reflect.TypeFor[peer]().Size())
	if n := reflect.TypeFor[peer]().Size(); n > 320 {
		t.Errorf("the state of a peer takes %d bytes, want at most 320", n)
	}
	if size > 512 {
		t.Errorf("an idle peer costs %d bytes, want at most 512", size)
	}
	pool := reliable.NewPool[posted](runParams(ethernetDatagram, 1000, true, false))
	two := newPeer(pool)
	two.AddPaths(2)
	size = reflect.TypeFor[peer]().Size() + uintptr(two.PathMemory()) + reflect.TypeFor[address]().Size() + 2*reflect.TypeFor[endpoint]().Size() + 2*name
	if t.Logf("%d bytes on two paths", size); size > 1024 {
		t.Errorf("an idle peer on two paths costs %d bytes, want at most 1024", size)
	}
	if newPeer(pool); pool.Memory() != 0 {
		t.Error("a new peer has memory for segments in flight")
	}
}
