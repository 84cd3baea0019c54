package mpi_test

import (
	"bytes"
	"fmt"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/mpi/inspect"
)

// Payloads of the program below. Each payload repeats to fill its buffer, so that every
// packet with a part of the buffer contains it.
var wiretapMarks = map[string]string{
	"short messages": "MARK-of-SHORTs-1", "further short messages": "MARK-of-RINGs--3", "large messages": "MARK-of-LARGEs-2", "puts": "MARK-of-the-PUTs", "gets": "MARK-of-the-GETs",
	"collectives": "MARK-of-GATHER-5",
}

func marked(what string, n int) []byte {
	return bytes.Repeat([]byte(wiretapMarks[what]), n/16)
}

// wiretapProgram sends all marks from rank 0 to rank 1 or back, and prints the network key.
func wiretapProgram(world *mpi.Comm) error {
	const short, large = 256, 320 << 10
	rank := world.Rank()
	for _, kind := range []struct {
		what      string
		n, rounds int
	}{
		{"short messages", short, 100}, {"further short messages", short, 10}, // by then there are rings, if there are to be any
		{"large messages", large, 24}, // enough for hybrid to make a connection
	} {
		what, n := kind.what, kind.n
		want := marked(what, n)
		for range kind.rounds {
			if rank == 0 {
				if err := mpi.Send(world, want, 1, 0); err != nil {
					return err
				}
			} else if got := make([]byte, n); true {
				if _, err := mpi.Recv(world, got, 0, 0); err != nil {
					return err
				}
				if !bytes.Equal(got, want) {
					return fmt.Errorf("%s do not arrive as they were sent", what)
				}
			}
		}
		if err := world.Barrier(); err != nil {
			return err
		}
	}
	for _, n := range []int{short, large} {
		if err := wiretapWindow(world, n); err != nil {
			return err
		}
	}
	all := make([]byte, 2*short)
	if err := mpi.Allgather(world, marked("collectives", short), all); err != nil {
		return err
	}
	key, err := mpi.NetworkKey(world)
	if err == nil && rank == 0 {
		fmt.Printf("device %s\nkey %x\n", inspect.DeviceName(world, 1), key)
	}
	return err
}

// wiretapWindow puts marks into the memory of rank 1 and gets others from there.
func wiretapWindow(world *mpi.Comm, n int) error {
	win, err := mpi.CreateWin(world, append(make([]byte, n), marked("gets", n)...))
	if err != nil {
		return err
	}
	defer win.Free()
	got := make([]byte, n)
	win.Fence()
	if world.Rank() == 0 {
		win.Put(marked("puts", n), 1, 0)
		win.Get(got, 1, n)
	}
	win.Fence()
	switch {
	case world.Rank() == 0 && !bytes.Equal(got, marked("gets", n)):
		return fmt.Errorf("a get of %d bytes brings something else", n)
	case world.Rank() == 1 && !bytes.Equal(win.Memory()[:n], marked("puts", n)):
		return fmt.Errorf("a put of %d bytes brings something else", n)
	}
	return nil
}
