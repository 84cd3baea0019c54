package hybrid

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformanceStrict runs the suite with memory that must be registered with the device
// that carries it, while peers move from one to the other.
func TestConformanceStrict(t *testing.T) {
	rdmatest.NeedLocking(t)
	if raceDetector {
		t.Skip("same code as TestConformance, and the race detector is slow")
	}
	exclude := map[string]string{"lend-never-runs-out": "long, and sends only inline", "close-ends-access": "long, and about the sockets"}
	for _, v := range []struct {
		name string
		cfg  Config
	}{
		{"rd", Config{Channel: Datagrams, Strict: true}},
		{"rc", Config{Channel: Connections, Strict: true}},
		{"rc with own buffers", Config{Channel: Connections, ConnectionBuffers: 8, Strict: true}},
	} {
		if testing.Short() && v.name != "rc" {
			continue // it executes all of the code
		}
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Exclude: exclude, Reset: resets(&v.cfg), Unconnected: unconnected, Open: func(t testing.TB, n int) []rdma.Device {
			var list []rdma.Device
			for i := range n {
				cfg := v.cfg
				cfg.Name = uint32(i)
				list = append(list, openTest(t, cfg))
			}
			return list
		}})
	}
}

func TestLocalKeysFollowTheDevice(t *testing.T) {
	var l locals
	a, b := l.add([paths]uint32{1, 2}), l.add([paths]uint32{3, 4})
	if a == 0 || b == 0 || a == b {
		t.Fatalf("the keys are %d and %d", a, b)
	}
	if l.key(a, byConnection) != 2 || l.key(b, byDatagram) != 3 {
		t.Errorf("key %d is %d by connection, key %d is %d by datagram", a, l.key(a, byConnection), b, l.key(b, byDatagram))
	}
	l.remove(a)
	l.remove(a) // a second time has no effect
	if l.key(a, byDatagram) != 0 || l.key(99, byDatagram) != 0 || l.key(0, byDatagram) != 0 {
		t.Error("an invalid key names memory")
	}
	if c := l.add([paths]uint32{5, 6}); c != a || l.add([paths]uint32{7, 8}) == a {
		t.Errorf("the slot of a removed key is not reused once: %d", c)
	}
}
