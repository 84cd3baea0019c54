//go:build !muster_portable

package mpi

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/muster-mpi/muster/internal/engine"
	"github.com/muster-mpi/muster/rdma"
)

// A rank that uses guessed memory keys is treated as failed, with an error that names it.
func TestInvalidKeyNamesRank(t *testing.T) {
	for _, name := range []string{"PMI_FD", "PMI_PORT", "PMIX_RANK", "MUSTER_ROOT"} { // as mpitest.Launched
		if os.Getenv(name) != "" {
			t.Skip("a world of its own, which every rank of a job would make")
		}
	}
	for _, channel := range []string{"rd", "rc", "ud"} {
		t.Run(channel, func(t *testing.T) {
			worlds, err := Local(2, &Config{Network: softwareNetwork, NoSharedMemory: true, Channel: channel})
			if err != nil {
				t.Fatal(err)
			}
			guesser := make(chan struct{})
			go func() {
				defer close(guesser)
				guessAtMemory(t, worlds[1].Comm())
			}()
			errs := make(chan error, 1)
			go func() {
				c := worlds[0].Comm()
				if _, err := CreateWin(c, make([]byte, 64)); err != nil {
					t.Error(err)
				}
				_, err := Recv(c, make([]byte, 1), 1, 0)
				errs <- err
			}()
			select {
			case err := <-errs:
				var e *Error
				if !errors.As(err, &e) || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), "memory") {
					t.Errorf("the victim is errs: %v", err)
				}
			case <-time.After(30 * time.Second):
				t.Error("the victim waits for a rank that guesses at its memory")
			}
			failLocal(worlds, 0, "it has given up rank 1")
			<-guesser
			for _, w := range worlds {
				if err := w.e.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// guessAtMemory puts to rank 0 with guessed keys, of 32 bits as valid ones have.
func guessAtMemory(t *testing.T, c *Comm) {
	w, err := CreateWin(c, make([]byte, 64))
	if err != nil {
		t.Error(err)
		return
	}
	if err := w.Lock(0, LockShared); err != nil {
		t.Error(err)
		return
	}
	for i := uint64(1); i < 200; i++ {
		w.far.SetMemory(0, engine.WindowMemory{Far: rdma.MR{Base: 4096, Len: 1 << 20, RKey: uint64(uint32(i * 0x9E3779B9))}})
		if err := w.Put([]byte{1}, 0, 0); err != nil {
			return
		}
		if err := w.Flush(0); err != nil && !strings.Contains(err.Error(), rdma.StatusRemoteAccess.String()) {
			return // given up
		}
	}
}
