package iwarp

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

// ends is why refusals end the connection to a peer. The peer discards what follows the
// Terminate message, and the sockets have accepted some of it: a new connection would lose
// these messages silently.
const ends = "RFC 5040 section 5.4 ends the stream, and a mesh does not replace a connection"

// TestMeshConformance runs the suite over a mesh.
func TestMeshConformance(t *testing.T) {
	for _, v := range []struct {
		name string
		cfg  Config
	}{
		{"crc", Config{MaxTransfer: 6 << 20}},
		{"bare", Config{NoCRC: true}},
		{"own buffers", Config{ConnectionBuffers: 32, MaxSend: 16 << 10, NoCRC: true}},
		{"encrypted", Config{Encrypt: true, Key: []byte("k")}},
	} {
		rdmatest.Run(t, rdmatest.Fixture{Name: v.name, Ends: ends, Reset: rdmatest.ResetLoopback, Open: func(t testing.TB, n int) []rdma.Device {
			var list []rdma.Device
			for i := range n {
				d, err := OpenMesh(v.cfg, uint32(i))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := d.Close(); err != nil {
						t.Errorf("close the device: %v", err)
					}
				})
				list = append(list, d)
			}
			return list
		}})
	}
}
