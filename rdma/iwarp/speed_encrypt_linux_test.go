//go:build !muster_portable

package iwarp

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// BenchmarkEncryptedBandwidth is what encryption costs beside the cipher. Both ends alternate
// in one thread, and in the same rounds the cipher of crypto/cipher seals and opens as many
// bytes.
func BenchmarkEncryptedBandwidth(b *testing.B) {
	const size, count = 1 << 20, 16
	for _, op := range []rdma.Op{rdma.OpWrite, rdma.OpRead} {
		b.Run(fmt.Sprint(op), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			configs := speedConfigs()
			plain, encrypted := pairStream(b, noThread(configs["crc"]), op, size, count), pairStream(b, noThread(configs["tls"]), op, size, count)
			bare := &traffic{step: func() { sealAndOpen(b, 16<<10, size*count) }}
			var times [3][]time.Duration
			for range max(b.N, 40) {
				for i, w := range []*traffic{plain, encrypted, bare} {
					times[i] = append(times[i], w.onOneThread(b)())
				}
			}
			var perByte [3]float64
			for i, t := range times {
				slices.Sort(t)
				perByte[i] = t[len(t)/10].Seconds() / (size * count)
			}
			p, e, c := perByte[0], perByte[1], perByte[2]
			b.ReportMetric(1e-6/p, "plain-MB/s")
			b.ReportMetric(1e-6/e, "encrypted-MB/s")
			b.ReportMetric(2e-6/c, "cipher-MB/s")
			b.ReportMetric((p+c)/e, "×possible")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// sealAndOpen encrypts and decrypts so many bytes, in pieces of a length.
func sealAndOpen(tb testing.TB, piece, all int) {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		tb.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		tb.Fatal(err)
	}
	text, sealed, nonce := make([]byte, piece), make([]byte, 0, piece+aead.Overhead()), make([]byte, aead.NonceSize())
	for done := 0; done < all; done += piece {
		sealed = aead.Seal(sealed[:0], nonce, text, nil)
		if _, err := aead.Open(text[:0], nonce, sealed, nil); err != nil {
			tb.Fatal(err)
		}
	}
}

// noThread returns a configuration without a progress thread, whose time would be missing.
func noThread(cfg Config) Config {
	cfg.NoThread = true
	return cfg
}
