package pmi

import (
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// CreateBoard creates a board in anonymous shared memory, which exists until the last
// process closes it. The ranks inherit the file and pass its descriptor to OpenBoard.
func CreateBoard(size int) (*Board, *os.File, error) {
	if size < 1 || size > boardMaxSize {
		return nil, nil, fmt.Errorf("pmi: a board for %d ranks: use 1 to %d", size, boardMaxSize)
	}
	fd, err := unix.MemfdCreate("muster-board", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("pmi: create the board in shared memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "muster-board")
	if err := file.Truncate(int64(boardWords(size) * 8)); err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("pmi: set the size of the board for %d ranks: %w", size, err)
	}
	b, err := mapBoard(fd, size)
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
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("pmi: the board's descriptor %d is not open: %w", fd, err)
	}
	// Mapping beyond the end of a file succeeds, but the first access raises SIGBUS.
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size < int64(boardWords(size)*8) {
		return nil, fmt.Errorf("pmi: descriptor %d is not a board for %d ranks (mode %#o, %d bytes)", fd, size, st.Mode, st.Size)
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
	mem, err := unix.Mmap(fd, 0, boardWords(size)*8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("pmi: map the board for %d ranks: %w", size, err)
	}
	return &Board{words: wordsOf(mem), size: size, close: func() error { return unix.Munmap(mem) }}, nil
}

func (b *Board) check() error {
	if got := atomic.LoadUint64(&b.words[wordMagic]); got != uint64(b.size)<<32|boardMagic {
		return fmt.Errorf("pmi: the launcher's board does not match this version and %d ranks (it begins with %#x): "+
			"use `muster run` and a program built from the same version of Muster", b.size, got)
	}
	return nil
}
