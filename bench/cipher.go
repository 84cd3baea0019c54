package bench

// The cipher of encrypted messages by itself, on one core: what encryption costs at least.

import (
	"crypto/aes"
	"crypto/cipher"
	"time"

	"github.com/muster-mpi/muster/mpi"
)

func cipherBenchmarks() []Benchmark {
	return []Benchmark{{Name: "cipher", Title: "Cipher of Encrypted Messages", Doc: "speed on one core of AES-128-GCM, which encrypts messages (MUSTER_ENCRYPT=on), and the time to seal and open a message", Ranks: 1,
		Sizes: []int{8, 1400, 16 << 10, 1 << 20}, Metric: "bandwidth", Unit: "MB/s", Column: "Bandwidth (MB/s)", Run: cipherSpeed}}
}

// cipherPiece is the longest piece of a message that is sealed at a time, as in TLS (RFC 8446
// section 5.1).
const cipherPiece = 16 << 10

// cipherSpeed: a rank seals a message and opens it again. The bandwidth is that of one of
// the two, because sender and receiver work at the same time; the latency is that of both.
func cipherSpeed(_ *mpi.Comm, p *Params, emit func(Result)) error {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		return err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return err
	}
	var nonce, header [12]byte
	sealed := make([]byte, 0, cipherPiece+aead.Overhead())
	for _, size := range p.Sizes {
		text, opened := buffers(size)
		work := func(times int) error {
			for range times {
				for at := 0; at < size; at += cipherPiece {
					end := min(at+cipherPiece, size)
					sealed = aead.Seal(sealed[:0], nonce[:], text[at:end], header[:])
					if _, err := aead.Open(opened[at:at:end], nonce[:], sealed, header[:]); err != nil {
						return err
					}
				}
			}
			return nil
		}
		warmup, n := p.iterations(size, 100000, 200)
		if err := work(warmup); err != nil {
			return err
		}
		var s samples
		count, each := batches(n)
		for range count {
			start := time.Now()
			if err := work(each); err != nil {
				return err
			}
			s.add(time.Since(start), each)
		}
		emit(s.rates(Result{Size: size, Metric: "bandwidth", Unit: "MB/s"}, 2*float64(size)/1e6))
		emit(s.times(Result{Size: size, Metric: "latency", Unit: "us", Beside: true}, 1))
	}
	return nil
}
