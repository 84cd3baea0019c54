package soft

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-mpi/muster/rdma"
)

// What encryption costs beside the cipher. Both ends of a device alternate in one thread,
// whose processor time hardly depends on the load of the machine; and in the same rounds
// the cipher of crypto/cipher seals and opens the same number of bytes.

func BenchmarkEncryptedWrite(b *testing.B) {
	for _, v := range []struct {
		name string
		c    Config
	}{
		{"loopback", Config{}},
		{"ethernet", Config{Datagram: ethernetDatagram}},
		{"ethernet-apart", Config{Datagram: ethernetDatagram, NoRuns: true}},
	} {
		b.Run(v.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			secret := v.c
			secret.Encrypt = true
			plain, encrypted := newWriter(b, v.c), newWriter(b, secret)
			var times [3][]time.Duration
			for range max(b.N, 40) {
				for i, f := range []func(){plain.give, encrypted.give, func() { sealAndOpen(b, 16<<10, megabytes<<20) }} {
					begun := threadTime()
					f()
					times[i] = append(times[i], threadTime()-begun)
				}
			}
			perByte := func(t []time.Duration) float64 { return fastest(t).Seconds() / (megabytes << 20) }
			p, e, c := perByte(times[0]), perByte(times[1]), perByte(times[2])
			b.ReportMetric(1e-6/p, "plain-MB/s")
			b.ReportMetric(1e-6/e, "encrypted-MB/s")
			b.ReportMetric(2e-6/c, "cipher-MB/s")
			b.ReportMetric((p+c)/e, "×possible")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkCipher compares the cipher's speed at the lengths of a packet and of a run.
func BenchmarkCipher(b *testing.B) {
	for _, n := range []int{64, 1400, 16 << 10, 64 << 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(2 << 20)
			for b.Loop() {
				sealAndOpen(b, n, 1<<20)
			}
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
	text, sealed, nonce, header := make([]byte, piece), make([]byte, 0, piece+tagLen), make([]byte, nonceLen), make([]byte, headerLen)
	for done := 0; done < all; done += piece {
		sealed = aead.Seal(sealed[:0], nonce, text, header)
		if _, err := aead.Open(text[:0], nonce, sealed, header); err != nil {
			tb.Fatal(err)
		}
	}
}

// writer writes megabytes from one device to another, in the thread of the caller.
type writer struct{ *devicePlayer }

func newWriter(tb testing.TB, c Config) writer {
	c.NoThread = true
	return writer{newDevicePlayerOf(tb, rdma.RD, c)}
}

func (w writer) give() {
	for posted, ended := 0, 0; ended < megabytes; {
		if posted < megabytes && posted-ended < underWayAtOnce {
			w.wr[0][0] = rdma.SendWR{Op: rdma.OpWrite, Peer: w.peer[0], Body: rdma.MemOf(w.body[0]), Remote: w.reg[1].Base, RKey: w.reg[1].RKey}
			w.post(0)
			posted++
		}
		w.cq[1].Poll(w.out[1][:])
		for _, c := range w.out[0][:w.cq[0].Poll(w.out[0][:])] {
			if c.Status != rdma.StatusOK {
				panic(c.Status.Err())
			}
			ended++
		}
	}
}

// threadTime returns the processor time of the thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}
