package udrel

import (
	"testing"

	"github.com/muster-mpi/muster/rdma"
	"github.com/muster-mpi/muster/rdma/internal/guard"
	"github.com/muster-mpi/muster/rdma/rdmatest"
)

func TestKeyGuessing(t *testing.T) {
	rdmatest.RunGuesses(t, guard.MaxStrikes, func(t testing.TB, n int) (list []rdma.Device) {
		for _, below := range openDgram(t, n) {
			list = append(list, openTest(t, Config{Device: below}))
		}
		return list
	})
}

// TestKeysAreNotConsecutive: one key must reveal nothing about the next.
func TestKeysAreNotConsecutive(t *testing.T) {
	d := openTest(t, Config{Device: openDgram(t, 1)[0]})
	seen := map[uint64]bool{}
	var last uint64
	for range 200 {
		mr, err := d.Register(make([]byte, 8), rdma.RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		if secret := mr.RKey; seen[secret] || secret-last+8 < 16 {
			t.Fatalf("a key is %#x after %#x", secret, last)
		} else {
			seen[secret], last = true, secret
		}
	}
}
