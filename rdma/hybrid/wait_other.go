//go:build !linux

package hybrid

import (
	"time"

	"github.com/muster-mpi/muster/rdma"
)

// The devices below need Linux, so that no queue is ever made elsewhere.

type sleep struct{}

func (q *queue) files() []int { return nil }

func (s *sleep) open([]int) error { return rdma.ErrUnsupported }

func (s *sleep) close() {}

// Wake ends a Wait.
func (q *queue) Wake() {}

// Wait parks.
func (q *queue) Wait(time.Duration) error { return rdma.ErrUnsupported }
