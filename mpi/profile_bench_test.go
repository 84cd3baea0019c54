package mpi_test

import (
	"path/filepath"
	"testing"

	"github.com/muster-mpi/muster/internal/cputime"
	"github.com/muster-mpi/muster/mpi"
)

// BenchmarkProfiledSend measures a call with and without the profile of calls. The rank
// sends to itself, so that no other rank takes part.
func BenchmarkProfiledSend(b *testing.B) {
	for _, profile := range []string{"", filepath.Join(b.TempDir(), "p.json")} {
		name := "off"
		if profile != "" {
			name = "on"
		}
		b.Run(name, func(b *testing.B) {
			worlds, err := mpi.Local(1, &mpi.Config{Profile: profile})
			if err != nil {
				b.Fatal(err)
			}
			c := worlds[0].Comm()
			buf, in := make([]byte, 8), make([]byte, 8)
			b.ReportAllocs()
			before, _ := cputime.Used() // other programs may use the cores, too
			for b.Loop() {
				if _, err := mpi.Sendrecv(c, buf, 0, 0, in, 0, 0); err != nil {
					b.Fatal(err)
				}
			}
			if after, ok := cputime.Used(); ok {
				b.ReportMetric(float64(after-before)/float64(b.N), "cpu-ns/op")
			}
			if err := worlds[0].Finalize(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
