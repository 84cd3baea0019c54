//go:build !linux

package pmi

import (
	"errors"
	"os"
)

var errNoBoard = errors.New("pmi: the job's board needs memfd, which only Linux has")

// CreateBoard fails on systems without memfd. A launcher works without a board; its ranks
// then have a nil one.
func CreateBoard(size int) (*Board, *os.File, error) { return nil, nil, errNoBoard }

// OpenBoard fails like CreateBoard.
func OpenBoard(fd, size int) (*Board, error) { return nil, errNoBoard }
