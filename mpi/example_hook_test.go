package mpi_test

import (
	"fmt"
	"log"
	"sync"

	"github.com/muster-mpi/muster/mpi"
)

// byteCounter counts the bytes that the program sends, for each destination.
type byteCounter struct {
	mu   sync.Mutex
	sent map[int]int
}

func (b *byteCounter) Begin(c mpi.Call) uint64 {
	if c.Kind == mpi.CallSend || c.Kind == mpi.CallSendrecv {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sent[c.World(c.Peer)] += c.Bytes
	}
	return 0
}

func (b *byteCounter) End(uint64, mpi.Status, error)               {}
func (b *byteCounter) Complete(_, _ uint64, _ mpi.Status, _ error) {}

// A tool counts the bytes that each rank is sent.
func ExampleHook() {
	b := &byteCounter{sent: map[int]int{}}
	worlds, err := mpi.Local(3, &mpi.Config{Hook: b})
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, w := range worlds {
		wg.Go(func() {
			c := w.Comm()
			next, previous := (c.Rank()+1)%3, (c.Rank()+2)%3
			if _, err := mpi.Sendrecv(c, make([]float64, 1+c.Rank()), next, 0, make([]float64, 3), previous, 0); err != nil {
				log.Fatal(err)
			}
			if err := w.Finalize(); err != nil {
				log.Fatal(err)
			}
		})
	}
	wg.Wait()
	fmt.Println(b.sent)
	// Output: map[0:24 1:8 2:16]
}
