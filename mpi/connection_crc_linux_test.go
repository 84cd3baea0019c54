//go:build !muster_portable

package mpi_test

import (
	"testing"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpitest"
	"github.com/muster-mpi/muster/prof"
	"github.com/muster-mpi/muster/rdma"
)

// TestConnectionCRC checks that connections have a CRC only if Advanced.ConnectionCRC requests
// it, and never on top of encryption.
func TestConnectionCRC(t *testing.T) {
	for _, v := range []struct {
		name         string
		crc, encrypt bool
		want         uint64
	}{{"off", false, false, 0}, {"on", true, false, 1}, {"encrypted", true, true, 0}} {
		t.Run(v.name, func(t *testing.T) {
			cfg := &mpi.Config{Network: "iwarp", NoSharedMemory: true, Channel: "rc", Encrypt: v.encrypt, Advanced: mpi.Advanced{ConnectionCRC: v.crc}}
			mpitest.RunConfig(t, 2, cfg, func(t *testing.T, c *mpi.Comm) {
				if err := c.Barrier(); err != nil {
					t.Fatal(err)
				}
				p := c.World().Profile()
				if open, crc := p.Of(prof.Name(rdma.ConnectionsRC)), p.Of(prof.Name(rdma.ConnectionsCRC)); open != 1 || crc != v.want {
					t.Errorf("%d of %d connections have a CRC; want %d of 1", crc, open, v.want)
				}
			})
		})
	}
}
