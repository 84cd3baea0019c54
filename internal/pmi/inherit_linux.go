package pmi

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// inheritSocket takes over a socket inherited from the launcher. The runtime polls it, so
// that calls can have deadlines. Children of this process do not inherit it, so that the
// launcher sees the end of this process.
func inheritSocket(fd int) (wireConn, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("descriptor is not open: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, errors.New("descriptor is not a socket")
	}
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "launcher"), nil
}

// openBoardFromEnv opens the board if the launcher has one.
func openBoardFromEnv(getenv func(string) string, size int) (*Board, error) {
	if getenv(EnvBoard) == "" {
		return nil, nil
	}
	fd, err := envNumber(getenv, EnvBoard, 0, 1<<20)
	if err != nil {
		return nil, err
	}
	b, err := OpenBoard(fd, size)
	if err != nil {
		return nil, err
	}
	unix.Close(fd) // the mapping stays
	return b, nil
}
