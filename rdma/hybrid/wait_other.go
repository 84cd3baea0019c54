//go:build !linux

package hybrid

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The devices below need Linux, so no queue is ever created elsewhere.

type sleep struct{}

func (q *queue) files() []int { return nil }

func (s *sleep) open([]int) error { return rdma.ErrUnsupported }

func (s *sleep) close() {}

// Wake ends a Wait.
func (q *queue) Wake() {}

// Wait returns ErrUnsupported.
func (q *queue) Wait(time.Duration) error { return rdma.ErrUnsupported }
