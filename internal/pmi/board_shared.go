package pmi

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/muster-mpi/muster/internal/shmem"
)

// CreateBoard creates a board in anonymous shared memory, which exists until the last
// process closes it. The ranks inherit the file and pass its descriptor to OpenBoard. It
// fails on systems without memfd; a launcher works without a board, and its ranks then have
// a nil one.
func CreateBoard(size int) (*Board, *os.File, error) {
	if size < 1 || size > boardMaxSize {
		return nil, nil, fmt.Errorf("pmi: a board for %d ranks: use 1 to %d", size, boardMaxSize)
	}
	file, err := shmem.CreateMemfd("board", boardWords(size)*8)
	if err != nil {
		return nil, nil, fmt.Errorf("pmi: the board for %d ranks: %w", size, err)
	}
	b, err := mapBoard(int(file.Fd()), size)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	b.format()
	return b, file, nil
}

// OpenBoard maps the board that a launcher has created for a job of this size. The
// descriptor may be closed afterwards.
func OpenBoard(fd, size int) (*Board, error) {
	if size < 1 || size > boardMaxSize {
		return nil, fmt.Errorf("pmi: a board for %d ranks: use 1 to %d", size, boardMaxSize)
	}
	b, err := mapBoard(fd, size)
	if err != nil {
		return nil, err
	}
	if err := b.check(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func mapBoard(fd, size int) (*Board, error) {
	mem, err := shmem.Map(fd, boardWords(size)*8)
	if err != nil {
		return nil, fmt.Errorf("pmi: the board for %d ranks: %w", size, err)
	}
	return &Board{words: shmem.Words(mem), size: size, close: func() error { return shmem.Unmap(mem) }}, nil
}

func (b *Board) check() error {
	if got := atomic.LoadUint64(&b.words[wordMagic]); got != uint64(b.size)<<32|boardMagic {
		return fmt.Errorf("pmi: the launcher's board does not match this version and %d ranks (it begins with %#x): "+
			"use `muster run` and a program built from the same version of Muster", b.size, got)
	}
	return nil
}
