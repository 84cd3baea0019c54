package hybrid

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// TestConformanceStrict runs the suite where memory must be registered with the device
// that carries it, whichever that is, while peers move from one to the other.
func TestConformanceStrict(t *testing.T) {
	rdmatest.NeedLocking(t)
	if raceDetector {
		t.Skip("it is the code of TestConformance, and the detector is slow")
	}
	exclude := map[string]string{"lend-never-runs-out": "it is long, and sends inline alone", "close-ends-access": "it is long, and about the sockets"}
	for _, v := range []struct {
		name string
		cfg  Config
	}{
		{"rd", Config{Channel: Datagrams, Strict: true}},
		{"rc", Config{Channel: Connections, Strict: true}},
		{"rc with own buffers", Config{Channel: Connections, ConnectionBuffers: 8, Strict: true}},
	} {
		if testing.Short() && v.name != "rc" {
			continue // it goes through all of the code
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
	l.remove(a) // a second time changes nothing
	if l.key(a, byDatagram) != 0 || l.key(99, byDatagram) != 0 || l.key(0, byDatagram) != 0 {
		t.Error("a key that nobody has names memory")
	}
	if c := l.add([paths]uint32{5, 6}); c != a || l.add([paths]uint32{7, 8}) == a {
		t.Errorf("the place of a key that was given up is not used once: %d", c)
	}
}
